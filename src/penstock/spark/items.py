"""Rows of a DataFrame to items: what travels as data, and what as metadata.

Data is the column that the option `dataColumn` names; else the column `data`, if there is one that is binary or
string; else the whole row as a JSON object. Metadata is the column that `metadataColumn` names; else a JSON
object that says which row this is::

    {"query":"4a7d1ed4…","batch":12,"partition":0,"index":345}

The same row has the same four values however often it is sent, so a receiver that keeps them sees repeats.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from ..errors import LocalError
from .options import SinkOptions

__all__ = ["Origin", "Packer"]


class Origin(msgspec.Struct, frozen=True):
    """Where the rows of one task come from.

    Attributes:
        query: The streaming query's id; of a batch, an id made for it.
        batch: The micro-batch; 0 in a batch.
        partition: The task's part of it.

    """

    query: str
    batch: int
    partition: int


@dataclass(frozen=True, slots=True)
class Packer:
    """Makes items of rows.

    Attributes:
        data: The column that is an item's data; None: the whole row, as JSON.
        metadata: The column that is an item's metadata; None: which row it is.

    """

    data: str | None
    metadata: str | None

    @classmethod
    def of(cls, options: SinkOptions, schema: StructType) -> Packer:
        """Return the packer for a DataFrame.

        Raises:
            LocalError: The options name columns that are not there, or hold no bytes.

        """
        for option, name in (("dataColumn", options.data_column), ("metadataColumn", options.metadata_column)):
            if name is not None:
                _check(option, name, schema)
        data = options.data_column
        if data is None and "data" in schema.names and _holds_bytes(schema["data"]):
            data = "data"
        return cls(data, options.metadata_column)

    def pack(self, rows: pa.RecordBatch, origin: Origin, first: int) -> pa.RecordBatch:
        """Return rows as the columns `data` and `metadata`.

        Args:
            rows: Some rows of a task.
            origin: Of the task.
            first: The index of the first of these rows in it.

        Raises:
            LocalError: A row has no data.

        """
        data = _json(rows) if self.data is None else rows.column(self.data)
        if data.null_count:
            raise LocalError(
                f"{data.null_count} rows have a null in column {self.data!r}; fill or drop them: an item has data"
            )
        metadata = _indices(origin, first, rows.num_rows) if self.metadata is None else rows.column(self.metadata)
        return pa.RecordBatch.from_arrays([data, metadata], ["data", "metadata"])


def _check(option: str, name: str, schema: StructType) -> None:
    if name not in schema.names:
        near = get_close_matches(name, schema.names, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(schema.names)}"
        raise LocalError(f'option "{option}" is {name!r}, which is no column; {hint}')
    if not _holds_bytes(schema[name]):
        kind = schema[name].dataType.simpleString()
        raise LocalError(f'option "{option}" names column {name!r} of type {kind}; cast it to string or binary first')


def _holds_bytes(field: StructField) -> bool:
    return isinstance(field.dataType, BinaryType | StringType)


def _json(rows: pa.RecordBatch) -> pa.Array:
    encode = msgspec.json.Encoder().encode
    # Arrow takes four times as long over every row where it may have to make a dict of a map.
    maps = "strict" if any("map<" in str(field.type) for field in rows.schema) else None
    return pa.array([encode(row) for row in rows.to_pylist(maps_as_pydicts=maps)], pa.binary())


def _indices(origin: Origin, first: int, count: int) -> pa.Array:
    """Return metadata that tells rows apart, a column at a time: no row of it is made in Python."""
    head = msgspec.json.encode(origin).decode().removesuffix("}") + ',"index":'
    indices = pa.array(range(first, first + count), pa.int64()).cast(pa.string())
    return pc.binary_join_element_wise(head, indices, "}", "")
