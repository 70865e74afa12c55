"""The columns of a journal as Spark sees them, and those of them that a user asks for."""

from __future__ import annotations

from array import array
from difflib import get_close_matches
from typing import Final

import pyarrow as pa
from pyspark.sql.types import BinaryType, DataType, LongType, StringType, StructField, StructType, TimestampType

from ..errors import LocalError
from ..journal.format import SCHEMA

__all__ = ["COLUMNS", "Projection"]

SOURCE: Final = "source"
_MAY_BE_NULL: Final = "metadata"

# Positions count within a source, so that it takes both to name a row.
COLUMNS: Final = StructType(
    [
        StructField(SOURCE, StringType()),
        StructField("position", LongType()),
        StructField("time", TimestampType()),
        StructField("stream", StringType()),
        StructField("data", BinaryType()),
        StructField("metadata", BinaryType()),
    ]
)
"""Everything there is: whence a row came, when, and what it holds."""

_ARROW: Final = {SOURCE: pa.field(SOURCE, pa.string()), **{field.name: field for field in SCHEMA}}


class Projection:
    """The columns that Spark asked for, and how a journal's record batches become these.

    Args:
        schema: Some of `COLUMNS`, in any order.

    Raises:
        LocalError: There are others among them, or a type is another.

    """

    def __init__(self, schema: StructType) -> None:
        self._names = [_checked(field) for field in schema.fields]
        if not self._names:
            raise LocalError("a schema without columns reads nothing; name some of " + ", ".join(COLUMNS.names))
        # Spark compares nullability too, and refuses batches that differ.
        self._schema = pa.schema([_ARROW[field.name].with_nullable(field.nullable) for field in schema.fields])
        self._sources: dict[str, pa.Array] = {}

    def __getstate__(self) -> tuple[list[str], pa.Schema]:
        return self._names, self._schema

    def __setstate__(self, state: tuple[list[str], pa.Schema]) -> None:
        self._names, self._schema = state
        self._sources = {}

    def apply(self, batch: pa.RecordBatch, source: str) -> pa.RecordBatch:
        """Return a journal's batch as Spark wants it; no row is touched."""
        columns = [
            self._constant(source, batch.num_rows) if name == SOURCE else batch.column(name) for name in self._names
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _constant(self, source: str, rows: int) -> pa.Array:
        """Return the source's name `rows` times, cut from an array that is made once."""
        names = self._sources.get(source)
        if names is None or len(names) < rows:
            names = self._sources[source] = _repeated(source.encode(), 1 << rows.bit_length())
        return names.slice(0, rows)


def _repeated(text: bytes, rows: int) -> pa.StringArray:
    """Return an array of one text, many times."""
    # Not from a scalar: for that pyarrow imports pandas, and every worker would wait for it.
    offsets = array("i", range(0, len(text) * rows + 1, len(text)))
    return pa.Array.from_buffers(pa.string(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(text * rows)])


def _checked(field: StructField) -> str:
    if field.name not in COLUMNS.names:
        near = get_close_matches(field.name, COLUMNS.names, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(COLUMNS.names)}"
        raise LocalError(f"a journal has no column {field.name!r}; {hint}")
    expected: DataType = COLUMNS[field.name].dataType
    if field.dataType != expected:
        raise LocalError(
            f"column {field.name!r} is of type {expected.simpleString()}, not {field.dataType.simpleString()}; "
            "read it as it is, and cast it then"
        )
    if field.name == _MAY_BE_NULL and not field.nullable:
        raise LocalError(f"column {field.name!r} is null where an item has none; it cannot be NOT NULL")
    return field.name
