"""River's two encodings, which support bytes and integers of any size.

Its JSON has wrappers for them, ``{"$t": base64}`` and ``{"$b": decimal}``. Its MessagePack has bytes, and extension
type 0 for integers beyond 2^53-1. Most values need neither, and are encoded by msgspec.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec import inspect

from ...values.conversion import Conversion
from ...values.decoder import Decode, Hook, Reader, converter
from ...values.json import JsonReader
from ...values.msgpack import MsgpackReader
from .values import json_leaf, known_extension, msgpack_leaf, unwrapped

__all__ = ["RiverJsonReader", "RiverMsgpackReader", "encode_json", "encode_msgpack", "encodings"]

_WRAPPER: Final = b'"$'
_MANY_DIGITS: Final = re.compile(rb"[0-9]{16}")
_BYTES_TYPES: Final = (bytes, bytearray, memoryview)
_SIMPLE: Final = (
    inspect.NoneType,
    inspect.BoolType,
    inspect.IntType,
    inspect.FloatType,
    inspect.StrType,
    inspect.EnumType,
    inspect.LiteralType,
    inspect.DateTimeType,
    inspect.DateType,
    inspect.TimeType,
    inspect.TimeDeltaType,
    inspect.UUIDType,
    inspect.DecimalType,
)


def encode_json(value: Any) -> bytes:
    """Return the bytes of a value in River's JSON."""
    cls: Any = type(value)
    if _has_no_bytes(cls):
        data = msgspec.json.encode(value)
        if _MANY_DIGITS.search(data) is None:
            return data
    return msgspec.json.encode(_mapped(msgspec.to_builtins(value, builtin_types=_BYTES_TYPES), json_leaf))


def encode_msgpack(value: Any) -> bytes:
    """Return the bytes of a value in River's MessagePack."""
    try:
        data = msgspec.msgpack.encode(value)
    except OverflowError:
        # An integer of more than 64 bits.
        data = b"\xcf"
    if 0xCF not in data and 0xD3 not in data:
        return data
    # MessagePack, Formats: these bytes start 64-bit integers, and may also occur in texts.
    return msgspec.msgpack.encode(_mapped(msgspec.to_builtins(value, builtin_types=_BYTES_TYPES), msgpack_leaf))


class RiverJsonReader(JsonReader):
    """Reads River's JSON."""

    def strict(self, wanted: Any, hook: Hook | None) -> Decode:
        """Return what decodes most data."""
        decode = super().strict(wanted, hook)
        convert = converter(wanted, hook, self.options)

        def strict(data: bytes) -> Any:
            # `in` takes several times longer: it first takes its operand for a number.
            return decode(data) if data.find(_WRAPPER) < 0 else convert(_unwrapped(msgspec.json.decode(data)))

        return strict

    def loose(self, conversion: Conversion) -> Decode:
        """Return what decodes data for a conversion."""
        decode = super().loose(conversion)
        return lambda data: decode(data) if data.find(_WRAPPER) < 0 else _unwrapped(msgspec.json.decode(data))


class RiverMsgpackReader(MsgpackReader):
    """Reads River's MessagePack."""

    def __init__(self) -> None:
        super().__init__(extension=_integer)

    def strict(self, wanted: Any, hook: Hook | None) -> Decode:
        """Return what decodes most data."""
        decode = super().strict(wanted, hook)
        decode_tree = super().strict(Any, None)
        convert = converter(wanted, hook, self.options)

        def strict(data: bytes) -> Any:
            try:
                return decode(data)
            except msgspec.ValidationError:
                # msgspec does not accept an extension for an integer type.
                return convert(decode_tree(data))

        return strict


def encodings() -> dict[str, tuple[str, Callable[[Any], bytes], Reader]]:
    """Return the encodings by MIME type; see :class:`penstock.protocols.ProtocolSpec`.

    The codec of a connection is not negotiated, so users need not specify these types.
    """
    return {
        "application/vnd.river+json": ("River's json", encode_json, RiverJsonReader()),
        "application/vnd.river+msgpack": ("River's msgpack", encode_msgpack, RiverMsgpackReader()),
    }


@lru_cache(maxsize=1_024)
def _has_no_bytes(cls: type) -> bool:
    """Return True if values of a type cannot contain bytes."""
    try:
        return _is_plain(inspect.type_info(cls), set())
    except TypeError:
        return False


def _is_plain(info: Any, seen: set[int]) -> bool:
    if isinstance(info, _SIMPLE):
        return True
    if id(info) in seen:
        return True
    seen.add(id(info))
    if hasattr(info, "fields"):
        parts = [field.type for field in info.fields]
    elif isinstance(info, inspect.UnionType):
        parts = list(info.types)
    elif isinstance(info, inspect.TupleType):
        parts = list(info.item_types)
    elif isinstance(info, inspect.DictType):
        parts = [info.key_type, info.value_type]
    elif isinstance(info, inspect.CollectionType):
        parts = [info.item_type]
    else:
        return False
    return all(_is_plain(part, seen) for part in parts)


def _mapped(value: Any, leaf: Callable[[Any], Any]) -> Any:
    """Return a value with each of its leaves as `leaf` returns it."""
    if isinstance(value, dict):
        return {name: _mapped(inner, leaf) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_mapped(inner, leaf) for inner in value]
    return leaf(value)


def _unwrapped(value: Any) -> Any:
    """Return a value with bytes and integers in place of their wrappers.

    A user's object that only looks like a wrapper stays unchanged.
    """
    if isinstance(value, dict):
        return unwrapped({name: _unwrapped(inner) for name, inner in value.items()})
    if isinstance(value, list):
        return [_unwrapped(inner) for inner in value]
    return value


def _integer(code: int, data: memoryview) -> int:
    try:
        number = known_extension(code, data)
    except ValueError:
        number = False
    if isinstance(number, bool):
        raise msgspec.ValidationError(f"Expected an integer in an extension of type 0, got one of type {code}")
    return number
