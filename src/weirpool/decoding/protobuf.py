"""Protobuf: one message per item, of a type that a descriptor set describes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from ..errors import LocalError
from .columns import Columns, Get
from .rows import RowDecoder
from .times import MAX_TIME, MIN_TIME

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor
    from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorSet

__all__ = ["ProtobufSchema"]

Convert = Callable[[Any], Any]

# google.protobuf.FieldDescriptor.CPPTYPE_*.
_SCALARS: Final = {
    1: pa.int32(),
    2: pa.int64(),
    3: pa.int64(),
    # Without a type of 64 bits in Spark: larger values are malformed, and never negative.
    4: pa.int64(),
    5: pa.float64(),
    6: pa.float32(),
    7: pa.bool_(),
}
_ENUM: Final = 8
_STRING: Final = 9
_MESSAGE: Final = 10
_BYTES: Final = 12
"""FieldDescriptor.TYPE_BYTES"""
_WRAPPERS: Final = frozenset(
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
_TIMESTAMP: Final = "google.protobuf.Timestamp"


class ProtobufSchema:
    """A type of messages.

    Args:
        descriptors: A serialized `FileDescriptorSet`, as `protoc --include_imports --descriptor_set_out` writes it.
        message: The full name of the type.

    `LocalError` is raised if the type cannot be found.

    """

    def __init__(self, descriptors: bytes, message: str) -> None:
        from google.protobuf import descriptor_pb2
        from google.protobuf.message import DecodeError

        try:
            self._files = descriptor_pb2.FileDescriptorSet.FromString(descriptors)
            self._descriptor: Descriptor = _found(self._files, message)
        except KeyError:
            raise LocalError(f"the descriptor set has no message {message!r}; give its full name") from None
        except (DecodeError, TypeError) as error:
            raise LocalError(
                "this is not a complete descriptor set; write it with protoc --include_imports --descriptor_set_out"
            ) from error

    @cached_property
    def fields(self) -> pa.Schema:
        """All fields; `LocalError` if a message contains itself."""
        return self.select(field.name for field in self._descriptor.fields)

    def select(self, names: Iterable[str]) -> pa.Schema:
        """Return some of the fields; `LocalError` if the message has no such field, or a message contains itself."""
        fields = []
        for name in names:
            field = self._descriptor.fields_by_name.get(name)
            if field is None:
                raise LocalError(f"message {self._descriptor.full_name} has no field {name!r}")
            fields.append(pa.field(name, _type(field, (self._descriptor.full_name,))))
        return pa.schema(fields)

    def decoder(self, fields: pa.Schema) -> RowDecoder:
        """Return a decoder of these fields, which `select` has returned."""
        from google.protobuf.message import DecodeError
        from google.protobuf.message_factory import GetMessageClass

        # Fields that nobody reads are unknown ones, which are not checked.
        files = _without_others(self._files, self._descriptor, set(fields.names))
        descriptor = _found(files, self._descriptor.full_name)
        message = GetMessageClass(descriptor)
        columns = Columns(fields, _MessageFields(descriptor))
        return RowDecoder(message.FromString, message(), columns, errors=(DecodeError,))


def _found(files: FileDescriptorSet, message: str) -> Descriptor:
    """Return the type of this name. Raises KeyError if there is none, and TypeError if a file is missing."""
    from google.protobuf.descriptor_pool import DescriptorPool

    pool = DescriptorPool()
    for file in files.file:
        pool.Add(file)
    return pool.FindMessageTypeByName(message)


def _without_others(files: FileDescriptorSet, descriptor: Descriptor, names: set[str]) -> FileDescriptorSet:
    """Return the files with a type that has only these fields."""
    chosen = type(files)()
    chosen.CopyFrom(files)
    message = _definition(chosen, descriptor)
    for index in reversed(range(len(message.field))):
        if message.field[index].name not in names:
            del message.field[index]
    members = [field for field in message.field if field.HasField("oneof_index")]
    for index in reversed(range(len(message.oneof_decl))):
        if all(field.oneof_index != index for field in members):
            del message.oneof_decl[index]
            for field in members:
                field.oneof_index -= field.oneof_index > index
    return chosen


def _definition(files: FileDescriptorSet, descriptor: Descriptor) -> DescriptorProto:
    """Return the definition of a type in its file."""
    if descriptor.containing_type is not None:
        siblings = _definition(files, descriptor.containing_type).nested_type
    else:
        siblings = next(file for file in files.file if file.name == descriptor.file.name).message_type
    return next(each for each in siblings if each.name == descriptor.name)


class _MessageFields:
    """Access to the fields of a type of messages."""

    def __init__(self, descriptor: Descriptor) -> None:
        self._descriptor = descriptor

    def get(self, index: int, name: str) -> Get:
        """Return a function that gets a field; None if the message does not have it."""
        field = self._descriptor.fields_by_name[name]
        get = attrgetter(name)
        if _is_map(field):
            convert = _convert(field.message_type.fields_by_name["value"])
            return lambda message: {key: convert(value) for key, value in get(message).items()}
        convert = _convert(field)
        if field.is_repeated:
            return get if convert is _same else lambda message: [convert(value) for value in get(message)]
        if field.has_presence:
            return lambda message: convert(get(message)) if message.HasField(name) else None
        return get if convert is _same else lambda message: convert(get(message))

    def inner(self, name: str) -> _MessageFields:
        """Return access to the messages in a field."""
        field = self._descriptor.fields_by_name[name]
        if _is_map(field):
            field = field.message_type.fields_by_name["value"]
        return _MessageFields(field.message_type or self._descriptor)


def _same(value: Any) -> Any:
    return value


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _type(field: FieldDescriptor, outer: tuple[str, ...]) -> pa.DataType:
    """Return the column type of a field; `outer` are the messages around it."""
    if _is_map(field):
        entry = field.message_type.fields_by_name
        return pa.map_(_value_type(entry["key"], outer), _value_type(entry["value"], outer))
    kind = _value_type(field, outer)
    return pa.list_(kind) if field.is_repeated else kind


def _value_type(field: FieldDescriptor, outer: tuple[str, ...]) -> pa.DataType:
    if field.cpp_type == _ENUM:
        return pa.string()
    if field.cpp_type == _STRING:
        return pa.binary() if field.type == _BYTES else pa.string()
    if field.cpp_type != _MESSAGE:
        return _SCALARS[field.cpp_type]
    message = field.message_type
    if message.full_name == _TIMESTAMP:
        return pa.timestamp("us", tz="UTC")
    if message.full_name in _WRAPPERS:
        return _value_type(message.fields_by_name["value"], outer)
    if message.full_name in outer:
        raise LocalError(
            f"field {field.full_name} contains itself, which a column cannot; name the other fields to read, with "
            ".schema(...)"
        )
    return pa.struct([pa.field(each.name, _type(each, (*outer, message.full_name))) for each in message.fields])


def _convert(field: FieldDescriptor) -> Convert:
    """Return the conversion of a field's values to those of a column."""
    if field.enum_type is not None:
        names = {value.number: value.name for value in field.enum_type.values}
        return lambda number: names.get(number) or str(number)
    if field.message_type is None:
        return _same
    if field.message_type.full_name == _TIMESTAMP:
        return _microseconds
    return attrgetter("value") if field.message_type.full_name in _WRAPPERS else _same


def _microseconds(timestamp: Any) -> int:
    time: int = timestamp.seconds * 1_000_000 + timestamp.nanos // 1_000
    if not MIN_TIME <= time <= MAX_TIME:
        raise ValueError("a time is out of range")
    return time
