"""Converts rows of a DataFrame to items: their data and metadata.

Data is the column that the option `dataColumn` names; by default the column `data`, if it is binary or string;
otherwise the whole row as a JSON object. Metadata is the column that `metadataColumn` names; by default a JSON object
that identifies the row::

    {"query":"4a7d1ed4…","batch":12,"partition":0,"index":345}

The same row has the same four values each time it is sent, so a receiver that stores them can detect repetitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from ..errors import LocalError
from .sink_options import SinkOptions

__all__ = ["Origin", "Packer"]


class Origin(msgspec.Struct, frozen=True):
    """The origin of the rows of one task."""

    query: str
    """The streaming query's id; for a batch, a generated id."""
    batch: int
    """The micro-batch; 0 in a batch."""
    partition: int
    """The task's part of it."""


@dataclass(frozen=True, slots=True)
class Packer:
    """Converts rows to items."""

    data: str | None
    """The column with an item's data; None: the whole row, as JSON."""
    metadata: str | None
    """The column with an item's metadata; None: the row's origin."""
    keyed: bool = True
    """Whether rows without that column have their origin as metadata; otherwise they have none."""

    @classmethod
    def of(cls, options: SinkOptions, schema: StructType) -> Packer:
        """Return the packer for a DataFrame; `LocalError` if an option names a column that cannot be sent."""
        for option, name in (("dataColumn", options.data_column), ("metadataColumn", options.metadata_column)):
            if name is not None:
                _check(option, name, schema)
        data = options.data_column
        if data is None and "data" in schema.names and _holds_bytes(schema["data"]):
            data = "data"
        # Staged rows are kept or dropped together, so they need no keys.
        return cls(data, options.metadata_column, keyed=not options.transactional)

    def pack(self, rows: pa.RecordBatch, origin: Origin, first: int) -> pa.RecordBatch:
        """Return some rows of a task as the columns `data` and `metadata`; `LocalError` if a row has no data.

        In the task, which has this origin, the first of them has the index `first`.
        """
        data = _json(rows) if self.data is None else rows.column(self.data)
        if data.null_count:
            raise LocalError(
                f"{data.null_count} rows have a null in column {self.data!r}; fill or drop them: an item must have data"
            )
        if self.metadata is not None:
            metadata = _binary(rows.column(self.metadata))
        elif self.keyed:
            metadata = _indices(origin, first, rows.num_rows)
        else:
            metadata = pa.nulls(rows.num_rows, pa.binary())
        return pa.RecordBatch.from_arrays([_binary(data), metadata], ["data", "metadata"])


def _check(option: str, name: str, schema: StructType) -> None:
    if name not in schema.names:
        near = get_close_matches(name, schema.names, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"the columns are {', '.join(schema.names)}"
        raise LocalError(f'option "{option}" is {name!r}, which is not a column; {hint}')
    if not _holds_bytes(schema[name]):
        kind = schema[name].dataType.simpleString()
        raise LocalError(f'option "{option}" names column {name!r} of type {kind}; cast it to string or binary first')


def _holds_bytes(field: StructField) -> bool:
    return isinstance(field.dataType, BinaryType | StringType)


def _binary(column: pa.Array) -> pa.Array:
    """Return a column of strings as bytes, without copying them."""
    if pa.types.is_large_string(column.type):
        return column.cast(pa.large_binary())
    return column.cast(pa.binary()) if pa.types.is_string(column.type) else column


def _json(rows: pa.RecordBatch) -> pa.Array:
    encode = msgspec.json.Encoder().encode
    # Arrow needs four times as long per row if it may have to convert a map to a dict.
    maps = "strict" if any("map<" in str(field.type) for field in rows.schema) else None
    return pa.array([encode(row) for row in rows.to_pylist(maps_as_pydicts=maps)], pa.binary())


def _indices(origin: Origin, first: int, count: int) -> pa.Array:
    """Return metadata that identifies the rows, a column at a time: no row is created in Python."""
    head = msgspec.json.encode(origin).decode().removesuffix("}") + ',"index":'
    indices = pa.array(range(first, first + count), pa.int64()).cast(pa.string())
    return pc.binary_join_element_wise(head, indices, "}", "").cast(pa.binary())
