"""Arrow: one IPC stream per item, or one record batch message without a schema. An item has any number of rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from .bodies import batch_size
from .decoded import MAX_BLOCK_BYTES, MAX_BLOCK_ROWS, Decoded, reason
from .rows import ITEM_ERRORS
from .times import check_times, has_times, in_microseconds

__all__ = ["ArrowDecoder"]

MAX_ITEM_BYTES: Final = 64 << 20
"""Of an item's rows, decompressed."""
MAX_ITEM_ROWS: Final = 1 << 20
"""A column of nulls, or one that the item does not have, claims any number of rows in a few bytes."""

MAX_ITEM_MESSAGES: Final = 1_000
"""Each costs some microseconds a column, even without rows."""

MAX_SCALES: Final = 38
"""Digits that a decimal may have to be moved by: as many as Spark's decimals have."""
_ERRORS: Final = (*ITEM_ERRORS, pa.ArrowException, OSError)
_BINARY: Final = frozenset({pa.binary().id, pa.large_binary().id, pa.binary(1).id})
_FAMILIES: Final = (
    (pa.types.is_integer, pa.types.is_integer),
    (pa.types.is_floating, lambda kind: pa.types.is_floating(kind) or pa.types.is_integer(kind)),
    (pa.types.is_boolean, pa.types.is_boolean),
    (pa.types.is_string, lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind)),
    (pa.types.is_binary, lambda kind: kind.id in _BINARY),
    (pa.types.is_date, pa.types.is_date),
    (pa.types.is_timestamp, pa.types.is_timestamp),
)
"""The types of a column, and those that convert to it. Arrow itself would also parse strings, for example."""


class ArrowDecoder:
    """Decodes items whose columns have these names and compatible types; others are ignored, and missing ones null."""

    def __init__(self, fields: pa.Schema) -> None:
        self._fields = fields

    def decode(self, items: pa.BinaryArray) -> Iterator[Decoded]:
        """Yield the rows of all items. A malformed item has one row of nulls."""
        block = _Block(self._fields)
        for item in items:
            malformed = None
            try:
                batches = self._batches(item.as_buffer() or pa.py_buffer(b""))
            except _ERRORS as error:
                batches, malformed = [(1, self._nothing())], reason(error)
            block.add(batches, malformed)
            if block.full:
                yield block.decoded()
                block = _Block(self._fields)
        if block.count:
            yield block.decoded()

    def _batches(self, item: pa.Buffer) -> list[tuple[int, pa.RecordBatch]]:
        """Return the record batches of an item, with the columns of the fields, and the rows of each."""
        messages = _messages(item)
        if messages[0].type == "record batch":
            batches = [pa.ipc.read_record_batch(message, self._fields) for message in messages]
        else:
            with pa.ipc.open_stream(item) as reader:
                batches = list(reader)
        return [(batch.num_rows, self._converted(batch)) for batch in batches]

    def _converted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        batch.validate()
        columns = [self._column(batch, field) for field in self._fields]
        return pa.RecordBatch.from_arrays(columns, schema=self._fields)

    def _column(self, batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
        found = batch.schema.get_all_field_indices(field.name)
        if not found:
            return pa.nulls(batch.num_rows, field.type)
        if len(found) > 1:
            raise ValueError(f"the item has {len(found)} columns {field.name!r}")
        column = _wanted(batch.column(found[0]), field.type)
        # Arrow trusts offsets and values until it is asked to validate them. Nobody reads the others.
        column.validate(full=True)
        if column.type != field.type:
            column = in_microseconds(_plain(column), field.type)
        if column.type != field.type and not _converts(column.type, field.type):
            raise ValueError(f"column {field.name!r} has another type than {field.type}")
        try:
            found = pc.cast(column, options=pc.CastOptions(field.type, allow_time_truncate=True))
            if has_times(field.type):
                check_times(found)
        except (pa.ArrowInvalid, ValueError):
            # Arrow's message quotes the value.
            raise ValueError(f"a value of column {field.name!r} does not fit {field.type}") from None
        return found

    def _nothing(self) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([pa.nulls(1, field.type) for field in self._fields], schema=self._fields)


class _Block:
    """The rows of consecutive items, until they are enough."""

    def __init__(self, fields: pa.Schema) -> None:
        self.count = 0
        self._fields = fields
        self._batches: list[pa.RecordBatch] = []
        self._rows: list[int] = []
        self._bytes = 0
        self._malformed: dict[int, str] = {}

    @property
    def full(self) -> bool:
        """True if the block should be yielded."""
        return len(self._rows) >= MAX_BLOCK_ROWS or self._bytes >= MAX_BLOCK_BYTES

    def add(self, batches: list[tuple[int, pa.RecordBatch]], malformed: str | None) -> None:
        """Add the rows of an item; `malformed` is the reason if it has only a row of nulls."""
        if malformed is not None:
            self._malformed[len(self._rows)] = malformed
        for rows, batch in batches:
            self._batches.append(batch)
            # A batch without columns does not know how many rows it has.
            self._rows += [self.count] * rows
            self._bytes += batch.nbytes
        self.count += 1

    def decoded(self) -> Decoded:
        """Return the rows."""
        empty = pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in self._fields], schema=self._fields)
        fields = pa.concat_batches([empty, *self._batches])
        return Decoded(self.count, fields, self._malformed, pa.array(self._rows, pa.int32()))


def _messages(item: pa.Buffer) -> list[pa.ipc.Message]:
    """Return the messages of an item; `ValueError` if they claim too much, or are not all of it."""
    source = pa.BufferReader(item)
    messages: list[pa.ipc.Message] = []
    rows = size = 0
    for message in pa.ipc.MessageReader.open_stream(source):
        messages.append(message)
        if message.type != "schema":
            more, body = batch_size(message)
            rows, size = rows + more, size + body
        if rows > MAX_ITEM_ROWS or size > MAX_ITEM_BYTES or len(messages) > MAX_ITEM_MESSAGES:
            raise ValueError(
                f"an item has at most {MAX_ITEM_ROWS} rows of {MAX_ITEM_BYTES} bytes in {MAX_ITEM_MESSAGES} messages"
            )
    if not messages or source.tell() != len(item):
        raise ValueError("the item is not an Arrow IPC stream")
    return messages


def _wanted(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return a column of a received batch, so without an offset, whose structs have the members of a type alone."""
    if pa.types.is_list(kind) and _is_list(column.type):
        return _wanted_elements(column, kind)
    if not pa.types.is_struct(kind) or not pa.types.is_struct(column.type):
        return column
    indices = [index for member in kind for index in column.type.get_all_field_indices(member.name)]
    children = [_wanted(column.field(index), kind.field(column.type.field(index).name).type) for index in indices]
    fields = [column.type.field(index).with_type(child.type) for index, child in zip(indices, children, strict=True)]
    return pa.Array.from_buffers(pa.struct(fields), len(column), column.buffers()[:1], children=children)


def _wanted_elements(column: pa.Array, kind: pa.DataType) -> pa.Array:
    elements = _wanted(column.values, kind.value_type)
    if elements.type == column.type.value_type:
        return column
    field = column.type.value_field.with_type(elements.type)
    if pa.types.is_fixed_size_list(column.type):
        made, buffers = pa.list_(field, column.type.list_size), 1
    else:
        made, buffers = (pa.large_list if pa.types.is_large_list(column.type) else pa.list_)(field), 2
    return pa.Array.from_buffers(made, len(column), column.buffers()[:buffers], children=[elements])


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _plain(column: pa.Array) -> pa.Array:
    """Return a column without indirection; `ValueError` if that would be too large."""
    if isinstance(column.type, pa.BaseExtensionType):
        column = column.storage
    if pa.types.is_dictionary(column.type):
        values, indices = column.dictionary, column.indices
        if pa.types.is_nested(values.type):
            raise ValueError("a dictionary of nested values is not supported")
        if not pa.types.is_primitive(values.type):
            size = pc.sum(pc.binary_length(values).take(indices)).as_py() or 0
            if size > MAX_ITEM_BYTES:
                raise ValueError(f"the values of a dictionary-encoded column take more than {MAX_ITEM_BYTES} bytes")
        return values.take(indices)
    return column


def _converts(kind: pa.DataType, wanted: pa.DataType) -> bool:
    """Return True if values of a type are values of a column's type, though perhaps of another width."""
    if pa.types.is_null(kind):
        return True
    if pa.types.is_struct(wanted):
        return pa.types.is_struct(kind) and _members_convert(kind, wanted)
    if pa.types.is_list(wanted):
        return _is_list(kind) and _converts(kind.value_type, wanted.value_type)
    if pa.types.is_decimal(wanted):
        # Arrow looks up the power of ten without a check, and an item declares any scale.
        return bool(pa.types.is_decimal(kind) and abs(kind.scale - wanted.scale) <= MAX_SCALES)
    if pa.types.is_map(wanted):
        is_map = pa.types.is_map(kind)
        return is_map and _converts(kind.key_type, wanted.key_type) and _converts(kind.item_type, wanted.item_type)
    return any(is_wanted(wanted) and fits(kind) for is_wanted, fits in _FAMILIES)


def _members_convert(kind: pa.DataType, wanted: pa.DataType) -> bool:
    """Return True if all members of a struct that are wanted convert; Arrow adds missing ones as nulls."""
    names = [(kind.get_field_index(member.name), member) for member in wanted]
    return all(at < 0 or _converts(kind.field(at).type, member.type) for at, member in names)
