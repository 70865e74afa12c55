from __future__ import annotations

import pyarrow as pa
import pytest

from penstock.decoding.times import MAX_TIME, MIN_TIME, check_times, has_times

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
