"""River's two encodings: JSON and msgpack with bytes, and integers of any size, in its own way.

JSON has ``{"$t": base64}`` and ``{"$b": decimal}`` for them; msgpack has bytes, and extension type 0 for integers
beyond 2^53-1. Values that hold none of these are read and written as ever, and as fast.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from functools import lru_cache
from typing import Any, Final, cast

import msgspec
from msgspec import inspect as kinds

from ..errors import FrameError
from ..wire.river_values import decode_value, encode_value
from .formats import JSON, MSGPACK, Format

__all__ = ["RIVER"]

_WRAPPED: Final = re.compile(rb'"\$[tb]"')
_BIG: Final = re.compile(rb"[0-9]{16}")
_EXTENSION: Final = re.compile(rb"[\xc7-\xc9\xd4-\xd8]")
# MessagePack, Formats: uint 64 and int 64, of which only few values fit in 53 bits.
_WIDE: Final = re.compile(rb"[\xcf\xd3]")
_HARMLESS: Final = (
    kinds.BoolType, kinds.FloatType, kinds.IntType, kinds.StrType, kinds.NoneType, kinds.DateTimeType, kinds.DateType,
    kinds.TimeType, kinds.TimeDeltaType, kinds.UUIDType, kinds.DecimalType, kinds.EnumType, kinds.LiteralType,
)  # fmt: skip
BYTES: Final = (bytes, bytearray, memoryview)


class _Decoder:
    def __init__(self, plain: Any, wanted: Any, codec: str) -> None:
        self._plain = plain
        self._wanted = wanted
        self._codec = codec

    def decode(self, data: bytes) -> Any:
        """Return the value that `data` stands for; raises what decoders of msgspec raise."""
        if self._wanted is Any:
            # A schema is held against what JSON itself has.
            return self._plain.decode(data)
        if self._codec == "json":
            return self._own(data) if _WRAPPED.search(data) else self._plain.decode(data)
        try:
            return self._plain.decode(data)
        except msgspec.ValidationError:
            if _EXTENSION.search(data):
                return self._own(data)
            raise

    def _own(self, data: bytes) -> Any:
        try:
            return msgspec.convert(decode_value(data, self._codec), self._wanted)
        except FrameError as error:
            raise msgspec.DecodeError(error.message) from None


class _RiverFormat(Format):
    """One of them.

    Args:
        plain: The encoding that it is a variety of.

    """

    __slots__ = ("_plain",)

    def __init__(self, plain: Format, module: Any) -> None:
        super().__init__(plain.name, module, plain.check_depth)
        self._plain = plain
        self.encode = self._encode
        self.decoder = lambda wanted: _Decoder(plain.decoder(wanted), wanted, plain.name)

    def _encode(self, value: Any) -> bytes:
        try:
            data = self._plain.encode(value)
        except OverflowError:
            return self._own(value)
        if self.name == "json":
            own = not _plain_enough(cast(Hashable, type(value))) or _BIG.search(data) is not None
        else:
            own = _WIDE.search(data) is not None
        return self._own(value) if own else data

    def _own(self, value: Any) -> bytes:
        return encode_value(msgspec.to_builtins(value, builtin_types=BYTES, str_keys=True), self.name)


@lru_cache(maxsize=1024)
def _plain_enough(cls: Hashable) -> bool:
    """Whether values of a type hold no bytes."""
    try:
        return _harmless(kinds.type_info(cls), set())
    except TypeError:
        return False


def _harmless(info: kinds.Type, seen: set[type]) -> bool:
    if isinstance(info, _HARMLESS):
        return True
    if isinstance(info, kinds.Metadata):
        return _harmless(info.type, seen)
    if isinstance(info, kinds.UnionType):
        return all(_harmless(each, seen) for each in info.types)
    if isinstance(info, kinds.TupleType):
        return all(_harmless(each, seen) for each in info.item_types)
    if isinstance(info, kinds.DictType):
        return _harmless(info.value_type, seen)
    if isinstance(info, kinds.CollectionType):
        return _harmless(info.item_type, seen)
    if isinstance(info, kinds.StructType | kinds.DataclassType | kinds.TypedDictType | kinds.NamedTupleType):
        if info.cls in seen:
            return True
        seen.add(info.cls)
        return all(_harmless(field.type, seen) for field in info.fields)
    return False


RIVER: Final = {
    "application/vnd.river+json": _RiverFormat(JSON, msgspec.json),
    "application/vnd.river+msgpack": _RiverFormat(MSGPACK, msgspec.msgpack),
}
"""By what they are called here; on the wire nobody names them."""
