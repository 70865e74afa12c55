"""The digest of rows, however they are divided into batches."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import xxhash

__all__ = ["RowDigest"]


class RowDigest:
    """A running digest of the data and metadata of rows.

    Lengths and bytes are digested separately, so the cost for each row is that of its bytes.

    Attributes:
        rows: The number of rows so far.
    """

    def __init__(self) -> None:
        self.rows = 0
        # Two for each column: its lengths and its bytes.
        self._parts = [xxhash.xxh3_128() for _ in range(4)]

    def update(self, batch: pa.RecordBatch) -> None:
        """Add rows: the columns `data` and `metadata`, both binary."""
        self.rows += batch.num_rows
        for number, name in enumerate(("data", "metadata")):
            lengths, values = self._parts[2 * number : 2 * number + 2]
            column = batch.column(name)
            lengths.update(_fixed(pc.fill_null(pc.binary_length(column).cast(pa.int64()), -1)))
            values.update(_values(pc.fill_null(column, b"") if column.null_count else column))

    def hexdigest(self) -> str:
        """Return the digest of the rows so far."""
        return xxhash.xxh3_128_hexdigest(b"".join(part.digest() for part in self._parts))


def _fixed(numbers: pa.Int64Array) -> memoryview:
    _, buffer = numbers.buffers()
    return memoryview(buffer)[numbers.offset * 8 : (numbers.offset + len(numbers)) * 8]


def _values(column: pa.Array) -> memoryview | bytes:
    _, offsets, values = column.buffers()
    if values is None or not len(column):
        return b""
    places = memoryview(offsets).cast("B")
    places = places.cast("q") if pa.types.is_large_binary(column.type) else places.cast("i")
    return memoryview(values)[places[column.offset] : places[column.offset + len(column)]]
