"""River's two encodings, which support bytes and integers of any size.

Its JSON has wrappers for them, ``{"$t": base64}`` and ``{"$b": decimal}``. Its MessagePack has bytes, and extension
type 0 for integers beyond 2^53-1. Most values need neither, and are encoded by msgspec.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec import inspect

from ...depth import json_too_deep, msgpack_too_deep
from ...errors import FrameError
from .values import decode_value, json_leaf, known_extension, msgpack_leaf, unwrapped

__all__ = ["RiverJson", "RiverMsgpack", "encodings"]

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


class RiverJson:
    """The counterpart of :mod:`msgspec.json`."""

    class Encoder:
        """Encodes values."""

        def encode(self, value: Any) -> bytes:
            """Return the bytes of a value."""
            cls: Any = type(value)
            if _has_no_bytes(cls):
                data = msgspec.json.encode(value)
                if _MANY_DIGITS.search(data) is None:
                    return data
            return msgspec.json.encode(_mapped(msgspec.to_builtins(value, builtin_types=_BYTES_TYPES), json_leaf))

    class Decoder:
        """Decodes values of one type, strictly."""

        def __init__(self, wanted: Any) -> None:
            self._wanted = wanted
            self._plain = msgspec.json.Decoder(wanted)
            self._has_any = _has_any(wanted)

        def decode(self, data: bytes) -> Any:
            """Return the value."""
            if self._has_any and _MANY_DIGITS.search(data) is not None:
                # An integer type takes no float, and msgspec has its own error for malformed data.
                with suppress(msgspec.ValidationError, FrameError):
                    return self._converted(decode_value(data, "json"))
            if b'"$' not in data:
                return self._plain.decode(data)
            return self._converted(_unwrapped(msgspec.json.decode(data)))

        def _converted(self, tree: Any) -> Any:
            return msgspec.convert(tree, self._wanted, builtin_types=_BYTES_TYPES, str_keys=True)


class RiverMsgpack:
    """The counterpart of :mod:`msgspec.msgpack`."""

    class Encoder:
        """Encodes values."""

        def encode(self, value: Any) -> bytes:
            """Return the bytes of a value."""
            try:
                data = msgspec.msgpack.encode(value)
            except OverflowError:
                # An integer of more than 64 bits.
                data = b"\xcf"
            if b"\xcf" not in data and b"\xd3" not in data:
                return data
            # MessagePack, Formats: these bytes start 64-bit integers, and may also occur in texts.
            return msgspec.msgpack.encode(_mapped(msgspec.to_builtins(value, builtin_types=_BYTES_TYPES), msgpack_leaf))

    class Decoder:
        """Decodes values of one type, strictly."""

        def __init__(self, wanted: Any) -> None:
            self._wanted = wanted
            self._plain = msgspec.msgpack.Decoder(wanted, ext_hook=_integer)

        def decode(self, data: bytes) -> Any:
            """Return the value."""
            try:
                return self._plain.decode(data)
            except msgspec.ValidationError:
                # msgspec does not accept an extension for an integer type.
                tree = msgspec.msgpack.decode(data, ext_hook=_integer)
                return msgspec.convert(tree, self._wanted, builtin_types=_BYTES_TYPES)


def encodings() -> dict[str, tuple[str, Any, Callable[[bytes], int]]]:
    """Return the encodings by MIME type; see :class:`penstock.protocols.ProtocolSpec`.

    The codec of a connection is not negotiated, so users need not specify these types.
    """
    return {
        "application/vnd.river+json": ("River's json", RiverJson, json_too_deep),
        "application/vnd.river+msgpack": ("River's msgpack", RiverMsgpack, msgpack_too_deep),
    }


@lru_cache(maxsize=1_024)
def _has_no_bytes(cls: type) -> bool:
    """Return True if values of a type cannot contain bytes."""
    try:
        return all(isinstance(leaf, _SIMPLE) for leaf in _leaves(inspect.type_info(cls), set()))
    except TypeError:
        return False


def _has_any(wanted: Any) -> bool:
    """Return True if values of a type may contain numbers of any type."""
    try:
        leaves = _leaves(inspect.type_info(wanted), set())
        return any(isinstance(leaf, inspect.AnyType) or leaf == inspect.CustomType(object) for leaf in leaves)
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
