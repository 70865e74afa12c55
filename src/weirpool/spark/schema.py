"""The columns of a journal in Spark, and the selection that a user reads."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from typing import Final

import pyarrow as pa
from pyspark.sql.types import BinaryType, DataType, LongType, StringType, StructField, StructType, TimestampType

from ..errors import LocalError
from ..journal.format import SCHEMA

__all__ = ["COLUMNS", "Projection", "arrow_schema"]

SOURCE: Final = "source"
_MAY_BE_NULL: Final = frozenset({"metadata"})

# Positions are unique within a source, so a row is identified by both.
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
"""All columns: a row's source, time and content."""

_ARROW: Final = {SOURCE: pa.field(SOURCE, pa.string()), **{field.name: field for field in SCHEMA}}


class Projection:
    """The columns that Spark requested, and the conversion of a journal's record batches.

    The schema has some of `COLUMNS`, in any order; other columns or types raise `LocalError`.
    """

    def __init__(self, schema: StructType) -> None:
        self._schema = arrow_schema(schema, COLUMNS, _ARROW, _MAY_BE_NULL)
        self._names = self._schema.names
        self._sources: dict[str, pa.Array] = {}

    def __getstate__(self) -> tuple[list[str], pa.Schema]:
        return self._names, self._schema

    def __setstate__(self, state: tuple[list[str], pa.Schema]) -> None:
        self._names, self._schema = state
        self._sources = {}

    @property
    def needs(self) -> list[str]:
        """The columns of a log to read for it: at least the positions."""
        return [*dict.fromkeys([*(name for name in self._names if name != SOURCE), "position"])]

    def batches(self, batch: pa.RecordBatch, source: str) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a journal's batch in the format of Spark."""
        yield self.apply(batch, source)

    def apply(self, batch: pa.RecordBatch, source: str) -> pa.RecordBatch:
        """Return a journal's batch in the format of Spark, without touching rows."""
        columns = [
            self._constant(source, batch.num_rows) if name == SOURCE else batch.column(name) for name in self._names
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _constant(self, source: str, rows: int) -> pa.Array:
        """Return the source's name `rows` times, as a slice of a cached array."""
        names = self._sources.get(source)
        if names is None or len(names) < rows:
            names = self._sources[source] = _repeated(source.encode(), 1 << rows.bit_length())
        return names.slice(0, rows)


def _repeated(text: bytes, rows: int) -> pa.StringArray:
    """Return an array with one text, repeated."""
    # Not from a scalar: for that pyarrow imports pandas, which would delay every worker.
    offsets = array("i", range(0, len(text) * rows + 1, len(text)))
    return pa.Array.from_buffers(pa.string(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(text * rows)])


def arrow_schema(
    schema: StructType, columns: StructType, fields: Mapping[str, pa.Field], may_be_null: Collection[str]
) -> pa.Schema:
    """Return the Arrow schema of the columns that Spark requested; `LocalError` if they are not among all columns.

    `fields` has the Arrow field of each column. Only those in `may_be_null` may contain nulls.
    """
    if not schema.fields:
        raise LocalError("a schema without columns reads nothing; name some of " + ", ".join(columns.names))
    for field in schema.fields:
        _check(field, columns, may_be_null)
    # Spark compares nullability too, and refuses batches that differ.
    return pa.schema([fields[field.name].with_nullable(field.nullable) for field in schema.fields])


def _check(field: StructField, columns: StructType, may_be_null: Collection[str]) -> None:
    if field.name not in columns.names:
        near = get_close_matches(field.name, columns.names, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"the columns are {', '.join(columns.names)}"
        raise LocalError(f"a journal has no column {field.name!r}; {hint}")
    expected: DataType = columns[field.name].dataType
    if field.dataType != expected:
        raise LocalError(
            f"column {field.name!r} is of type {expected.simpleString()}, not {field.dataType.simpleString()}; "
            "read it as it is, then cast it"
        )
    if field.name in may_be_null and not field.nullable:
        raise LocalError(f"column {field.name!r} may be null; it cannot be NOT NULL")
