"""The tags of CBOR: what their content means.

A tag that is not known gives its content (RFC 8949, Tagging of Items). Refused are those that refer to earlier values,
compile regular expressions, or describe numbers of any size in a few bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_FLOOR, Decimal
from functools import partial
from struct import calcsize, unpack
from typing import Any, Final
from uuid import UUID

import msgspec

from .forms import text_time

__all__ = ["DECODERS"]

# The content of a tag, and whether it is hashed.
Decoder = Callable[[Any, bool], Any]

# RFC 8949, Tagging of Items; RFC 8943, Concise Binary Object Representation (CBOR) Tags for Date.
TEXT_TIME: Final = 0
EPOCH_TIME: Final = 1
POSITIVE: Final = 2
NEGATIVE: Final = 3
DECIMAL_FRACTION: Final = 4
BIG_FLOAT: Final = 5
DAYS: Final = 100
TEXT_DATE: Final = 1004
# The registry of tags: https://www.iana.org/assignments/cbor-tags
RATIONAL: Final = 30
UUID_BYTES: Final = 37
REGULAR_EXPRESSION: Final = 35
STRING_REFERENCE, STRING_NAMESPACE = 25, 256
SHAREABLE, SHARED_REFERENCE = 28, 29
# RFC 8746, Types of Numbers: the formats of one number, as `struct` has them. Arrays of bytes stay bytes.
ARRAYS: Final = {
    **{65 + at: f">{code}" for at, code in enumerate("HIQ")},
    **{69 + at: f"<{code}" for at, code in enumerate("HIQ")},
    72: "b",
    **{73 + at: f">{code}" for at, code in enumerate("hiq")},
    **{77 + at: f"<{code}" for at, code in enumerate("hiq")},
    **{80 + at: f">{code}" for at, code in enumerate("efd")},
    **{84 + at: f"<{code}" for at, code in enumerate("efd")},
}
MAX_EXPONENT: Final = 64
"""Spark's decimals have 38 digits."""
MAX_BYTES: Final = 16
"""Of a large number."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_ONE: Final = date(1970, 1, 1).toordinal()


def _refuse(*_: Any) -> Any:
    raise ValueError("this tag is not supported")


def _content(value: Any, _: bool) -> Any:
    return value


def _text_time(value: Any, _: bool) -> datetime:
    return msgspec.convert(text_time(_of(value, str)), datetime)


def _epoch_time(value: Any, _: bool) -> datetime:
    # The shortest digits of a float are those that were written.
    seconds = Decimal(repr(_of(value, int, float)))
    return _EPOCH + timedelta(microseconds=int((seconds * 1_000_000).to_integral_value(ROUND_FLOOR)))


def _text_date(value: Any, _: bool) -> date:
    return msgspec.convert(_of(value, str), date)


def _days(value: Any, _: bool) -> date:
    return date.fromordinal(_DAY_ONE + _of(value, int))


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
    exponent, number = _pair(value)
    if abs(exponent) > MAX_EXPONENT:
        raise ValueError("a decimal fraction is out of range")
    # Exact, which `scaleb` is up to 28 digits only.
    return Decimal((number < 0, tuple(map(int, str(abs(number)))), exponent))


def _rational(value: Any, _: bool) -> float:
    numerator, denominator = _pair(value)
    return numerator / denominator


def _pair(value: Any) -> tuple[int, int]:
    first, second = value
    return _of(first, int), _of(second, int)


def _uuid(value: Any, _: bool) -> Any:
    return UUID(bytes=value) if type(value) is bytes and len(value) == 16 else value


def _array(form: str, value: Any, _: bool) -> list[int | float]:
    """Return the numbers of a typed array."""
    count, rest = divmod(len(_of(value, bytes)), calcsize(form))
    if rest:
        raise ValueError("a typed array ends within a number")
    order, code = form[:-1], form[-1]
    return list(unpack(f"{order}{count}{code}", value))


class _Decoders(dict[int, Decoder]):
    """What replaces a tag: its content, unless it has a meaning here, or none."""

    def __missing__(self, tag: int) -> Decoder:
        return _content


_REFUSED: Final = (BIG_FLOAT, STRING_REFERENCE, STRING_NAMESPACE, SHAREABLE, SHARED_REFERENCE, REGULAR_EXPRESSION)
DECODERS: Final = _Decoders(
    {
        **dict.fromkeys(_REFUSED, _refuse),
        **{tag: partial(_array, form) for tag, form in ARRAYS.items()},
        TEXT_TIME: _text_time,
        EPOCH_TIME: _epoch_time,
        POSITIVE: _positive,
        NEGATIVE: _negative,
        DECIMAL_FRACTION: _decimal,
        RATIONAL: _rational,
        UUID_BYTES: _uuid,
        DAYS: _days,
        TEXT_DATE: _text_date,
    }
)
"""For cbor2, which would convert some other tags: mail, sets, addresses and complex numbers."""
