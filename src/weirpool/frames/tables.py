"""Tables from the batches of a stream, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa

from ..errors import LimitExceeded, LocalError

if TYPE_CHECKING:
    import polars

__all__ = ["ITEMS", "Conversion", "TableBuilder", "frame_of"]

ROWS: Final = 65_536
"""Items to ask for at once, if there is no limit."""


ITEMS: Final = pa.schema([("data", pa.binary()), ("metadata", pa.binary())])
"""The columns of items that are not converted."""


class Conversion(Protocol):
    """Makes batches with typed columns from batches of items.

    Attributes:
        schema: The columns; None before the first item if they are those of the items.

    """

    schema: pa.Schema | None

    def convert(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a record batch of items."""


class TableBuilder:
    """Collects record batches of items.

    Args:
        limit: Rows after which the table is full; None: no limit.
        max_bytes: The most bytes that it may have.
        conversion: Makes rows of items; None: the items are the rows.

    Raises:
        LocalError: A limit is less than 1.

    """

    def __init__(self, limit: int | None, max_bytes: int, conversion: Conversion | None = None) -> None:
        if (limit is not None and limit < 1) or max_bytes < 1:
            raise LocalError(f"a table has at least one row and one byte; limit={limit}, max_bytes={max_bytes}")
        self._limit = limit
        self._max_bytes = max_bytes
        self._conversion = conversion
        self._batches: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0

    def room(self) -> int:
        """Return how many items the next batch may have; 0 if the table is full."""
        return ROWS if self._limit is None else min(ROWS, self._limit - self._rows)

    def add(self, batch: pa.RecordBatch) -> None:
        """Add the rows of a batch of items.

        Raises:
            LimitExceeded: The table would have more than `max_bytes`.

        """
        for rows in [batch] if self._conversion is None else self._conversion.convert(batch):
            # An item may have several rows.
            self._append(rows if self._limit is None else rows.slice(0, self._limit - self._rows))

    def finish(self) -> pa.Table:
        """Return the table."""
        if self._batches:
            return pa.Table.from_batches(self._batches)
        schema = ITEMS if self._conversion is None else self._conversion.schema
        return pa.table({}) if schema is None else schema.empty_table()

    def _append(self, rows: pa.RecordBatch) -> None:
        self._bytes += rows.nbytes
        if self._bytes > self._max_bytes:
            raise LimitExceeded(
                f"the table would have more than {self._max_bytes:,} bytes after {self._rows:,} rows; pass limit= to "
                "stop after so many rows, a larger max_bytes=, or use batches()"
            )
        self._rows += rows.num_rows
        self._batches.append(rows)


def frame_of(table: pa.Table) -> polars.DataFrame:
    """Return a table as a DataFrame of Polars, which shares its memory as far as possible."""
    import polars

    frame: Any = polars.from_arrow(table)
    assert isinstance(frame, polars.DataFrame)
    return frame
