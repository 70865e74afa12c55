"""River's two encodings, which support bytes and integers of any size.

Its JSON has wrappers for them, ``{"$t": base64}`` and ``{"$b": decimal}``. Its MessagePack has bytes, and extension
type 0 for integers beyond 2^53-1. Most values need neither, and are encoded by msgspec.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Set
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec import inspect

from ...values.conversion import Conversion, Kind
from ...values.decoder import Decode, Doubts, Hook, Reader, converter
from ...values.forms import OPEN
from ...values.json import JSON_FORMS, JsonReader
from ...values.msgpack import TIMESTAMP, MsgpackReader
from .grammar import MAX_NUMBER
from .values import json_integer, json_leaf, known_extension, msgpack_leaf, unwrapped

__all__ = ["RiverJsonReader", "RiverMsgpackReader", "encode_json", "encode_msgpack", "encodings"]

_WRAPPER: Final = b'"$'
_MANY_DIGITS: Final = re.compile(rb"[0-9]{16}|[0-9]e(?:1[5-9]|20)")
"""What may be a number beyond 2^53-1."""
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
    if 0xCF not in data and 0xD3 not in data and TIMESTAMP.search(data) is None:
        return data
    # MessagePack, Formats: these bytes start 64-bit integers and timestamps, and may also occur in texts.
    return msgspec.msgpack.encode(_mapped(msgspec.to_builtins(value, builtin_types=_BYTES_TYPES), msgpack_leaf))


def _exact(value: Any) -> Any:
    """Return a number of JavaScript as the integer that its digits are, as an integer type wants it."""
    if type(value) is not Decimal:
        return value
    is_integer = value.as_tuple().exponent == 0 and abs(value) > MAX_NUMBER
    return int(value) if is_integer else float(value)


def _number(value: Any) -> Any:
    """Return an integer with the digits of one of JavaScript's large numbers as floats are read at first."""
    return Decimal(value) if type(value) is int and type(json_integer(str(value))) is float else value


class RiverJsonReader(JsonReader):
    """Reads River's JSON. Where a type is open, JavaScript's numbers beyond 2^53-1 are floats, and others integers."""

    def __init__(self) -> None:
        super().__init__({**JSON_FORMS, inspect.IntType: lambda _: _exact})

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
        is_open = not OPEN.isdisjoint(conversion.kinds)
        decode, decode_tree = super().loose(conversion), super().loose(Conversion(Any, self.forms))

        def loose(data: bytes) -> Any:
            if is_open and _MANY_DIGITS.search(data) is not None:
                return _unwrapped(decode_tree(data), _number)
            return decode(data) if data.find(_WRAPPER) < 0 else _unwrapped(decode_tree(data))

        return loose

    def doubts(self, kinds: Set[Kind]) -> Doubts | None:
        """Return what tells data that `strict` may decode wrongly: times, and large numbers where a type is open."""
        usual = super().doubts(kinds)
        if OPEN.isdisjoint(kinds):
            return usual
        return lambda data: _MANY_DIGITS.search(data) is not None or (usual is not None and usual(data))


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
    """Return the encodings by MIME type; see :class:`weirpool.protocols.ProtocolSpec`.

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
        return all(isinstance(leaf, _SIMPLE) for leaf in _leaves(inspect.type_info(cls), set()))
    except TypeError:
        return False


def _leaves(info: Any, seen: set[int]) -> Iterator[Any]:
    """Yield the types in a type that have no parts."""
    if id(info) in seen:
        return
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
        yield info
        return
    for part in parts:
        yield from _leaves(part, seen)


def _mapped(value: Any, leaf: Callable[[Any], Any]) -> Any:
    """Return a value with each of its leaves as `leaf` returns it."""
    if isinstance(value, dict):
        return {name: _mapped(inner, leaf) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_mapped(inner, leaf) for inner in value]
    return leaf(value)


def _unwrapped(value: Any, leaf: Callable[[Any], Any] | None = None) -> Any:
    """Return a value with bytes and integers in place of their wrappers, and other leaves as `leaf` returns them.

    A user's object that only looks like a wrapper stays unchanged.
    """
    if isinstance(value, dict):
        return unwrapped({name: _unwrapped(inner, leaf) for name, inner in value.items()})
    if isinstance(value, list):
        return [_unwrapped(inner, leaf) for inner in value]
    return value if leaf is None else leaf(value)


def _integer(code: int, data: memoryview) -> int:
    try:
        number = known_extension(code, data)
    except ValueError:
        number = False
    if isinstance(number, bool):
        raise msgspec.ValidationError(f"Expected an integer in an extension of type 0, got one of type {code}")
    return number
