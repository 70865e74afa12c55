"""Logs of collectors whose clocks go back and jump ahead, and the starts at a time in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hypothesis import strategies as st

from tests.journal.logs import SOURCE, append
from weirpool.journal import JournalWriter, LogReader, since

__all__ = ["NOON", "STEPS", "Step", "times", "write_at", "wrong_starts"]

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)

Step = tuple[int, int]
"""By how many seconds the clock moves before a batch, and the rows of the batch; 0 rows: a gap is recorded."""

STEPS = st.lists(st.tuples(st.sampled_from([0, 1, 10, -1, -10, 1800, -1800]), st.integers(0, 3)), max_size=25)


def write_at(path: Path, steps: Iterable[Step], clock: datetime = NOON, segment_bytes: int = 4_000) -> datetime:
    """Append batches while the clock moves; return where it stands in the end. A segment has some of them."""
    now = clock
    with JournalWriter.open(
        path, SOURCE, segment_bytes=segment_bytes, fsync=False, clock=lambda: now.timestamp()
    ) as writer:
        for seconds, rows in steps:
            now += timedelta(seconds=seconds)
            if rows:
                append(writer, rows)
            else:
                writer.append_gap("nothing came")
    return now


def times(reader: LogReader) -> list[tuple[int, datetime]]:
    """Return position and time of each row."""
    batches = reader.read(reader.first, reader.end)
    return [
        pair for batch in batches for pair in zip(batch["position"].to_pylist(), batch["time"].to_pylist(), strict=True)
    ]


def wrong_starts(reader: LogReader) -> Iterator[str]:
    """Yield the starts at a time that are not those of a linear search: at each time of a row, and just beside it."""
    rows = times(reader)
    moments = {time + timedelta(microseconds=more) for _, time in rows for more in (-1, 0, 1)}
    for moment in sorted({*moments, NOON}):
        wanted = next((position for position, time in rows if time >= moment), reader.end)
        found = since.first_since(reader, moment)
        if found != wanted:
            yield f"a start at {moment:%H:%M:%S.%f} begins at {found} instead of {wanted}"
