"""Runs of payloads to Arrow record batches and back. Requires pyarrow, so import this module only when needed.

A batch made here has two binary columns: `data`, never null, and `metadata`, null if an item has none.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any, Final

import pyarrow
from pyarrow import types

from ..errors import LocalError
from ..payload import MAX_RUN_BYTES
from .buffers import ColumnBuffers
from .rows import RowBuffers
from .widths import SHARED_ROWS, BufferedRun, WidthRows

__all__ = ["BufferedRun", "ColumnBuilder", "RowBuffers", "WidthRows", "batch_of", "rows_of"]

SCHEMA: Final = pyarrow.schema([("data", pyarrow.binary()), ("metadata", pyarrow.binary())])


class ColumnBuilder(ColumnBuffers):
    """Collects items into record batches; items of runs need no object each."""

    __slots__ = ()

    def finish(self) -> pyarrow.RecordBatch:
        """Remove and return the collected items as a record batch."""
        return batch_of(self.take())


def batch_of(taken: BufferedRun) -> pyarrow.RecordBatch:
    """Return what `ColumnBuilder.take` has returned as a record batch."""
    data = _binary(taken.rows, None, taken.data_ends, taken.data, 0)
    if taken.nulls == taken.rows:
        metadata = _nulls(taken.rows)
    else:
        metadata = _binary(taken.rows, taken.valid, taken.metadata_ends, taken.metadata, taken.nulls)
    return pyarrow.RecordBatch.from_arrays([data, metadata], schema=SCHEMA)


@cache
def _shared_nulls() -> pyarrow.Array:
    return pyarrow.nulls(SHARED_ROWS, pyarrow.binary())


@lru_cache(8)
def _some_nulls(rows: int) -> pyarrow.Array:
    return _shared_nulls().slice(0, rows)


def _nulls(rows: int) -> pyarrow.Array:
    """Return a binary array of nulls; arrays of up to `SHARED_ROWS` share their memory."""
    return _some_nulls(rows) if rows <= SHARED_ROWS else pyarrow.nulls(rows, pyarrow.binary())


def _binary(rows: int, valid: Any, ends: Any, values: Any, nulls: int) -> pyarrow.Array:
    """Return a binary array that uses the buffers without copying them."""
    buffers = [pyarrow.py_buffer(valid) if nulls else None, pyarrow.py_buffer(ends), pyarrow.py_buffer(values)]
    return pyarrow.Array.from_buffers(pyarrow.binary(), rows, buffers, nulls)


def rows_of(batch: pyarrow.RecordBatch | pyarrow.Array) -> RowBuffers | WidthRows:
    """Return the rows of a record batch, or the elements of an array, as an object from which runs can be made.

    Args:
        batch: A batch with a column `data`, or with a single column of binaries, strings or fixed-width numbers.
            A column `metadata` is optional. Numbers are sent in Arrow's memory format, which is little-endian on
            almost all machines.

    Raises:
        LocalError: There are no such columns, or the data has nulls.

    """
    if isinstance(batch, pyarrow.Array):
        batch = pyarrow.record_batch([batch], ["data"])
    name = _data_name(batch.schema)
    annotated = "metadata" in batch.schema.names and batch.column("metadata").null_count < batch.num_rows
    width = _width(batch.schema.field(name).type) if batch.schema.names.count(name) == 1 else 0
    if width and not annotated:
        return _rows_of_width(batch.column(name), width)
    if width:
        index = batch.schema.get_field_index(name)
        batch = batch.set_column(index, name, batch.column(name).view(pyarrow.binary(width)))
    data = _column(batch, name)
    if data.null_count:
        raise _nulls_error(data)
    values, ends, _ = _views(data)
    if annotated:
        metadata = _column(batch, "metadata")
        return RowBuffers(values, ends, *_views(metadata), metadata.offset)
    return RowBuffers(values, ends, None, None, None, 0)


def _nulls_error(column: pyarrow.Array) -> LocalError:
    return LocalError(f"{column.null_count} rows have null as data; fill or drop them, because every item has data")


def _width(type: pyarrow.DataType) -> int:
    """Return the size of the values of a fixed-width type in bytes; 0 for other types."""
    if types.is_integer(type) or types.is_floating(type) or types.is_temporal(type) or types.is_decimal(type):
        return int(type.bit_width) // 8
    return int(type.byte_width) if types.is_fixed_size_binary(type) else 0


def _rows_of_width(column: pyarrow.Array, width: int) -> WidthRows:
    """Return the rows of a column of numbers, without copying them."""
    if column.null_count:
        raise _nulls_error(column)
    values = column.buffers()[1]
    view = memoryview(b"") if values is None else memoryview(values).cast("B")
    return WidthRows(view[column.offset * width : (column.offset + len(column)) * width], width)


def _data_name(schema: pyarrow.Schema) -> str:
    """Return the name of the column that holds the data."""
    if "data" in schema.names:
        return "data"
    candidates = [field.name for field in schema if field.name != "metadata" and _holds_bytes(field.type)]
    if not candidates:
        candidates = [field.name for field in schema if field.name != "metadata" and _width(field.type)]
    if len(candidates) != 1:
        columns = ", ".join(f"{field.name}: {field.type}" for field in schema) or "none"
        raise LocalError(
            f"no single column for the data: name it `data`, and make it binary, string or numbers; there are {columns}"
        )
    return str(candidates[0])


def _holds_bytes(type: pyarrow.DataType) -> bool:
    """Return whether the values of this type are bytes or strings."""
    return bool(
        types.is_binary(type)
        or types.is_string(type)
        or types.is_large_binary(type)
        or types.is_large_string(type)
        or types.is_fixed_size_binary(type)
        or types.is_binary_view(type)
        or types.is_string_view(type)
    )


def _column(batch: pyarrow.RecordBatch, name: str) -> pyarrow.Array:
    """Return one column as a binary array with 32-bit offsets."""
    if batch.schema.names.count(name) > 1:
        raise LocalError(
            f"the record batch has {batch.schema.names.count(name)} columns named {name}; rename all but one"
        )
    column = batch.column(name)
    if types.is_binary(column.type):
        return column
    if types.is_null(column.type):
        return column.cast(pyarrow.binary())
    if not _holds_bytes(column.type):
        raise LocalError(f"column {name} has type {column.type}; convert it to binary or string, such as JSON")
    try:
        return column.cast(pyarrow.binary())
    except pyarrow.ArrowInvalid as error:
        raise LocalError(
            f"column {name} has more than the maximum of {MAX_RUN_BYTES} bytes; send fewer rows at once"
        ) from error


def _views(column: pyarrow.Array) -> tuple[memoryview, memoryview, memoryview | None]:
    """Return the bytes of a binary array, its 32-bit offsets, and its validity bits (None if all rows are valid)."""
    valid, ends, values = column.buffers()
    empty = memoryview(b"")
    first = column.offset
    # An array without rows may have no buffers.
    offsets = (
        memoryview(bytes(4))
        if ends is None or len(column) == 0
        else memoryview(ends)[4 * first : 4 * (first + len(column) + 1)]
    )
    return (
        empty if values is None else memoryview(values).cast("B"),
        offsets.cast("B").cast("i"),
        None if valid is None or column.null_count == 0 else memoryview(valid).cast("B"),
    )
