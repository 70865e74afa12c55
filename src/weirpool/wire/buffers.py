"""Arrow buffers from runs: bytes and offsets in one pass, without an object for each row.

`buffers.pyx` does the same with raw pointers; a property test compares the two. Only `columns` imports Arrow.
"""

from __future__ import annotations

from array import array

from ..errors import LocalError
from ..payload import MAX_RUN_BYTES, Payload, PayloadRun
from .widths import BufferedRun, ends_of

__all__ = ["ColumnBuffers"]


class ColumnBuffers:
    """Collects rows of data and metadata; ``len()`` is their number. Offsets are stored only if row widths differ.

    Attributes:
        size: The collected bytes of data and metadata.

    """

    __slots__ = ("_data", "_data_ends", "_metadata", "_metadata_ends", "_nulls", "_rows", "_valid", "_width", "size")

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self.size = 0
        self._rows = 0
        # The width of all rows so far, if it is the same and none has metadata; then only `_data` is used. Else 0.
        self._width = 0
        self._data = bytearray()
        self._data_ends = array("i", (0,))
        self._metadata = bytearray()
        self._metadata_ends = array("i", (0,))
        self._valid = bytearray()
        self._nulls = 0

    def __len__(self) -> int:
        return self._rows

    def append(self, run: PayloadRun, start: int = 0, stop: int | None = None) -> None:
        """Add the items of `run` from index `start` to `stop`.

        Raises:
            LocalError: The run has no such items, or a column would hold 2 GiB or more; call `take` first.

        """
        last = len(run) if stop is None else stop
        size = run.check(start, last)
        if start == last:
            return
        self._reserve(size)
        if run.width and (self._rows == 0 or run.width == self._width):
            first = run.first + start * run.width
            self._data += memoryview(run.buffer)[first : first + size]
            self._rows += last - start
            self._width = run.width
            return
        self._expand()
        for payload in run.payloads(start, last):
            self._row(payload.data, payload.metadata)

    def append_payload(self, payload: Payload) -> None:
        """Add one item.

        Raises:
            LocalError: A column would hold 2 GiB or more; call `take` first.

        """
        data, metadata = payload.data, payload.metadata
        self._reserve(len(data) + (0 if metadata is None else len(metadata)))
        if self._width and metadata is None and len(data) == self._width:
            self._data += data
            self._rows += 1
        else:
            self._expand()
            self._row(data, metadata)

    def _reserve(self, size: int) -> None:
        """Count `size` more bytes. Raises LocalError if they exceed 32-bit offsets."""
        if self.size + size > MAX_RUN_BYTES:
            raise LocalError(f"a record batch holds at most {MAX_RUN_BYTES} bytes; finish this one first")
        self.size += size

    def _expand(self) -> None:
        """Store the offsets of all rows, which are not stored while all have one width."""
        if self._width:
            rows = self._rows
            self._data_ends = array("i", bytes(ends_of(self._width, rows)))
            self._metadata_ends = array("i", bytes(4 * (rows + 1)))
            self._valid = bytearray((rows + 7) >> 3)
            self._nulls = rows
            self._width = 0

    def _row(self, data: bytes, metadata: bytes | None) -> None:
        """Add one row whose size `_reserve` has checked."""
        row = self._rows
        if row & 7 == 0:
            self._valid.append(0)
        if metadata is None:
            self._nulls += 1
        else:
            self._metadata += metadata
            self._valid[row >> 3] |= 1 << (row & 7)
        self._data += data
        self._data_ends.append(len(self._data))
        self._metadata_ends.append(len(self._metadata))
        self._rows = row + 1

    def take(self) -> BufferedRun:
        """Remove and return the collected rows."""
        rows = self._rows
        if self._width:
            zeros = ends_of(0, rows)
            ends = ends_of(self._width, rows)
            taken = BufferedRun(rows, self._data, ends, b"", zeros, zeros[: (rows + 7) >> 3], rows)
        else:
            # Their lengths are in bytes, as those of the other buffers.
            data_ends, metadata_ends = (memoryview(ends).cast("B") for ends in (self._data_ends, self._metadata_ends))
            taken = BufferedRun(rows, self._data, data_ends, self._metadata, metadata_ends, self._valid, self._nulls)
        self._clear()
        return taken
