"""The times that a column can hold: those of the years 1 to 9999, as in Spark and Python."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["MAX_TIME", "MIN_TIME", "check_times", "has_times"]

# Microseconds since 1970.
MIN_TIME: Final = -62_135_596_800_000_000
MAX_TIME: Final = 253_402_300_799_999_999
_DAY: Final = 86_400_000_000
_MICROSECONDS: Final = {"s": 1_000_000, "ms": 1_000, "us": 1}


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
