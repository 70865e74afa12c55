from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSourceReader,
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from penstock.journal.layout import Extent
from penstock.journal.writer import JournalWriter
from penstock.spark.pushdown import WORKER, Needed, filters_are_pushed
from penstock.spark.schema import COLUMNS, Projection
from penstock.spark.source import FilteredBatchReader, JournalBatchReader

from .journals import damage, datasource, fill, item, items, options, run_task, segments

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
SOURCES = ("a", "ab", "b")


def second(number: float) -> datetime:
    return NOON + timedelta(seconds=number)


def collect(journal: Path, source: str) -> None:
    """Collect a source whose clock goes back once."""
    now = NOON
    with JournalWriter.open(journal, source, segment_bytes=2500, fsync=False, clock=lambda: now.timestamp()) as writer:
        for number in (0, 1, 5, 3, 4, 8):
            now = second(number)
            writer.append(items(writer.position, writer.position + 2), "flights")


def filtered(journal: Path, *filters: Filter, **more: str) -> FilteredBatchReader:
    """Return a reader as Spark makes it to push filters."""
    reader = FilteredBatchReader(options(journal, **more), Projection(COLUMNS))
    assert [*reader.pushFilters([*filters])] == [*filters]
    return reader


def rows_of(reader: DataSourceReader) -> list[dict[str, Any]]:
    return [row for part in reader.partitions() for batch in run_task(reader, part) for row in batch.to_pylist()]


# A filter's meaning in SQL: None is unknown.
MEANING: dict[type[Filter], Callable[[Any, Any], bool | None]] = {
    EqualTo: lambda has, value: None if value is None else has == value,
    EqualNullSafe: lambda has, value: has == value,
    GreaterThan: lambda has, value: None if value is None else has > value,
    GreaterThanOrEqual: lambda has, value: None if value is None else has >= value,
    LessThan: lambda has, value: None if value is None else has < value,
    LessThanOrEqual: lambda has, value: None if value is None else has <= value,
    In: lambda has, values: True if has in values else (None if None in values else False),
    StringStartsWith: lambda has, value: None if value is None else has.startswith(value),
    StringEndsWith: lambda has, value: None if value is None else has.endswith(value),
    StringContains: lambda has, value: None if value is None else value in has,
    IsNull: lambda has, value: False,
    IsNotNull: lambda has, value: True,
}


def passes(each: Any, row: dict[str, Any]) -> bool | None:
    if isinstance(each, Not):
        inner = passes(each.child, row)
        return None if inner is None else not inner
    return MEANING[type(each)](row[each.attribute[0]], getattr(each, "value", None))


def filters_on(column: str, values: st.SearchStrategy[Any], kinds: list[Any]) -> st.SearchStrategy[Any]:
    values = st.one_of(values, st.none())
    plain = st.one_of(
        st.builds(lambda kind, value: kind((column,), value), st.sampled_from(kinds), values),
        st.lists(values, max_size=3).map(lambda found: In((column,), tuple(found))),
        st.sampled_from([IsNull((column,)), IsNotNull((column,))]),
    )
    return st.one_of(plain, plain.map(Not))


COMPARISONS = [EqualTo, EqualNullSafe, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual]
some_filters = st.lists(
    st.one_of(
        filters_on(
            "source",
            st.sampled_from(["a", "b", "", "ab", "c"]),
            [*COMPARISONS, StringStartsWith, StringEndsWith, StringContains],
        ),
        filters_on("position", st.integers(-1, 13), COMPARISONS),
        filters_on("time", st.floats(-1, 9).map(second), COMPARISONS),
    ),
    max_size=4,
)


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("journal")
    for source in SOURCES:
        collect(path, source)
    return path


@given(filters=some_filters)
def test_filters_exclude_no_row_that_passes_them(journal: Path, filters: list[Filter]) -> None:
    rows = rows_of(JournalBatchReader(options(journal), Projection(COLUMNS)))
    found = rows_of(filtered(journal, *filters))
    needed = [row for row in rows if all(passes(each, row) for each in filters)]
    assert [row for row in found if all(passes(each, row) for each in filters)] == needed
    assert all(row in rows for row in found)


def positions(journal: Path, *filters: Filter) -> list[int]:
    return [row["position"] for row in rows_of(filtered(journal, *filters, source="a"))]


def test_positions_and_times_exclude_what_is_not_needed(journal: Path) -> None:
    assert positions(journal, GreaterThan(("position",), 3), LessThanOrEqual(("position",), 8)) == [4, 5, 6, 7, 8]
    assert positions(journal, In(("position",), (3, 5))) == [3, 4, 5]
    # By segment: the second one was received from 3 to 5 s after noon, and its clock went back.
    assert positions(journal, GreaterThanOrEqual(("time",), second(4.5))) == [4, 5, 6, 7, 8, 9, 10, 11]
    assert positions(journal, LessThan(("time",), second(0))) == []
    assert positions(journal, EqualTo(("time",), second(3))) == [4, 5, 6, 7]


def test_what_is_not_understood_excludes_nothing(journal: Path) -> None:
    every = [*range(12)]
    assert positions(journal, EqualTo(("position",), 3.0), EqualTo(("time",), "noon")) == every
    assert positions(journal, EqualTo(("time",), datetime(2026, 1, 2)), EqualTo(("data", "x"), 1)) == every


def test_only_logs_that_are_needed_are_looked_at() -> None:
    needed = Needed.of([StringStartsWith(("source",), "flights-"), Not(EqualTo(("source",), "flights-3"))])
    assert [needed.has(name) for name in ("flights-1", "flights-3", "delays")] == [True, False, False]


def test_positions_without_a_segment_stay_needed() -> None:
    # Reading them raises the error that they are lost.
    needed = Needed.of([LessThan(("time",), second(0))])
    late = (round(second(1).timestamp() * 1e6), round(second(2).timestamp() * 1e6))
    assert needed.parts((0, 40), [Extent(10, 20, 100, late), Extent(20, 30, 100)]) == [(0, 10), (20, 40)]


def test_a_source_of_an_option_may_be_filtered_out(journal: Path) -> None:
    reader = filtered(journal, EqualTo(("source",), "b"), startingOffsets='{"a": 4}')
    assert {row["source"] for row in rows_of(reader)} == {"b"}


def test_only_the_worker_that_pushes_filters_gets_a_reader_for_them(
    journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not filters_are_pushed()
    assert type(datasource(journal).reader(COLUMNS)) is JournalBatchReader
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, WORKER, ModuleType(WORKER))
        assert type(datasource(journal).reader(COLUMNS)) is FilteredBatchReader
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", SimpleNamespace(name=WORKER))
    assert filters_are_pushed()


@pytest.mark.parametrize("enabled", [True, False])
def test_spark_reads_only_what_passes(spark: SparkSession, tmp_path: Path, enabled: bool) -> None:
    fill(tmp_path, "a", *range(10, 50, 10), segment_bytes=1)
    fill(tmp_path, "b", 10)
    # A damaged row ends a query that reads it.
    damage(segments(tmp_path, "a")[1], item(15))
    (segments(tmp_path, "b")[0].parent / "_log.json").write_bytes(b"junk")
    name = "spark.sql.python.filterPushdown.enabled"
    before = spark.conf.get(name)
    spark.conf.set(name, str(enabled).lower())
    try:
        rows = spark.read.format("penstock").load(str(tmp_path))
        if enabled:
            found = rows.where("source = 'a' and position between 25 and 31").select("position").collect()
            assert [row.position for row in found] == [*range(25, 32)]
            assert rows.where("source = 'a' and position in (21, 22)").count() == 2
            assert rows.where("source = 'c' or source is null").count() == 0
        else:
            some = spark.read.format("penstock").option("source", "a").option("startingOffsets", '{"a": 20}')
            assert some.load(str(tmp_path)).where("position > 25").count() == 14
    finally:
        spark.conf.set(name, before)
