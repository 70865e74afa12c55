"""The forms in which writers of other languages have numbers, times and identifiers."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, time
from typing import Any, Final
from uuid import UUID

from msgspec import inspect

from .conversion import Fix, Forms, Kind

__all__ = ["BINARY_FORMS", "OPEN", "TIMES", "TIME_FORMS", "WHOLE_FLOATS", "text_time"]

WHOLE_FLOATS: Final = 1 << 53
"""IEEE 754, binary64: up to this, a float has all whole numbers. JavaScript writes no others."""
_FINER_SECONDS: Final = re.compile(r"(\.[0-9]{6})[0-9]+(?=[Ss]$)")
# A time up to the microsecond, its further digits, its offset, and the name of its zone. ISO 8601 permits an offset of
# hours alone, as PostgreSQL writes it. Java, ZonedDateTime.toString: a name follows the offset, which is enough; a name
# alone is not.
_TIME: Final = re.compile(
    r"([^.\[]*:[0-9]{2}(?:\.[0-9]{1,6})?)[0-9]*+(?:([Zz]|[+-][0-9]{2}(?::?[0-9]{2})?)(?:\[[^\[\]]*\])?)?", re.ASCII
)

TIMES: Final[frozenset[Kind]] = frozenset({inspect.DateTimeType, inspect.TimeType, inspect.TimeDeltaType})
"""The kinds of types with digits that could be rounded."""
OPEN: Final[frozenset[Kind]] = frozenset({inspect.AnyType, inspect.CustomType})
"""The kinds of types that leave open what they contain."""


def text_time(text: str) -> str:
    """Return a time as msgspec reads it: digits beyond the microsecond are dropped, so that it keeps its day."""
    found = _TIME.fullmatch(text)
    if found is None:
        return text
    time, offset = found.groups("")
    return f"{time}{offset}:00" if len(offset) == 3 else time + offset


def _whole(value: Any) -> Any:
    """Return a float without a fraction as an integer."""
    is_whole = type(value) is float and -WHOLE_FLOATS <= value <= WHOLE_FLOATS and value.is_integer()
    return int(value) if is_whole else value


def _all_whole(value: Any) -> Any:
    """Return the floats without a fraction in a value as integers, which also fit where a float is wanted."""
    if type(value) is list:
        return list(map(_all_whole, value))
    if type(value) is dict:
        return {name: _all_whole(each) for name, each in value.items()}
    return _whole(value)


def _time(value: Any) -> Any:
    return text_time(value) if type(value) is str else _from_numbers(value, time, 2)


def _datetime(value: Any) -> Any:
    return text_time(value) if type(value) is str else _from_numbers(value, datetime, 5)


def _date(value: Any) -> Any:
    return _from_numbers(value, date, 3) if type(value) is list and len(value) == 3 else value


def _duration(value: Any) -> Any:
    return _FINER_SECONDS.sub(r"\1", value) if type(value) is str else value


def _from_numbers(value: Any, make: Callable[..., Any], least: int) -> Any:
    """Return the local time that Jackson has written as an array of numbers: from years or hours to nanoseconds."""
    if type(value) is not list or not least <= len(value) <= least + 2 or any(type(each) is not int for each in value):
        return value
    numbers = [*value[: least + 1], *(nanoseconds // 1_000 for nanoseconds in value[least + 1 :])]
    try:
        return make(*numbers)
    except (ValueError, OverflowError):
        return value


def _integers(values: Any) -> Fix | None:
    """Return the fix of a type with these values."""
    return _whole if any(type(value) is int for value in values) else None


def _uuid_text(value: Any) -> Any:
    return str(value) if isinstance(value, UUID) else value


def _uuid_bytes(value: Any) -> Any:
    return value.bytes if isinstance(value, UUID) else value


TIME_FORMS: Final[Forms] = {
    inspect.DateTimeType: lambda _: _datetime,
    inspect.DateType: lambda _: _date,
    inspect.TimeType: lambda _: _time,
    inspect.TimeDeltaType: lambda _: _duration,
}
"""Times as texts and arrays."""
BINARY_FORMS: Final[Forms] = {
    **TIME_FORMS,
    inspect.IntType: lambda _: _whole,
    inspect.EnumType: lambda info: _integers(each.value for each in info.cls),
    inspect.LiteralType: lambda info: _integers(info.values),
    # Models, which others read.
    inspect.CustomType: lambda _: _all_whole,
    inspect.BytesType: lambda _: _uuid_bytes,
    inspect.StrType: lambda _: _uuid_text,
}
"""These, and what MessagePack and CBOR have."""
