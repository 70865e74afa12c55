"""Runs from Arrow's buffers: bytes and offsets of two columns, row by row.

`rows.pyx` is the same in one pass, without an object a row. A property test holds the two equal.
"""

from __future__ import annotations

from ..errors import LocalError
from ..payload import MAX_RUN_BYTES, Payload, PayloadRun

__all__ = ["RowBuffers"]


class RowBuffers:
    """The rows of two columns, from which runs are cut.

    Args:
        data: Bytes.
        data_ends: Native 32-bit integers, one more than there are rows: where row 0 starts, where each ends.
        metadata: As `data`, or None when no row has metadata.
        metadata_ends: As `data_ends`; None when `metadata` is.
        valid: A bit a row, the lowest first: whether it has metadata; None when all rows have.
        first_bit: The bit of row 0.

    Raises:
        LocalError: The columns are not of one length.

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
        if metadata_ends is not None and len(metadata_ends) != rows + 1:
            raise LocalError(f"{rows} rows of data were given with {len(metadata_ends) - 1} of metadata")
        if valid is not None and len(valid) < (first_bit + rows + 7) >> 3:
            raise LocalError(f"{len(valid)} bytes of validity bits were given for {rows} rows from bit {first_bit}")
        self._data = data
        self._data_ends = data_ends
        self._metadata = metadata
        self._metadata_ends = metadata_ends
        self._valid = valid
        self._first_bit = first_bit

    def __len__(self) -> int:
        return len(self._data_ends) - 1

    def run(self, start: int = 0, stop: int | None = None, most: int = MAX_RUN_BYTES, each: int = 0) -> PayloadRun:
        """Return the rows from `start` to `stop`, or as many of them as cost at most `most`, at least one.

        Args:
            start: The first row.
            stop: The row behind the last one; None: to the end.
            most: In bytes.
            each: What a row costs beside its bytes.

        Raises:
            LocalError: There are no such rows, or their offsets do not fit the bytes or each other.

        """
        last = len(self) if stop is None else stop
        if not 0 <= start <= last <= len(self):
            raise LocalError(f"rows {start} to {last} were asked of a record batch of {len(self)}")
        payloads: list[Payload] = []
        size = 0
        for row in range(start, last):
            item = Payload(_cut(self._data, self._data_ends, row), self._metadata_of(row))
            size += len(item.data) + (0 if item.metadata is None else len(item.metadata)) + each
            if payloads and size > most:
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
        return _cut(self._metadata, self._metadata_ends, row)


def _cut(data: memoryview, ends: memoryview, row: int) -> bytes:
    """Return the bytes of one row."""
    start, end = ends[row], ends[row + 1]
    if not 0 <= start <= end <= len(data):
        raise LocalError(f"row {row} lies at {start} to {end} in {len(data)} bytes; the Arrow array is damaged")
    return bytes(data[start:end])
