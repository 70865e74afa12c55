"""Finds and records the permanent losses of a micro-batch before its partitions are made.

Only the driver decides which rows are skipped, and only with ``failOnDataLoss=false``. It records them in the log's
gaps, under the query's id, before any row is read. The same batch then has the same rows when it is planned again,
even if the driver dies before Spark commits it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from ..errors import DataLost, JournalCorrupt, JournalError
from ..journal.gaps import Gap
from ..journal.ports import Coordinator, LogReader

__all__ = ["Loss", "Span", "losses", "record", "recorded", "remaining"]

logger = logging.getLogger("weirpool.spark")

Span = tuple[int, int]
"""First position, and the position after the last."""


@dataclass(frozen=True, slots=True)
class Loss:
    """Rows that cannot be read."""

    first: int
    """The first position."""
    end: int
    """The position after the last. If it equals `first`, no row is lost, but a record before that position."""
    reason: str
    """The reason."""

    def __str__(self) -> str:
        return f"positions {self.first} to {self.end - 1}" if self.first < self.end else f"a record before {self.end}"


def losses(reader: LogReader, first: int, end: int) -> list[Loss]:
    """Read all rows between two positions, and return those that are trimmed, missing or damaged.

    A damaged record without rows is a separate loss, unless the rows on one side of it are lost too. A log that cannot
    be reached raises `JournalError`.
    """
    found: list[Loss] = []
    for loss in _losses(reader, first, end):
        if found and found[-1].end == loss.first:
            loss = Loss(found.pop().first, loss.end, loss.reason)
        found.append(loss)
    for at, stop in reader.damage(first, end, records=True) if first < end else ():
        if at == stop and not any(loss.first <= at <= loss.end for loss in found):
            found.append(Loss(at, at, f"a record before position {at} is damaged"))
    return sorted(found, key=lambda loss: loss.first)


def _losses(reader: LogReader, first: int, end: int) -> Iterator[Loss]:
    at = first
    while at < end:
        try:
            for batch in reader.read(at, end, skip_records=True):
                at = batch["position"][-1].as_py() + 1
        except (DataLost, JournalCorrupt):
            # Valid batches before the damaged one may wait to be merged: read them one by one.
            stop = min(end, max(at + 1, _batch_end(reader, at, end)))
            try:
                for _ in reader.read(at, stop, skip_records=True):
                    pass
            except (DataLost, JournalCorrupt) as error:
                yield Loss(at, stop, str(error))
            at = stop
        else:
            return


def _batch_end(reader: LogReader, position: int, end: int) -> int:
    """Return where reading can continue, at the latest, after a loss at or after a position."""
    try:
        return reader.locate(position)[1]
    except DataLost:
        return reader.first if position < reader.first else _next_segment(reader, position, end)
    except JournalCorrupt:
        return _next_segment(reader, position, end)


def _next_segment(reader: LogReader, position: int, end: int) -> int:
    return min((extent.first for extent in reader.segments() if extent.first > position), default=end)


def recorded(found: Iterable[Gap], query: str) -> list[Span]:
    """Return the losses that a query has recorded, in order."""
    return sorted(gap.lost for gap in found if gap.lost is not None and gap.query == query)


def record(coordinator: Coordinator, reader: LogReader, found: Iterable[Loss], query: str, name: str) -> None:
    """Record the losses that a query skips, once; the record is durable on return.

    The query has an id, and a name for people. After a `JournalError`, nothing may be skipped.
    """
    # The Python process of a killed driver may have planned the same batch meanwhile.
    known = recorded(coordinator.recorded(reader.source), query)
    now = datetime.now(UTC)
    new = [
        Gap(
            position=loss.end,
            time=now,
            reason=f"skipped by query {name}: {loss.reason}",
            previous=_time_before(reader, loss.first),
            lost=(loss.first, loss.end),
            query=query,
        )
        for loss in found
        if (loss.first, loss.end) not in known
    ]
    coordinator.record(reader.source, new)


def remaining(first: int, end: int, skipped: Iterable[Span]) -> Iterator[Span]:
    """Yield the parts of a range outside the skipped ranges, which are in order."""
    for start, stop in skipped:
        if first < min(start, end):
            yield first, min(start, end)
        first = max(first, stop)
    if first < end:
        yield first, end


def _time_before(reader: LogReader, position: int) -> datetime | None:
    """Return when the row before a position was appended, if it is readable."""
    with suppress(JournalError):
        for batch in reader.read(max(0, position - 1), position, skip_records=True):
            time: datetime = batch["time"][-1].as_py()
            return time
    return None
