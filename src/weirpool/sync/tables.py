"""Record batches, tables and readers from a blocking stream. The methods of both kinds of streams end here."""

from __future__ import annotations

from collections.abc import Generator
from itertools import chain
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow

    from ..frames.tables import Conversion

__all__ = ["NextBatch", "batches", "reader", "table"]


class NextBatch(Protocol):
    """Takes batches of items from a stream. The columns of a batch are `data` and `metadata`."""

    def __call__(self, max_rows: int | None = None, max_bytes: int | None = None) -> pyarrow.RecordBatch | None:
        """Return the next batch; None at the end."""

    def close(self) -> None:
        """Cancel a stream that is used without a block."""


def batches(
    source: NextBatch, conversion: Conversion | None, max_rows: int | None = None, max_bytes: int | None = None
) -> Generator[pyarrow.RecordBatch, None, None]:
    """Yield the rows of a stream."""
    try:
        while (batch := source(max_rows, max_bytes)) is not None:
            if conversion is None:
                yield batch
            else:
                yield from conversion.convert(batch)
    finally:
        source.close()


def table(source: NextBatch, conversion: Conversion | None, limit: int | None, max_bytes: int) -> pyarrow.Table:
    """Return the rows of a stream as a table; see :meth:`weirpool.Stream.to_arrow`."""
    from ..frames.tables import TableBuilder

    builder = TableBuilder(limit, max_bytes, conversion)
    try:
        while (room := builder.room()) and (batch := source(room)) is not None:
            builder.add(batch)
    finally:
        source.close()
    return builder.finish()


def reader(source: NextBatch, conversion: Conversion | None) -> pyarrow.RecordBatchReader:
    """Return a reader of the rows of a stream, which requests items as it is read."""
    import pyarrow

    from ..frames.tables import ITEMS

    found = batches(source, conversion)
    if conversion is None:
        return pyarrow.RecordBatchReader.from_batches(ITEMS, found)
    if conversion.schema is not None:
        return pyarrow.RecordBatchReader.from_batches(conversion.schema, found)
    # The columns are those of the first item.
    first = next(found, None)
    if first is None:
        return pyarrow.RecordBatchReader.from_batches(pyarrow.schema([]), [])
    return pyarrow.RecordBatchReader.from_batches(first.schema, chain([first], found))
