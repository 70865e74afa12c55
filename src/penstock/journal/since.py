"""The search for the first row that was received since a time."""

from __future__ import annotations

from bisect import bisect_left
from datetime import datetime

import pyarrow as pa

from ..errors import DataLost, JournalCorrupt
from .layout import Extent
from .ports import LogReader

__all__ = ["first_since"]


def first_since(reader: LogReader, time: datetime) -> int:
    """Return the position of the first row received at or after a time; the log's end if there is none.

    The time is by the clock of the log's collector. This reads one batch of some segments, and one segment. Unreadable
    rows count as received since, so that no later row is skipped.
    """
    segments = reader.segments()
    later = bisect_left(segments, True, key=lambda segment: _begins_since(reader, segment, time))
    if later == 0:
        return reader.first
    return _search(reader, segments[later - 1], time)


def _begins_since(reader: LogReader, segment: Extent, time: datetime) -> bool:
    try:
        first = next(reader.read(segment.first, segment.end), None)
    except (DataLost, JournalCorrupt):
        return True
    return first is None or first["time"][0].as_py() >= time


def _search(reader: LogReader, segment: Extent, time: datetime) -> int:
    # Only here: it takes long to import.
    import pyarrow.compute as pc

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
