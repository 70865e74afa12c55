"""Where a query starts in a log that it could not see at first: with the first row received since its start."""

from __future__ import annotations

from bisect import bisect_left
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import DataLost, JournalCorrupt
from ..journal.layout import Extent
from ..journal.reader import JournalReader

__all__ = ["first_since", "is_time"]


def is_time(text: str) -> bool:
    """Return True if a text is a time as in offsets: ISO 8601, with its zone."""
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def first_since(reader: JournalReader, time: datetime) -> int:
    """Return the position of the first row received at or after a time; the log's end if there is none.

    The time is by the clock of the log's collector. This reads one batch of some segments, and one segment. Unreadable
    rows count as received since, so that no later row is skipped.
    """
    segments = reader.segments()
    later = bisect_left(segments, True, key=lambda segment: _begins_since(reader, segment, time))
    if later == 0:
        return reader.first
    return _search(reader, segments[later - 1], time)


def _begins_since(reader: JournalReader, segment: Extent, time: datetime) -> bool:
    try:
        first = next(reader.read(segment.first, segment.end), None)
    except (DataLost, JournalCorrupt):
        return True
    return first is None or first["time"][0].as_py() >= time


def _search(reader: JournalReader, segment: Extent, time: datetime) -> int:
    at = segment.first
    try:
        for batch in reader.read(segment.first, segment.end):
            index: int = pc.index(pc.greater_equal(batch["time"], pa.scalar(time, batch["time"].type)), True).as_py()
            if index >= 0:
                return int(batch["position"][index].as_py())
            at = batch["position"][-1].as_py() + 1
    except (DataLost, JournalCorrupt):
        return at
    return segment.end
