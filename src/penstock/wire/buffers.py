"""Arrow's buffers from runs: bytes and offsets, one pass, no object a row.

`buffers.pyx` is the same with raw pointers; a property test holds the two equal. Only `columns` knows Arrow.
"""

from __future__ import annotations

from array import array

from ..errors import LocalError
from ..payload import MAX_RUN_BYTES, Payload, PayloadRun
from .widths import BufferedRun, ends_of

__all__ = ["ColumnBuffers"]


class ColumnBuffers:
    """Collects rows of data and metadata. While all are of one width, nothing is written down of each.

    Attributes:
        size: Bytes of data and metadata that it holds; ``len()`` tells the rows.

    """

    __slots__ = ("_data", "_data_ends", "_metadata", "_metadata_ends", "_nulls", "_rows", "_valid", "_width", "size")

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self.size = 0
        self._rows = 0
        # That of all rows so far, none of which has metadata; then only their data is held.
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
            LocalError: The run does not have them; or a column would hold 2 GiB or more: take what is there first.

        """
        last = len(run) if stop is None else stop
        size = run.check(start, last)
        if start == last:
            return
        self._reserve(size)
        if run.width and (self._rows == 0 or run.width == self._width):
            at = run.first + start * run.width
            self._data += memoryview(run.buffer)[at : at + size]
            self._rows += last - start
            self._width = run.width
            return
        self._spell_out()
        for payload in run.payloads(start, last):
            self._row(payload.data, payload.metadata)

    def append_payload(self, payload: Payload) -> None:
        """Add one item.

        Raises:
            LocalError: A column would hold 2 GiB or more: take what is there first.

        """
        data, metadata = payload.data, payload.metadata
        self._reserve(len(data) + (0 if metadata is None else len(metadata)))
        if self._width and metadata is None and len(data) == self._width:
            self._data += data
            self._rows += 1
        else:
            self._spell_out()
            self._row(data, metadata)

    def _reserve(self, size: int) -> None:
        """Refuse `size` more bytes if 32-bit offsets could not tell where they end."""
        if self.size + size > MAX_RUN_BYTES:
            raise LocalError(f"a record batch holds at most {MAX_RUN_BYTES} bytes; finish this one first")
        self.size += size

    def _spell_out(self) -> None:
        """Write down of each row what was left out while all had one width."""
        if self._width:
            rows = self._rows
            self._data_ends = array("i", bytes(ends_of(self._width, rows)))
            self._metadata_ends = array("i", bytes(4 * (rows + 1)))
            self._valid = bytearray((rows + 7) >> 3)
            self._nulls = rows
            self._width = 0

    def _row(self, data: bytes, metadata: bytes | None) -> None:
        """Add one row, for which `_reserve` has found room."""
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
        """Return what was collected, and forget it."""
        rows = self._rows
        if self._width:
            none = ends_of(0, rows)
            taken = BufferedRun(rows, self._data, ends_of(self._width, rows), b"", none, none[: (rows + 7) >> 3], rows)
        else:
            taken = BufferedRun(
                rows, self._data, self._data_ends, self._metadata, self._metadata_ends, self._valid, self._nulls
            )
        self._clear()
        return taken
