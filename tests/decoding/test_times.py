from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from weirpool.decoding.times import MAX_TIME, MIN_TIME, check_times, divided, has_times, in_microseconds, microseconds

TIME = pa.timestamp("us", tz="UTC")
LAST_DAY = MAX_TIME // 86_400_000_000


def test_types_that_contain_times_are_known() -> None:
    for kind in (
        TIME,
        pa.date32(),
        pa.list_(TIME),
        pa.struct([("a", pa.int8()), ("b", TIME)]),
        pa.map_("string", TIME),
    ):
        assert has_times(kind)
    for kind in (pa.int64(), pa.list_(pa.string()), pa.struct([("a", pa.int8())]), pa.map_("string", "float")):
        assert not has_times(kind)


@pytest.mark.parametrize(
    ("kind", "low", "high"), [(TIME, MIN_TIME, MAX_TIME), (pa.date32(), MIN_TIME // 86_400_000_000, LAST_DAY)]
)
def test_years_1_to_9999_are_in_range(kind: pa.DataType, low: int, high: int) -> None:
    check_times(pa.array([low, None, high], kind))
    check_times(pa.array([None], kind))
    check_times(pa.array([], kind))
    for wrong in (low - 1, high + 1):
        with pytest.raises(ValueError, match="a time is out of range"):
            check_times(pa.array([0, wrong], kind))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.list_(TIME), [0, MAX_TIME + 1]),
        (pa.struct([("a", pa.list_(pa.date32()))]), {"a": [LAST_DAY + 1]}),
        (pa.map_(pa.string(), TIME), {"a": MIN_TIME - 1}),
        (pa.map_(pa.date32(), pa.int8()), [(LAST_DAY + 1, 1)]),
    ],
)
def test_times_within_others_are_checked(kind: pa.DataType, value: object) -> None:
    with pytest.raises(ValueError, match="out of range"):
        check_times(pa.array([None, value], kind))


@pytest.mark.parametrize("unit", ["s", "ms"])
def test_times_of_other_units_are_checked(unit: str) -> None:
    highest = MAX_TIME // {"s": 1_000_000, "ms": 1_000}[unit]
    check_times(pa.array([highest, None], pa.timestamp(unit)))
    with pytest.raises(ValueError, match="out of range"):
        check_times(pa.array([highest + 1], pa.timestamp(unit)))


def test_nanoseconds_are_never_out_of_range_and_milliseconds_of_dates_may_be() -> None:
    check_times(pa.array([(1 << 63) - 1, -(1 << 63)], pa.timestamp("ns")))
    check_times(pa.array([MAX_TIME // 1_000], pa.date64()))
    with pytest.raises(ValueError, match="out of range"):
        check_times(pa.array([MAX_TIME // 1_000 + 86_400_000], pa.date64()))


@pytest.mark.parametrize("number", ["1e999999999", "-1e999999999", "253402300800", "-62135596800.000001"])
def test_numbers_out_of_range_are_no_times(number: str) -> None:
    with pytest.raises(ValueError, match="out of range"):
        microseconds(Decimal(number), 1_000_000, 1)


def test_digits_of_numbers_are_dropped_exactly() -> None:
    digits = "0." + "9" * 100
    assert microseconds(Decimal(digits), 1_000_000, 1) == 999_999
    assert microseconds(-Decimal(digits), 1_000_000, 1) == -1_000_000
    assert microseconds(Decimal("1999.999"), 1, 1_000) == 1
    assert microseconds(-0.5, 1, 1) == -1
    assert microseconds(1735689599.123457, 1_000_000, 1) == 1_735_689_599_123_457
    assert microseconds(-1735689599.999999, 1_000_000, 1) == -1_735_689_599_999_999


def test_division_rounds_down() -> None:
    assert divided(pa.array([-1, 0, 1, -1000, -1001, None]), 1_000).to_pylist() == [-1, 0, 0, -1, -2, None]
    # The smallest number must not overflow.
    assert divided(pa.array([-(1 << 63)]), 1_000).to_pylist() == [-(1 << 63) // 1_000]


def test_other_values_keep_their_nanoseconds() -> None:
    kind = pa.timestamp("ns")
    for values, wanted in (
        (pa.array([-1], kind), kind),
        (pa.array([-1], pa.duration("ns")), pa.duration("us")),
        (pa.array([[1]], pa.list_(pa.int8())), pa.list_(pa.int8())),
    ):
        assert in_microseconds(values, wanted) is values
    sliced = pa.array([[0], [-1], None], pa.list_(pa.int64())).cast(pa.list_(kind))[1:]
    found = in_microseconds(sliced, pa.list_(pa.timestamp("us")))
    assert found.cast(pa.list_(pa.int64())).to_pylist() == [[-1], None]
