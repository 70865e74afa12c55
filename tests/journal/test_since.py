"""The first row since a time. `tests/spark/test_source_since.py` tests it with damage, and as a start of queries."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from penstock.journal import JournalReader, JournalWriter
from penstock.journal.since import first_since
from tests.journal.logs import SOURCE, append

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def test_it_is_found_within_and_between_segments(tmp_path: Path) -> None:
    seconds = iter(range(100))
    with JournalWriter.open(
        tmp_path, SOURCE, segment_bytes=1_500, fsync=False, clock=lambda: NOON.timestamp() + next(seconds)
    ) as writer:
        append(writer, *[10] * 9)
    reader = JournalReader(tmp_path, SOURCE)
    times = [(row["position"], row["time"]) for batch in reader.read(0, 90) for row in batch.to_pylist()]
    for time in (NOON - timedelta(1), *(NOON + timedelta(seconds=each / 2) for each in range(25)), NOON + timedelta(1)):
        assert first_since(reader, time) == next((position for position, at in times if at >= time), 90)
