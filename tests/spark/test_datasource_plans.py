"""One DataFrame in several plans: a filter of one of them never changes the rows of another."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

from weirpool.archive import SealOptions, seal
from weirpool.journal import Journal
from weirpool.journal.format import ITEMS
from weirpool.journal.writer import JournalWriter
from weirpool.spark import history

pytestmark = pytest.mark.spark

SETTING = "spark.sql.python.filterPushdown.enabled"
ROWS = 100
"""Rows of each of the sources a and b."""


@pytest.fixture(params=["true", "false"])
def spark(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """A session in which Spark passes filters to data sources, or does not."""
    before = spark.conf.get(SETTING)
    spark.conf.set(SETTING, request.param)
    try:
        yield spark
    finally:
        assert before is not None
        spark.conf.set(SETTING, before)


def append(journal: Path, source: str, count: int = ROWS, *, segment_bytes: int = 1 << 26) -> None:
    with JournalWriter.open(journal, source, segment_bytes=segment_bytes, fsync=False) as writer:
        numbers = range(writer.position, writer.position + count)
        data = pa.array([json.dumps({"n": number, "from": source}).encode() for number in numbers], pa.binary())
        writer.append(pa.RecordBatch.from_arrays([data, pa.nulls(count, pa.binary())], schema=ITEMS), "flights")


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    for source in ("a", "b"):
        append(tmp_path, source)
    return tmp_path


def load(spark: SparkSession, journal: Path, **options: str) -> DataFrame:
    return spark.read.format("weirpool").options(**options).load(str(journal))


def low(frame: DataFrame) -> DataFrame:
    return frame.where("position < 10")


def in_sql(text: str) -> Callable[[DataFrame], DataFrame]:
    def query(frame: DataFrame) -> DataFrame:
        frame.createOrReplaceTempView("plans")
        return frame.sparkSession.sql(text)

    return query


def self_join(frame: DataFrame) -> DataFrame:
    other = frame.where("source = 'b'").select(col("position").alias("other"))
    return frame.where("source = 'a'").join(other, col("position") == col("other"))


def joined_with_itself(frame: DataFrame) -> DataFrame:
    return low(frame).alias("x").join(frame.alias("y"), col("x.position") == col("y.position"))


SHAPES: dict[str, tuple[Callable[[DataFrame], DataFrame], int]] = {
    "positions": (low, 20),
    "whole": (lambda frame: frame, 200),
    "source": (lambda frame: frame.where("source = 'a'"), 100),
    "times": (lambda frame: frame.where("time > timestamp '2999-01-01'"), 0),
    "nothing": (lambda frame: frame.where("source = 'c' and position in (1, 2)"), 0),
    "union": (lambda frame: low(frame).unionAll(frame.where("position >= 90")).unionAll(frame), 240),
    "self-join": (self_join, 100),
    "join with the whole": (joined_with_itself, 40),
    "view": (in_sql("SELECT * FROM plans WHERE source = 'a' AND position >= 95"), 5),
    "whole view": (in_sql("SELECT * FROM plans"), 200),
    "common table expressions": (
        in_sql(
            "WITH x AS (SELECT * FROM plans WHERE position < 10), y AS (SELECT * FROM plans WHERE source = 'b') "
            "SELECT x.position FROM x JOIN y ON x.position = y.position"
        ),
        20,
    ),
    "subquery": (
        in_sql("SELECT * FROM plans WHERE position > (SELECT max(position) FROM plans WHERE source = 'a') - 5"),
        10,
    ),
    "exists": (
        in_sql(
            "SELECT * FROM plans p WHERE source = 'a' AND EXISTS "
            "(SELECT 1 FROM plans q WHERE q.position = p.position AND q.source = 'b' AND q.position < 7)"
        ),
        7,
    ),
    "aggregate": (lambda frame: frame.where("position < 50").groupBy("source").count().where("count = 50"), 2),
    "limit": (lambda frame: frame.where("position = 3").limit(5), 2),
}


def counts(frame: DataFrame) -> dict[str, int]:
    return {name: shape(frame).count() for name, (shape, _) in SHAPES.items()}


EXPECTED = {name: rows for name, (_, rows) in SHAPES.items()}


def test_one_frame_has_the_same_rows_in_every_plan(spark: SparkSession, journal: Path) -> None:
    frame = load(spark, journal)
    assert counts(frame) == EXPECTED
    assert (frame.count(), low(frame).count()) == (200, 20)


def test_the_parts_of_one_plan_do_not_share_filters(spark: SparkSession, journal: Path) -> None:
    for name in ("union", "self-join"):
        shape, rows = SHAPES[name]
        assert shape(load(spark, journal)).count() == rows, name


def test_views_have_the_same_rows_in_every_plan(spark: SparkSession, journal: Path) -> None:
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW plans_of_sql USING weirpool OPTIONS (path '{journal}')")
    assert spark.sql("SELECT * FROM plans_of_sql WHERE source = 'a'").count() == 100
    assert spark.table("plans_of_sql").count() == 200
    assert spark.sql("SELECT * FROM plans_of_sql WHERE position < 10").count() == 20
    assert self_join(spark.table("plans_of_sql")).count() == 100


def test_cached_rows_are_those_of_their_plan(spark: SparkSession, journal: Path) -> None:
    frame = load(spark, journal)
    cached = low(frame).cache()
    try:
        assert (cached.count(), frame.count(), cached.where("source = 'a'").count()) == (20, 200, 10)
    finally:
        cached.unpersist(blocking=True)
    whole = frame.cache()
    try:
        assert (low(whole).count(), whole.count()) == (20, 200)
    finally:
        whole.unpersist(blocking=True)


def test_plans_of_several_threads_do_not_share_filters(spark: SparkSession, journal: Path) -> None:
    frame = load(spark, journal)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda end: frame.where(f"position < {end}").count(), [10, 90, 0, 100]))
    assert found == [20, 180, 0, 200]


def test_typed_columns_are_filtered_by_spark(spark: SparkSession, journal: Path) -> None:
    options = {"decode": "json", "decodeSchema": "n BIGINT, from STRING", "decodeInto": "row"}
    frame = load(spark, journal, **options)
    for _ in range(2):
        assert frame.where("row.n < 10 and row.from = 'a'").count() == 10
        assert frame.where("row.n >= 90").count() == 20
        assert frame.where("source = 'b'").count() == 100
        assert frame.count() == 200


def test_gaps_are_filtered_by_spark(spark: SparkSession, journal: Path) -> None:
    with JournalWriter.open(journal, "a", fsync=False) as writer:
        for reason in ("first", "second"):
            writer.append_gap(reason)
            writer.append(pa.RecordBatch.from_pylist([{"data": b"x"}], schema=ITEMS), "flights")
    frame = load(spark, journal, rows="gaps")
    for _ in range(2):
        assert (frame.where("position > 100").count(), frame.where("reason = 'none'").count(), frame.count()) == (
            1,
            0,
            2,
        )


def test_history_has_the_same_rows_in_every_plan(spark: SparkSession, journal: Path) -> None:
    append(journal, "a", 50, segment_bytes=1)
    assert seal(journal, "a", SealOptions(target_bytes=1), force=True) is not None
    frame = history(spark, str(journal))
    for _ in range(2):
        assert frame.where("position >= 90").count() == 70
        assert frame.where("source = 'a' and position between 95 and 104").count() == 10
        assert frame.where("source = 'b'").count() == 100
        assert frame.count() == 250
    assert frame.where("position >= 140").unionAll(frame.where("position < 10")).unionAll(frame).count() == 280


def test_a_frame_ends_where_the_journal_ended_at_its_first_action(spark: SparkSession, journal: Path) -> None:
    # docs/how-to/spark.md, "The end of a batch".
    view = f"CREATE OR REPLACE TEMPORARY VIEW ending USING weirpool OPTIONS (path '{journal}')"
    spark.sql(view)
    frame, past = load(spark, journal), history(spark, str(journal))
    assert (frame.count(), past.count(), spark.table("ending").count()) == (200, 200, 200)
    append(journal, "a")
    assert (frame.count(), past.count(), spark.table("ending").count()) == (200, 200, 200)
    assert frame.select("position").distinct().count() == 100
    # With the setting, a query with a filter is planned again, and so are the ones after it.
    anew = 300 if spark.conf.get(SETTING) == "true" else 200
    assert (frame.where("position >= 0").count(), frame.count()) == (anew, anew)
    spark.sql(view)
    assert (load(spark, journal).count(), spark.table("ending").count()) == (300, 300)
    assert history(spark, str(journal)).count() == 300


def test_a_frame_whose_rows_were_trimmed_fails(spark: SparkSession, journal: Path) -> None:
    for _ in range(3):
        append(journal, "a", segment_bytes=1)
    frame = load(spark, journal, source="a")
    assert frame.count() == 400
    Journal(journal).trim("a", 300, retain_bytes=0)
    with pytest.raises(PySparkException, match=r"DataLost: .*positions 0 to 299"):
        frame.count()
    assert load(spark, journal, source="a").count() == 100


def test_a_stream_has_the_same_rows_in_every_query(spark: SparkSession, journal: Path, tmp_path: Path) -> None:
    frame = spark.readStream.format("weirpool").load(str(journal))
    for number, (part, rows) in enumerate(((low(frame), 20), (frame, 200), (low(frame).unionAll(frame), 220))):
        out = str(tmp_path / f"out-{number}")
        writer = part.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / f"checkpoint-{number}"))
        assert writer.trigger(availableNow=True).start(out).awaitTermination(60)
        assert spark.read.parquet(out).count() == rows


def test_a_plan_shows_who_filters(spark: SparkSession, journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = low(load(spark, journal))
    frame.explain("formatted")
    plan = capsys.readouterr().out
    assert "PushedFilters" not in plan and "Condition : (isnotnull(position" in plan
