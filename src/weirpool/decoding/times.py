"""The times that a column can hold: those of the years 1 to 9999, as in Spark and Python, in microseconds."""

from __future__ import annotations

from decimal import ROUND_FLOOR, Context, Decimal
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["MAX_TIME", "MIN_TIME", "check_times", "divided", "has_times", "in_microseconds", "microseconds"]

# Microseconds since 1970.
MIN_TIME: Final = -62_135_596_800_000_000
MAX_TIME: Final = 253_402_300_799_999_999
_DAY: Final = 86_400_000_000
_MICROSECONDS: Final = {"s": 1_000_000, "ms": 1_000, "us": 1}
# More digits than a time has.
_FLOOR: Final = Context(prec=50, rounding=ROUND_FLOOR, traps=[])
_EXACT: Final = float(1 << 52)
"""Up to this, floats have halves."""


def microseconds(number: float | Decimal, factor: int, divisor: int) -> int:
    """Return a time since 1970 in whole microseconds, without its further digits.

    Args:
        number: The time in a unit. The digits of a float are the shortest ones, as it was written.
        factor: Microseconds in the unit.
        divisor: Units in `factor` microseconds.

    Raises:
        ValueError: The time is out of range.

    """
    if isinstance(number, float):
        scaled = number * factor / divisor
        if scaled.is_integer() and abs(scaled) < _EXACT:
            return int(scaled)
        number = Decimal(repr(number))
    found = _FLOOR.divide(_FLOOR.multiply(number, Decimal(factor)), Decimal(divisor))
    if not MIN_TIME <= found <= MAX_TIME:
        raise ValueError("a time is out of range")
    return int(found.to_integral_value(ROUND_FLOOR))


def in_microseconds(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Return values whose nanoseconds are dropped where they are not wanted.

    Arrow rounds towards 1970. A time before it would become a later one, which may be of the next day.

    Args:
        values: Timestamps, or structs, lists and maps with some.
        wanted: The type that they will be cast to.

    """
    if not _has_nanoseconds(values.type) or _has_nanoseconds(wanted):
        return values
    kind = values.type
    if pa.types.is_timestamp(kind):
        return divided(values.cast(pa.int64()), 1_000).cast(pa.timestamp("us", kind.tz))
    if values.offset:
        values = pa.concat_arrays([values])
    if pa.types.is_struct(kind):
        children = [in_microseconds(child, wanted) for child in values.flatten()]
        fields = [kind.field(at).with_type(child.type) for at, child in enumerate(children)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=values.is_null())
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return type(values).from_arrays(values.offsets, in_microseconds(values.values, wanted), mask=values.is_null())
    if pa.types.is_map(kind):
        items = in_microseconds(values.items, wanted)
        return pa.MapArray.from_arrays(values.offsets, values.keys, items, mask=values.is_null())
    return values


def _has_nanoseconds(kind: pa.DataType) -> bool:
    if pa.types.is_timestamp(kind):
        return bool(kind.unit == "ns")
    return any(_has_nanoseconds(kind.field(index).type) for index in range(kind.num_fields))


def divided(numbers: pa.Array, divisor: int) -> pa.Array:
    """Return integers divided by a number and rounded down, as in Python. Arrow rounds towards 0."""
    rounded = pc.divide(numbers, divisor)
    is_more = pc.greater(pc.multiply(rounded, divisor), numbers)
    return pc.subtract(rounded, is_more.cast(pa.int64()))


def has_times(kind: pa.DataType) -> bool:
    """Return True if a value of a type is a time or a date, or contains some."""
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return True
    return any(has_times(kind.field(index).type) for index in range(kind.num_fields))


def check_times(values: pa.Array) -> None:
    """Raise `ValueError` if one of the times in an array is out of range.

    Args:
        values: Timestamps, dates, or structs, lists and maps with some.

    """
    kind = values.type
    if pa.types.is_timestamp(kind):
        # Nanoseconds of 64 bits are those of the years 1677 to 2262.
        unit = _MICROSECONDS.get(kind.unit)
        if unit is not None:
            _check(values.cast(pa.int64()), MIN_TIME // unit, MAX_TIME // unit)
    elif pa.types.is_date64(kind):
        _check(values.cast(pa.int64()), MIN_TIME // 1_000, MAX_TIME // 1_000)
    elif pa.types.is_date(kind):
        _check(values.cast(pa.int32()), MIN_TIME // _DAY, MAX_TIME // _DAY)
    elif pa.types.is_map(kind):
        # Its entries, as they are: an entry of a null map is empty.
        check_times(values.keys)
        check_times(values.items)
    elif pa.types.is_list(kind):
        check_times(values.flatten())
    elif pa.types.is_struct(kind):
        for child in values.flatten():
            check_times(child)


def _check(values: pa.Array, low: int, high: int) -> None:
    found = pc.min_max(values)
    if found["min"].is_valid and not low <= found["min"].as_py() <= found["max"].as_py() <= high:
        raise ValueError("a time is out of range")
