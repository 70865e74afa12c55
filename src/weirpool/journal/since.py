"""The search for the first row that was received since a time."""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa

from ..errors import DataLost, JournalCorrupt
from .gaps import number_of
from .layout import Extent
from .ports import LogReader

__all__ = ["first_since"]


def first_since(reader: LogReader, time: datetime) -> int:
    """Return the position of the first row received at or after a time; the log's end if there is none.

    The time is by the clock of the log's collector, which may have gone back or ahead, so the times of rows are in no
    order. This reads the headers of all batches that are not sealed, once, and the rows of one segment. Rows that are
    unreadable, and whose time is unknown, count as received since, so that no later row is skipped.
    """
    since = number_of(time)
    for segment in reader.segments(timed=True):
        if segment.times is None or segment.times[1] >= since:
            found = _search(reader, segment, time)
            if found is not None:
                return found
    return reader.end


def _search(reader: LogReader, segment: Extent, time: datetime) -> int | None:
    """Return the position of the first row in a segment that was received since; None if there is none."""
    # Only here: it takes long to import.
    import pyarrow.compute as pc

    at = segment.first
    try:
        for batch in reader.read(segment.first, segment.end, columns=["position", "time"]):
            index: int = pc.index(pc.greater_equal(batch["time"], pa.scalar(time, batch["time"].type)), True).as_py()
            if index >= 0:
                return int(batch["position"][index].as_py())
            at = batch["position"][-1].as_py() + 1
    except DataLost:
        # It may have been trimmed meanwhile, as a whole.
        reader.refresh()
        return None if segment.end <= reader.first else max(at, reader.first)
    except JournalCorrupt:
        return at
    return None
