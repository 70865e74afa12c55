"""Items from the rows of a data frame."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
import pyarrow as pa

from ..decoding.times import in_microseconds
from ..errors import LocalError
from ..payload import Payload

__all__ = ["rows"]

SLICE_ROWS: Final = 1_024
"""Rows that are converted at once."""
ITEM_BYTES: Final = 1 << 20
"""About the largest Arrow item: larger ones delay other streams, and gain nothing."""


def rows(frame: Any, encoding: str = "json", *, rows_per_item: int = SLICE_ROWS) -> Iterator[Payload]:
    """Return the rows of a data frame as items, to send with an upload or channel, or to return from a handler.

    Rows are converted when they are sent, so a large or lazy source needs little memory.

    Args:
        frame: A DataFrame of Polars or pandas, a table, record batch or reader of pyarrow, or any object with
            ``__arrow_c_stream__``, such as a relation of DuckDB. An index of pandas is sent if it has a name.
        encoding: "json", "msgpack" or "cbor": each item is one row, an object with a field for each column. "arrow":
            each item is an Arrow IPC stream of several rows, which is by far the fastest, and keeps all types.
        rows_per_item: For "arrow": the most rows of an item. Items have about 1 MiB at most.

    Raises:
        LocalError: `frame` is not a data frame, the encoding is unknown, or it is "cbor" and the package cbor2 is not
            installed.

    """
    if rows_per_item < 1:
        raise LocalError(f"rows_per_item is {rows_per_item}; it must be at least 1")
    reader = _reader(frame)
    if encoding == "arrow":
        return _arrow_items(reader, rows_per_item)
    return _row_items(reader, _encoder(encoding))


def _encoder(encoding: str) -> Callable[[Any], bytes]:
    """Return what encodes a row."""
    if encoding == "json":
        return msgspec.json.encode
    if encoding == "msgpack":
        return msgspec.msgpack.encode
    if encoding != "cbor":
        raise LocalError(f"the encoding is {encoding!r}; use json, msgpack, cbor or arrow")
    from ..values import cbor

    # Whether the package is installed should be known before the first row.
    cbor.encode(None)
    return cbor.encode


def _reader(frame: Any) -> pa.RecordBatchReader:
    if isinstance(frame, pa.RecordBatchReader):
        return frame
    if hasattr(frame, "collect") and not hasattr(frame, "__arrow_c_stream__"):
        # A lazy frame of Polars.
        frame = frame.collect()
    if isinstance(frame, pa.RecordBatch):
        return pa.RecordBatchReader.from_batches(frame.schema, [frame])
    if not hasattr(frame, "__arrow_c_stream__"):
        what = type(frame).__name__
        raise LocalError(f"a {what} is not a data frame; pass one of Polars, pandas or pyarrow")
    index = getattr(getattr(frame, "index", None), "names", None)
    if index is not None and list(index) == [None]:
        frame = frame.reset_index(drop=True)
    try:
        return pa.RecordBatchReader.from_stream(frame)
    except pa.ArrowException as error:
        raise LocalError(f"a {type(frame).__name__} has no columns: {error}; pass a data frame") from None


def _row_items(reader: pa.RecordBatchReader, encode: Callable[[Any], bytes]) -> Iterator[Payload]:
    schema = pa.schema([pa.field(field.name, _in_microseconds(field.type)) for field in reader.schema])
    for batch in reader:
        for start in range(0, batch.num_rows, SLICE_ROWS):
            for data in _encoded(batch.slice(start, SLICE_ROWS), schema, encode):
                yield Payload(data)


def _encoded(part: pa.RecordBatch, schema: pa.Schema, encode: Callable[[Any], bytes]) -> list[bytes]:
    try:
        table = pa.Table.from_batches([part])
        if table.schema.types != schema.types:
            columns = [in_microseconds(column, field.type) for column, field in zip(part.columns, schema, strict=True)]
            table = pa.Table.from_arrays(columns, part.schema.names).cast(schema, safe=False)
        return list(map(encode, table.to_pylist(maps_as_pydicts="strict")))
    except (pa.ArrowException, KeyError, TypeError, ValueError, OverflowError) as error:
        raise LocalError(f"a row cannot be encoded: {error}; convert the column, or use encoding='arrow'") from None


def _arrow_items(reader: pa.RecordBatchReader, rows_per_item: int) -> Iterator[Payload]:
    is_empty = True
    for batch in reader:
        count = max(1, min(rows_per_item, batch.num_rows * ITEM_BYTES // max(batch.nbytes, 1)))
        for start in range(0, batch.num_rows, count):
            is_empty = False
            yield _arrow_item(reader.schema, batch.slice(start, count))
    if is_empty:
        # The receiver knows the columns, too.
        yield _arrow_item(reader.schema)


def _arrow_item(schema: pa.Schema, *batches: pa.RecordBatch) -> Payload:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return Payload(sink.getvalue().to_pybytes())


def _in_microseconds(kind: pa.DataType) -> pa.DataType:
    """Return a type whose times are those of Python, which have no nanoseconds."""
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", tz=kind.tz)
    if pa.types.is_duration(kind):
        return pa.duration("us")
    if pa.types.is_time64(kind):
        return pa.time64("us")
    if pa.types.is_struct(kind):
        inner = [pa.field(field.name, _in_microseconds(field.type)) for field in kind]
        return kind if [field.type for field in inner] == [field.type for field in kind] else pa.struct(inner)
    if pa.types.is_map(kind):
        item = _in_microseconds(kind.item_type)
        return kind if item == kind.item_type else pa.map_(kind.key_type, item)
    if not hasattr(kind, "value_type"):
        return kind
    value = _in_microseconds(kind.value_type)
    # Arrow cannot cast all lists and dictionaries, so that those without times stay as they are.
    if value == kind.value_type:
        return kind
    if pa.types.is_dictionary(kind):
        return value
    return pa.list_(value, kind.list_size) if pa.types.is_fixed_size_list(kind) else pa.list_(value)
