from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from weirpool.decoding.columns import Attributes, Columns, Elements

from .decode import schema

UTC_TIME = pa.timestamp("us", tz="UTC")


def built(kind: pa.DataType, *values: Any, unit: str = "us") -> list[Any]:
    columns = Columns(schema(a=kind), Elements(), unit)
    batch = columns.build([[value] for value in values])
    batch.validate(full=True)
    found: list[Any] = batch.column(0).to_pylist()
    return found


def test_fields_are_attributes_by_index() -> None:
    class Row:
        f0, f1 = 1, "x"

    batch = Columns(schema(number=pa.int32(), text=pa.string()), Attributes()).build([Row()])
    assert batch.to_pylist() == [{"number": 1, "text": "x"}]


def test_structs_lists_and_maps_may_be_null_at_each_level() -> None:
    inner = pa.struct([("x", pa.list_(pa.int8())), ("y", pa.map_(pa.string(), pa.int8()))])
    rows = [None, [None, None], [[1, None], {"k": None, "l": 2}], [[], {}]]
    assert built(inner, *rows) == [
        None,
        {"x": None, "y": None},
        {"x": [1, None], "y": [("k", None), ("l", 2)]},
        {"x": [], "y": []},
    ]
    assert built(pa.list_(inner), rows, None, []) == [built(inner, *rows), None, []]


def test_decimals_are_rounded_half_up_to_their_scale() -> None:
    kind = pa.decimal128(5, 2)
    assert built(kind, Decimal("1.005"), Decimal("-1.005"), Decimal(7), None) == [
        Decimal("1.01"),
        Decimal("-1.01"),
        Decimal("7.00"),
        None,
    ]
    for wrong in ("1000", "999.995", "NaN", "Infinity", "1e999999999"):
        with pytest.raises((ValueError, ArithmeticError)):
            built(kind, Decimal(wrong))


@pytest.mark.parametrize(
    ("unit", "number"), [("s", 1), ("s", 1.0), ("ms", 1_000), ("us", 1_000_000), ("ns", 1_000_000_999)]
)
def test_numbers_are_times_in_their_unit(unit: str, number: float) -> None:
    time = datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert built(UTC_TIME, number, time, None, unit=unit) == [time, time, None]


def test_numbers_before_1970_are_rounded_down() -> None:
    assert built(UTC_TIME, -1, unit="ns") == [datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)]


def test_numbers_never_wrap() -> None:
    with pytest.raises((ValueError, OverflowError)):
        built(pa.int8(), 128)


def test_times_have_zones_or_not() -> None:
    local = datetime(2024, 12, 31, 12, 0, 0, 5)
    aware, east = local.replace(tzinfo=UTC), datetime(2024, 12, 31, 13, 0, 0, 5, timezone(timedelta(hours=1)))
    assert built(UTC_TIME, aware, None, east) == [aware, None, aware]
    assert built(UTC_TIME, aware, local, 5) == [aware, aware, datetime(1970, 1, 1, 0, 0, 0, 5, UTC)]
    assert built(pa.timestamp("us"), local, None, 5) == [local, None, datetime(1970, 1, 1, 0, 0, 0, 5)]
    assert built(pa.timestamp("us"), local, local) == [local, local]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_may_have_another_unit(unit: str) -> None:
    microseconds = {"s": 0, "ms": 123_000}.get(unit, 123_456)
    for year in (1969, 2024):
        time = datetime(year, 1, 1, 0, 0, 1, 123_456, UTC)
        wanted = time.replace(microsecond=microseconds)
        number = (time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
        for values in ([time], [number], [time.replace(tzinfo=None)]):
            columns = Columns(schema(a=pa.timestamp(unit, "UTC")), Elements(), "us")
            found = columns.build([[value] for value in values]).column(0)
            assert found.cast(UTC_TIME).to_pylist() == [wanted]


@pytest.mark.parametrize(
    ("number", "digits"),
    [(1735689599.123456, 123_456), (1735689599.9999998, 999_999), (1700000000.1234567, 123_456), (5.9999999, 999_999),
     (253402300799.999, 999_000), (1073741824.000001, 1), (-1e-7, 999_999), (0.1, 100_000)],
)  # fmt: skip
def test_numbers_lose_digits_beyond_the_microsecond(number: float, digits: int) -> None:
    [time] = built(UTC_TIME, number, unit="s")
    assert (time.microsecond, time.timestamp() // 1) == (digits, number // 1)
