from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest

from weirpool import LocalError
from weirpool.decoding.decoded import Decoded
from weirpool.decoding.eventtime import EventTime

TIME = datetime(2020, 1, 1, tzinfo=UTC)
SECONDS = 1577836800


def timed(values: pa.Array, unit: str = "s", malformed: dict[int, str] | None = None) -> Decoded:
    fields = pa.record_batch({"a": values, "b": pa.array(range(len(values)))})
    decoded = EventTime(fields.schema, "a", unit).add(Decoded(len(values), fields, malformed or {}))
    decoded.fields.validate(full=True)
    return decoded


def times(values: list[Any], kind: pa.DataType, unit: str = "s") -> list[Any]:
    decoded = timed(pa.array(values, kind), unit)
    found = decoded.fields["event_time"].to_pylist()
    return ["malformed" if row in decoded.malformed else time for row, time in enumerate(found)]


@pytest.mark.parametrize(("unit", "factor"), [("s", 1), ("ms", 1_000), ("us", 1_000_000), ("ns", 1_000_000_000)])
def test_numbers_are_of_a_unit(unit: str, factor: int) -> None:
    assert times([SECONDS * factor, None], pa.int64(), unit) == [TIME, None]
    assert times([float(SECONDS * factor), None], pa.float64(), unit) == [TIME, None]


def test_text_whose_offset_leads_out_of_range_is_malformed() -> None:
    texts = ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59.999999-23:59", "2020-01-01T01:00:00+01:00"]
    assert times(texts, pa.string()) == ["malformed", "malformed", TIME]


def test_numbers_out_of_range_are_malformed() -> None:
    assert times([1 << 62, -(1 << 62), SECONDS * 1000, 0], pa.int64()) == ["malformed"] * 3 + [
        datetime(1970, 1, 1, tzinfo=UTC)
    ]
    assert times([1e300, float("nan"), float("-inf")], pa.float64()) == ["malformed"] * 3
    assert times([1], pa.uint64()) == [datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)]


def test_times_and_texts_are_converted() -> None:
    assert times([TIME, None], pa.timestamp("ms", tz="UTC")) == [TIME, None]
    assert times([datetime(2020, 1, 1)], pa.timestamp("us")) == [TIME]
    assert times([date(2020, 1, 1)], pa.date32()) == [TIME]
    texts = ["2020-01-01T00:00:00Z", "2020-01-01 01:00+01:00", "2020-01-01", "yesterday", None]
    assert times(texts, pa.string()) == [TIME, TIME, TIME, "malformed", None]
    assert times(["2020-01-01T01:00:00+01", "2020-01-01T01:00:00+01:00[Europe/Paris]"], pa.string()) == [TIME, TIME]


def test_digits_beyond_the_microsecond_are_dropped() -> None:
    last = datetime(2019, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    assert times(["2019-12-31T23:59:59.9999999Z"], pa.string()) == [last]
    assert times([SECONDS - 2.4e-7, SECONDS - 1e-6], pa.float64()) == [last, last]
    assert times([SECONDS * 10**9 - 1], pa.int64(), "ns") == [last]
    before = datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    assert times([-1, -1000], pa.int64(), "ns") == [before, before]
    assert times([-1e-7], pa.float64()) == [before]


def test_a_malformed_row_is_null_in_all_fields() -> None:
    decoded = timed(pa.array(["x", None, "2020-01-01", None]), malformed={3: "first"})
    assert decoded.fields.to_pylist()[0] == {"a": None, "b": None, "event_time": None}
    assert decoded.fields["b"].to_pylist() == [None, 1, 2, 3]
    assert decoded.malformed == {0: "the event time cannot be converted", 3: "first"}


def test_a_path_leads_into_structs() -> None:
    fields = pa.record_batch({"head": pa.array([{"at": SECONDS}, None, {"at": None}])})
    decoded = EventTime(fields.schema, "head.at", "s").add(Decoded(3, fields, {}))
    assert decoded.fields["event_time"].to_pylist() == [TIME, None, None] and not decoded.malformed


@pytest.mark.parametrize(
    ("path", "problem"), [("b", "'b', which is not decoded"), ("a.x", "'a.x', which"), ("a", "bool")]
)
def test_mistakes_are_named(path: str, problem: str) -> None:
    with pytest.raises(LocalError, match=problem):
        EventTime(pa.schema([("a", pa.bool_())]), path, "s")


def test_a_duration_is_not_a_time() -> None:
    with pytest.raises(LocalError, match="duration"):
        EventTime(pa.schema([("a", pa.duration("us"))]), "a", "s")
