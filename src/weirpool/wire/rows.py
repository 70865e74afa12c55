"""Runs from Arrow buffers: bytes and offsets of two columns, row by row.

`rows.pyx` does the same in one pass, without an object for each row. A property test compares the two.
"""

from __future__ import annotations

from ..errors import LocalError
from ..payload import MAX_RUN_BYTES, Payload, PayloadRun

__all__ = ["RowBuffers"]


class RowBuffers:
    """The rows of two columns, from which runs are made.

    Args:
        data: The data of all rows.
        data_ends: Native 32-bit integers, one more than rows: the start of row 0, then the end of each row.
        metadata: The metadata of all rows; None if no row has metadata.
        metadata_ends: Like `data_ends`; None if `metadata` is None.
        valid: One bit for each row, lowest first: whether it has metadata. None if all rows have metadata.
        first_bit: The index of the bit of row 0.

    Raises:
        LocalError: The columns have different lengths, or offsets or validity bits are missing.

    """

    __slots__ = ("_data", "_data_ends", "_first_bit", "_metadata", "_metadata_ends", "_valid")

    def __init__(
        self,
        data: memoryview,
        data_ends: memoryview,
        metadata: memoryview | None,
        metadata_ends: memoryview | None,
        valid: memoryview | None,
        first_bit: int,
    ) -> None:
        rows = len(data_ends) - 1
        if rows < 0:
            raise LocalError("the offsets of the rows are missing; even no rows have one")
        if metadata_ends is not None and len(metadata_ends) != rows + 1:
            raise LocalError(f"the batch has {rows} rows of data and {len(metadata_ends) - 1} of metadata")
        if valid is not None and not 0 <= first_bit <= 8 * len(valid) - rows:
            raise LocalError(f"{len(valid)} bytes of validity bits are too few for {rows} rows from bit {first_bit}")
        self._data = data
        self._data_ends = data_ends
        self._metadata = metadata
        self._metadata_ends = metadata_ends
        self._valid = valid
        self._first_bit = first_bit

    def __len__(self) -> int:
        return len(self._data_ends) - 1

    def run(self, start: int = 0, stop: int | None = None, limit: int = MAX_RUN_BYTES, overhead: int = 0) -> PayloadRun:
        """Return the rows from `start` to `stop`, or the first of them if they exceed `limit`; at least one row.

        Args:
            start: The first row.
            stop: The row after the last one; None for all.
            limit: The maximum size in bytes.
            overhead: The bytes to count for each row in addition to its content.

        Raises:
            LocalError: There are no such rows, or their offsets are invalid.

        """
        last = len(self) if stop is None else stop
        if not 0 <= start <= last <= len(self):
            raise LocalError(f"rows {start} to {last} are not in a record batch of {len(self)} rows")
        payloads: list[Payload] = []
        size = 0
        for row in range(start, last):
            item = Payload(_slice(self._data, self._data_ends, row), self._metadata_of(row))
            size += len(item.data) + (0 if item.metadata is None else len(item.metadata)) + overhead
            if payloads and size > limit:
                break
            payloads.append(item)
        return PayloadRun.of(payloads)

    def _metadata_of(self, row: int) -> bytes | None:
        """Return the metadata of one row, if it has any."""
        bit = self._first_bit + row
        if self._metadata is None or self._metadata_ends is None:
            return None
        if self._valid is not None and not self._valid[bit >> 3] >> (bit & 7) & 1:
            return None
        return _slice(self._metadata, self._metadata_ends, row)


def _slice(data: memoryview, ends: memoryview, row: int) -> bytes:
    """Return the bytes of one row."""
    start, end = ends[row], ends[row + 1]
    if not 0 <= start <= end <= len(data):
        raise LocalError(f"row {row} is at {start} to {end} of {len(data)} bytes; the Arrow array is damaged")
    return bytes(data[start:end])
