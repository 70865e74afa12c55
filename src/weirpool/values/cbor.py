"""Reads and writes CBOR, as Spring's Jackson and libraries of other languages do.

Read are also identifiers as 16 bytes, decimal fractions, typed arrays, and times as CBOR's tags. Written are bytes as
bytes, and times, identifiers and decimals as texts.
"""

from __future__ import annotations

import logging
from collections.abc import Set
from functools import cache, partial
from importlib import import_module
from typing import Any, Final

import msgspec

from .._build import pip_command
from ..depth import MAX_DEPTH, cbor_too_deep, count_cbor
from ..errors import LocalError
from .cbor_pruning import pruned
from .cbor_tags import DECODERS
from .conversion import Conversion, Forms, Kind
from .decoder import Decode, Doubts, Hook, converter
from .forms import BINARY_FORMS, OPEN, TIMES
from .precision import contains
from .rewriting import usual_cbor

__all__ = ["CborReader", "check_installed", "encode"]

logger = logging.getLogger("weirpool.values")

MISSING: Final = f"CBOR needs the package cbor2; run: {pip_command('cbor')}"
_NATIVE: Final = (bytes, bytearray, memoryview)
"""Types that CBOR has, and JSON does not."""
# RFC 8949, Simple Values. No text contains this byte.
_UNDEFINED: Final = b"\xf7"
# A decimal fraction with nanoseconds: how Jackson writes an instant. As a float, it could be of the next day.
_NANOSECONDS: Final = b"\xc4\x82\x28"

# The item is put into an array without a length, in an array of two, and a constant after it shows that it ends where
# its value ends: cbor2 does not report data that it has not read.
_BEFORE: Final = b"\x82\x9f"
_BREAK: Final = b"\xff"
_END: Final = 0x57656972706F6F6C
_END_BYTES: Final = b"\x1b" + _END.to_bytes(8, "big")
_MALFORMED: Final = "CBOR is malformed, or has a tag or a key that is not supported"


def check_installed() -> None:
    """Raise ImportError if the package cbor2 is not installed."""
    import_module("cbor2")


def encode(value: Any) -> bytes:
    """Return the bytes of a value.

    Raises:
        LocalError: The package cbor2 is not installed.

    """
    try:
        from cbor2 import dumps
    except ImportError:
        raise LocalError(MISSING) from None
    # As in JSON, keys are texts, which Jackson also reads as numbers.
    data: bytes = dumps(msgspec.to_builtins(value, builtin_types=_NATIVE, str_keys=True))
    return data


class CborReader:
    """Reads CBOR. Equal keys in a map are refused. Errors do not quote the data.

    Args:
        forms: The forms that values have.

    """

    options: Final = {"builtin_types": (bytes,), "str_keys": True}
    # Keys are checked where they are read.
    too_deep = staticmethod(partial(cbor_too_deep, nested_keys=True))
    count = staticmethod(count_cbor)

    def __init__(self, forms: Forms = BINARY_FORMS) -> None:
        self.forms = forms

    def strict(self, wanted: Any, hook: Hook | None) -> Decode:
        """Return what decodes most data. If the package cbor2 is not installed, it refuses all data."""
        # Refuses types that msgspec does not support.
        msgspec.msgpack.Decoder(wanted, dec_hook=hook)
        convert = converter(wanted, hook, self.options)
        # Other keys than texts and bytes may be chosen so that their hashes collide, which makes a map take quadratic
        # time: they are checked before they are read.
        read: Decode | None = None

        def decode(data: bytes) -> Any:
            nonlocal read
            if read is None:
                read = _reader(text_keys=True)
            return convert(read(data))

        return decode

    def loose(self, conversion: Conversion) -> Decode:
        """Return what decodes data for a conversion."""

        def decode(data: bytes) -> Any:
            if self.too_deep(data) >= 0:
                raise msgspec.DecodeError(f"nested more than {MAX_DEPTH} levels deep")
            try:
                return _read(usual_cbor(data))
            except ValueError:
                if (rest := pruned(data, conversion.fields)) == data:
                    raise
            return _read(usual_cbor(rest))

        return decode

    def doubts(self, kinds: Set[Kind]) -> Doubts | None:
        """Return what tells data that `strict` may decode wrongly: times with digits beyond the microsecond.

        Where the type is open, this is also `undefined`.
        """
        if not OPEN.isdisjoint(kinds):
            return partial(contains, (_UNDEFINED, _NANOSECONDS))
        return None if TIMES.isdisjoint(kinds) else partial(contains, (_NANOSECONDS,))


def _read(data: bytes) -> Any:
    """Return the value of data whose keys are texts and bytes, or which has no nested keys."""
    return _reader(text_keys=cbor_too_deep(data) >= 0)(data)


@cache
def _reader(text_keys: bool) -> Decode:
    """Return what decodes data to values. Raises `DecodeError` if the package cbor2 is not installed."""
    try:
        import cbor2
    except ImportError:
        # A peer that is told so cannot install it.
        logger.error("a peer sent CBOR, which cannot be read: %s", MISSING)
        raise msgspec.DecodeError("this side cannot read CBOR; send JSON or MessagePack") from None
    load = partial(
        cbor2.loads,
        semantic_decoders=DECODERS,
        max_depth=MAX_DEPTH + 2,
        allow_duplicate_keys=False,
        strict_hashable_types=text_keys,
    )

    def read(data: bytes) -> Any:
        # An item that contains the constant could pretend to end before it. None contains what is longer than itself.
        forged = data.find(_END_BYTES) >= 0
        end = bytes(len(data)) if forged else _END
        try:
            values, found = load(_BEFORE + data + _BREAK + (cbor2.dumps(end) if forged else _END_BYTES))
        except cbor2.CBORError:
            # The message may quote the item.
            raise msgspec.DecodeError(_MALFORMED) from None
        if not values:
            raise msgspec.DecodeError(_MALFORMED)
        if len(values) > 1 or type(found) is not type(end) or found != end:
            raise msgspec.DecodeError("CBOR has trailing data")
        return values[0]

    return read
