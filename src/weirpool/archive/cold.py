"""Reading sealed segments: only the row groups and columns that are needed."""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa

from ..journal.format import SCHEMA
from ..objects import Store
from .file import SealedFile
from .manifest import Segment
from .parquet import CHUNK_BYTES

__all__ = ["ColdFiles"]

MAX_OPEN: Final = 16
"""Files to keep open: their footers need not be read again."""
_POSITION: Final = "position"


class ColdFiles:
    """The sealed segments of a log in a store, some of them open. Not thread-safe."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._open: OrderedDict[str, SealedFile] = OrderedDict()

    def read(
        self, name: str, segment: Segment, start: int, end: int, columns: Sequence[str] | None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a segment between two positions; `JournalCorrupt` if they are not what was sealed.

        With `columns`, only these are read, and returned in this order.
        """
        wanted = list(SCHEMA.names if columns is None else columns)
        file = self._file(name, segment)
        expected = max(start, segment.first)
        # Positions may be missing if their loss was accepted.
        whole = segment.rows == segment.end - segment.first
        for group in file.groups(start, end):
            # Positions are always read, to check that they continue.
            rows = _between(file.rows(group, [*dict.fromkeys([_POSITION, *wanted])]), start, end)
            if not rows.num_rows:
                continue
            first, last = rows[_POSITION][0].as_py(), rows[_POSITION][-1].as_py()
            if first < expected or (whole and (first != expected or last - first + 1 != rows.num_rows)):
                raise file.error(f"its positions do not continue at {expected}")
            expected = last + 1
            yield from (batch for batch in rows.select(wanted).to_batches() if batch.num_rows)
        if whole and expected < min(end, segment.end):
            raise file.error(f"its rows end at position {expected}")

    def parts(self, segment: Segment, rows: int) -> Iterator[tuple[int, int, int]]:
        """Yield first position, end and bytes of parts of a segment with some `rows`, not more than row groups."""
        positions = segment.end - segment.first
        # Any number of positions may be missing, if their loss was accepted.
        groups = max(1, len(segment.chunks) // (CHUNK_BYTES * len(SCHEMA)))
        step = max(rows, -(-positions // groups))
        for first in range(segment.first, segment.end, step):
            end = min(first + step, segment.end)
            yield first, end, segment.raw_bytes * (end - first) // positions

    def _file(self, name: str, segment: Segment) -> SealedFile:
        file = self._open.pop(segment.checksum, None)
        if file is None:
            file = SealedFile(self._store, name, segment)
            while len(self._open) >= MAX_OPEN:
                self._open.popitem(last=False)[1].close()
        self._open[segment.checksum] = file
        return file


def _between(rows: pa.Table, start: int, end: int) -> pa.Table:
    """Return the rows between two positions; positions increase."""
    positions = rows[_POSITION]
    count = len(positions)
    if not count:
        return rows
    first = 0 if positions[0].as_py() >= start else bisect_left(positions, start, key=lambda each: each.as_py())
    stop = count if positions[-1].as_py() < end else bisect_left(positions, end, key=lambda each: each.as_py())
    return rows.slice(first, stop - first)
