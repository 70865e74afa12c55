"""Reads CBOR with bounds, and without the tags that are dangerous or unknown.

Of CBOR's tags, those for times, dates, numbers and self-described data are decoded. The others are refused: some refer
to earlier values, compile regular expressions, or describe numbers of any size in a few bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from typing import Any, Final

import msgspec

from .depth import MAX_DEPTH

__all__ = ["cbor_reader"]

# RFC 8949, Tagging of Items; RFC 8943, Concise Binary Object Representation (CBOR) Tags for Date.
TEXT_TIME: Final = 0
EPOCH_TIME: Final = 1
POSITIVE: Final = 2
NEGATIVE: Final = 3
DECIMAL_FRACTION: Final = 4
TEXT_DATE: Final = 1004
SELF_DESCRIBED: Final = 55799
MAX_EXPONENT: Final = 64
"""Spark's decimals have 38 digits."""
MAX_BYTES: Final = 16
"""Of a large number."""

# The item is put into an array without a length, in an array of two, and a constant after it shows that it ends where
# its value ends: cbor2 does not report data that it has not read.
_BEFORE: Final = b"\x82\x9f"
_BREAK: Final = b"\xff"
_END: Final = 0x50656E73746F636B
_END_BYTES: Final = b"\x1b" + _END.to_bytes(8, "big")
_MALFORMED: Final = "CBOR is malformed, or has a tag that is not supported"


def cbor_reader(*, text_keys: bool) -> Callable[[bytes], Any]:
    """Return a function that returns the value of CBOR, or raises ValueError if it is malformed or refused.

    Its messages do not quote the data. Equal keys in a map are refused.

    Args:
        text_keys: The keys of maps must be texts. Otherwise the data must have been checked by
            :func:`penstock.depth.cbor_too_deep`: some other keys could be chosen to collide, so that a map takes
            quadratic time.

    Raises:
        ImportError: The package cbor2 is not installed.

    """
    import cbor2

    read = partial(
        cbor2.loads,
        tag_hook=_refuse,
        semantic_decoders=_tags(),
        max_depth=MAX_DEPTH + 2,
        allow_duplicate_keys=False,
        strict_hashable_types=text_keys,
    )

    def load(item: bytes) -> Any:
        # An item that contains the constant could pretend to end before it. None contains what is longer than itself.
        forged = _END_BYTES in item
        end = bytes(len(item)) if forged else _END
        try:
            values, found = read(_BEFORE + item + _BREAK + (cbor2.dumps(end) if forged else _END_BYTES))
        except cbor2.CBORError as error:
            # The message may quote the item.
            raise ValueError(_MALFORMED) from error
        if not values:
            raise ValueError(_MALFORMED)
        if len(values) > 1 or type(found) is not type(end) or found != end:
            raise ValueError("CBOR has trailing data")
        return values[0]

    return load


def _tags() -> dict[int, Callable[[Any, bool], Any]]:
    """Return a function for each tag that is decoded or must not be: of the tag's content, and whether it is hashed."""
    return {
        **dict.fromkeys(_KNOWN_TO_CBOR2, _refuse),
        TEXT_TIME: _text_time,
        EPOCH_TIME: _epoch_time,
        POSITIVE: _positive,
        NEGATIVE: _negative,
        DECIMAL_FRACTION: _decimal,
        TEXT_DATE: _text_date,
        SELF_DESCRIBED: _content,
    }


_KNOWN_TO_CBOR2: Final = (5, 25, 28, 29, 30, 35, 36, 37, 52, 54, 100, 256, 258, 260, 261, 43000)


def _refuse(*_: Any) -> Any:
    raise ValueError("this tag is not supported")


def _content(value: Any, _: bool) -> Any:
    return value


def _text_time(value: Any, _: bool) -> datetime:
    return msgspec.convert(_of(value, str), datetime)


def _epoch_time(value: Any, _: bool) -> datetime:
    return msgspec.convert(_of(value, int, float), datetime, strict=False)


def _text_date(value: Any, _: bool) -> date:
    return msgspec.convert(_of(value, str), date)


def _of(value: Any, *types: type) -> Any:
    """Return the content of a tag. It must have one of the types: msgspec also converts a time to a time."""
    if type(value) not in types:
        raise ValueError("the content of a tag is of another type")
    return value


def _positive(value: Any, _: bool) -> int:
    if not isinstance(value, bytes) or len(value) > MAX_BYTES:
        raise ValueError(f"a number is larger than {MAX_BYTES} bytes")
    return int.from_bytes(value, "big")


def _negative(value: Any, _: bool) -> int:
    return -1 - _positive(value, _)


def _decimal(value: Any, _: bool) -> Decimal:
    exponent, number = value
    if type(exponent) is not int or type(number) is not int or abs(exponent) > MAX_EXPONENT:
        raise ValueError("a decimal fraction is out of range")
    # Exact, which `scaleb` is up to 28 digits only.
    return Decimal((number < 0, tuple(map(int, str(abs(number)))), exponent))
