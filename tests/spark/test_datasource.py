from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.functions import col
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.types import StructType

from weirpool import LocalError
from weirpool.journal.layout import log_folder
from weirpool.journal.retention import commits
from weirpool.journal.writer import JournalWriter
from weirpool.spark.datasource import WeirpoolSource
from weirpool.spark.gaps import GAP_COLUMNS
from weirpool.spark.options import SourceOptions
from weirpool.spark.partitions import JournalPartition
from weirpool.spark.reading import TaskReader, read
from weirpool.spark.schema import COLUMNS, Projection
from weirpool.spark.source import JournalStreamReader

from .collectors import held, listening
from .journals import damage, datasource, fill, item, items, segments
from .peers import Receiver, receiving

SECONDS = 60


def test_name_and_columns(tmp_path: Path) -> None:
    assert WeirpoolSource.name() == "weirpool"
    assert datasource(tmp_path).schema() == COLUMNS
    assert datasource(tmp_path, rows="gaps").schema() == GAP_COLUMNS


def test_mistakes_come_up_at_load(tmp_path: Path) -> None:
    with pytest.raises(LocalError, match="did you mean"):
        datasource(tmp_path, startingOffset="latest").schema()


def test_readers_take_no_filters(tmp_path: Path) -> None:
    # Spark would use what is left for one query in the next one.
    for rows in ("items", "gaps"):
        source = datasource(tmp_path, rows=rows)
        assert type(source.reader(source.schema())).pushFilters is DataSourceReader.pushFilters


# From here on with Spark, which finds the format by its name.


def positions(rows: DataFrame) -> list[int]:
    return sorted(row.position for row in rows.select("position").collect())


def run(
    rows: DataFrame, checkpoint: Path, sink: Path, *, available_now: bool = True, query_name: str = "test"
) -> StreamingQuery:
    """Append a stream to Parquet."""
    writer = rows.writeStream.format("parquet").option("checkpointLocation", str(checkpoint)).queryName(query_name)
    if available_now:
        writer = writer.trigger(availableNow=True)
    return writer.start(str(sink))


def finish(query: StreamingQuery) -> None:
    try:
        assert query.awaitTermination(SECONDS)
    finally:
        query.stop()


def wait_until(query: StreamingQuery, position: int) -> None:
    """Wait until a query has read a source "a" up to a position."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        query.processAllAvailable()
        progress = query.lastProgress
        if progress and json.loads(progress["sources"][0]["endOffset"] or "{}").get("sources", {}).get("a") == position:
            return
    pytest.fail(f"the query did not come to position {position}: {query.lastProgress}")


@pytest.mark.spark
def test_batch_read(spark: SparkSession, journal: Path) -> None:
    fill(journal, "a", 7, 20_005)
    fill(journal, "b", 3)
    rows = spark.read.format("weirpool").load(str(journal))
    assert rows.schema == COLUMNS
    assert rows.count() == 20_008
    assert rows.where("source = 'a' and metadata is null").count() == 10_002
    (row,) = rows.where("source = 'b' and position = 2").collect()
    assert (row.stream, bytes(row.data), bytes(row.metadata)) == ("flights", item(2), b"even")


@pytest.mark.spark
def test_batch_read_of_some_columns_in_sql(spark: SparkSession, journal: Path) -> None:
    fill(journal, "a", 9)
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW log USING weirpool OPTIONS (journal '{journal}')")
    assert spark.sql("SELECT max(position) AS last FROM log").collect()[0].last == 8
    pruned = spark.read.format("weirpool").schema("data binary, position long").load(str(journal))
    assert pruned.columns == ["data", "position"]
    assert pruned.count() == 9


@pytest.mark.spark
def test_stream_read_restarts_where_it_was(spark: SparkSession, journal: Path, tmp_path: Path) -> None:
    fill(journal, "a", 10, 25)
    stream = spark.readStream.format("weirpool").option("reader", "spark")
    rows = stream.option("maxRowsPerTrigger", 10).load(str(journal))
    query = run(rows, tmp_path / "c", tmp_path / "out")
    finish(query)
    assert [progress["numInputRows"] for progress in query.recentProgress if progress["numInputRows"]] == [10, 10, 5]
    fill(journal, "a", 40)
    fill(journal, "b", 5)
    finish(run(rows, tmp_path / "c", tmp_path / "out"))
    out = spark.read.parquet(str(tmp_path / "out"))
    assert positions(out.where("source = 'a'")) == list(range(40))
    assert positions(out.where("source = 'b'")) == list(range(5))
    # Committed to the last row, although Spark's own commit() lags a batch behind.
    assert commits(log_folder(journal, "a")) == {"spark": 40}


@pytest.mark.spark
def test_stream_read_follows_and_trims_the_journal(spark: SparkSession, journal: Path, tmp_path: Path) -> None:
    fill(journal, "a", 10, 20, segment_bytes=1)
    rows = spark.readStream.format("weirpool").options(reader="spark", retainBytes=0).load(str(journal))
    query = run(rows, tmp_path / "c", tmp_path / "out", available_now=False)
    try:
        wait_until(query, 20)
        fill(journal, "a", 30, 31, segment_bytes=1)
        wait_until(query, 31)
    finally:
        query.stop()
    assert positions(spark.read.parquet(str(tmp_path / "out"))) == list(range(31))
    assert len(segments(journal, "a")) == 1


@pytest.mark.spark
def test_latest_begins_with_what_comes_after(spark: SparkSession, journal: Path, tmp_path: Path) -> None:
    fill(journal, "a", 10)
    rows = spark.readStream.format("weirpool").option("startingOffsets", "latest").load(str(journal))
    finish(run(rows, tmp_path / "c", tmp_path / "out"))
    fill(journal, "a", 15)
    finish(run(rows, tmp_path / "c", tmp_path / "out"))
    assert positions(spark.read.parquet(str(tmp_path / "out"))) == list(range(10, 15))


@pytest.mark.spark
def test_damaged_rows_end_the_query_unless_that_is_wanted(spark: SparkSession, journal: Path, tmp_path: Path) -> None:
    fill(journal, "a", 10, 20, 30)
    damage(segments(journal, "a")[0], item(15))
    rows = spark.readStream.format("weirpool").option("partitions", 1).load(str(journal))
    query = run(rows, tmp_path / "c", tmp_path / "out")
    with pytest.raises(StreamingQueryException, match="positions 10 to 19"):
        finish(query)
    lenient = spark.readStream.format("weirpool").option("failOnDataLoss", "false").load(str(journal))
    finish(run(lenient, tmp_path / "c", tmp_path / "out"))
    assert positions(spark.read.parquet(str(tmp_path / "out"))) == [*range(10), *range(20, 30)]
    gap = spark.read.format("weirpool").option("rows", "gaps").load(str(journal)).collect()[0]
    assert (gap.source, gap.position, gap.last_position, gap.lost_first, gap.lost_end) == ("a", 20, 9, 10, 20)
    assert gap.reason.startswith("skipped by query ") and gap.time >= gap.previous_time


@pytest.mark.spark
def test_stream_of_gaps_has_each_of_them_once(spark: SparkSession, journal: Path, tmp_path: Path) -> None:
    fill(journal, "a", 5)
    rows = spark.readStream.format("weirpool").option("rows", "gaps").load(str(journal))
    for reason in ("one", "two"):
        with JournalWriter.open(journal, "a", fsync=False) as writer:
            writer.append_gap(reason)
        finish(run(rows, tmp_path / "c", tmp_path / "out"))
    assert sorted(row.reason for row in spark.read.parquet(str(tmp_path / "out")).collect()) == ["one", "two"]


@pytest.mark.spark
def test_query_stops_before_the_rows_behind_a_gap(spark: SparkSession, journal: Path, tmp_path: Path) -> None:
    with JournalWriter.open(journal, "a", fsync=False) as writer:
        writer.append(items(0, 5), "flights")
        writer.append_gap("the session had expired")
        writer.append(items(5, 9), "flights")
    stream = spark.readStream.format("weirpool")
    with pytest.raises(StreamingQueryException, match=r"before position 5 .the session had expired., and failOnGap"):
        finish(run(stream.option("failOnGap", "true").load(str(journal)), tmp_path / "c", tmp_path / "out"))
    assert positions(spark.read.parquet(str(tmp_path / "out"))) == list(range(5))
    finish(run(stream.option("failOnGap", "false").load(str(journal)), tmp_path / "c", tmp_path / "out"))
    assert positions(spark.read.parquet(str(tmp_path / "out"))) == list(range(9))


@pytest.mark.spark
def test_second_query_under_a_name_is_refused(spark: SparkSession, journal: Path, tmp_path: Path) -> None:
    # THREATS 99
    fill(journal, "a", 10, 20, 30, segment_bytes=1)
    stream = spark.readStream.format("weirpool").options(reader="spark", retainBytes=0, maxRowsPerTrigger=10)
    query = run(stream.load(str(journal)), tmp_path / "c1", tmp_path / "out1", available_now=False)
    try:
        wait_until(query, 30)
        for checkpoint in ("c2", "c3"):
            with pytest.raises(StreamingQueryException, match="the reader name 'spark' belongs to another query"):
                finish(run(stream.load(str(journal)), tmp_path / checkpoint, tmp_path / "out2", query_name=checkpoint))
            query.stop()
    finally:
        query.stop()
    fill(journal, "a", 60, segment_bytes=1)
    finish(run(stream.load(str(journal)), tmp_path / "c1", tmp_path / "out1"))
    assert positions(spark.read.parquet(str(tmp_path / "out1"))) == list(range(60))


@pytest.mark.spark
def test_query_may_read_a_journal_twice_under_one_name(spark: SparkSession, journal: Path, tmp_path: Path) -> None:
    fill(journal, "a", *range(10, 61, 10), segment_bytes=1)
    stream = spark.readStream.format("weirpool").options(reader="spark", retainBytes=0, maxRowsPerTrigger=40)
    both = stream.load(str(journal)).union(stream.load(str(journal)))
    finish(run(both, tmp_path / "c", tmp_path / "out"))
    fill(journal, "a", 70)
    finish(run(both, tmp_path / "c", tmp_path / "out"))
    assert positions(spark.read.parquet(str(tmp_path / "out"))) == sorted([*range(70), *range(70)])
    assert len(segments(journal, "a")) == 1


class BlindTask(TaskReader):
    """Runs on a machine where the disk is not mounted: the journal's folder is empty there."""

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, JournalPartition)
        empty = replace(self._options, journal=f"{self._options.journal}.unmounted")
        return read(empty, self._projection, partition)


class BlindReader(JournalStreamReader):
    """Sees the journal, and its tasks do not."""

    def __reduce__(self) -> tuple[type[TaskReader], tuple[Any, ...]]:
        return BlindTask, (self._options, self._projection)


class BlindSource(WeirpoolSource):
    @classmethod
    def name(cls) -> str:
        return "blind"

    def streamReader(self, schema: StructType) -> BlindReader:
        return BlindReader(SourceOptions.parse(self.options), Projection(schema))


@pytest.mark.spark
@pytest.mark.parametrize("lossy", ["true", "false"])
def test_worker_that_does_not_see_the_journal_fails(
    spark: SparkSession, journal: Path, tmp_path: Path, lossy: str
) -> None:
    # THREATS 99: nothing is "lost", skipped or committed.
    fill(journal, "a", 10, 20)
    Path(f"{journal}.unmounted").mkdir()
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    try:
        spark.dataSource.register(BlindSource)
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
    rows = spark.readStream.format("blind").options(reader="spark", failOnDataLoss=lossy).load(str(journal))
    with pytest.raises(StreamingQueryException, match="JournalMissing"):
        finish(run(rows, tmp_path / "c", tmp_path / "out"))
    assert commits(log_folder(journal, "a")) == {"spark": 0}
    assert not (log_folder(journal, "a") / "_gaps").exists()


@pytest.mark.spark
def test_refusals_are_in_the_first_line_of_spark_s_error(spark: SparkSession, journal: Path, tmp_path: Path) -> None:
    with pytest.raises(PySparkException) as batch:
        spark.read.format("weirpool").load(str(journal)).collect()
    with pytest.raises(PySparkException) as stream:
        finish(run(spark.readStream.format("weirpool").load(str(journal)), tmp_path / "c", tmp_path / "out"))
    fill(journal, "a", 10)
    damage(segments(journal, "a")[0], item(5))
    with pytest.raises(PySparkException) as task:
        spark.read.format("weirpool").load(str(journal)).collect()
    assert "check the path" in str(batch.value).splitlines()[0]
    assert "check the path" in str(stream.value).splitlines()[0]
    assert "positions 0 to 9 are damaged" in "".join(str(task.value).splitlines()[:2])
    assert not any("Traceback" in str(error.value) for error in (batch, stream, task))


@pytest.mark.spark
def test_latest_of_a_journal_that_is_mounted_later(spark: SparkSession, journal: Path, tmp_path: Path) -> None:
    # THREATS 99
    fill(tmp_path / "disk", "a", 10)
    rows = spark.readStream.format("weirpool").option("startingOffsets", "latest").load(str(journal))
    query = run(rows, tmp_path / "c", tmp_path / "out", available_now=False)
    try:
        while not list((tmp_path / "c" / "commits").glob("[0-9]*")):
            assert query.isActive
    finally:
        query.stop()
    fill(tmp_path / "disk", "a", 15)
    (tmp_path / "disk").rename(journal)
    finish(run(rows, tmp_path / "c", tmp_path / "out"))
    assert positions(spark.read.parquet(str(tmp_path / "out"))) == list(range(10, 15))


@pytest.mark.spark
def test_option_with_a_typo_is_explained(spark: SparkSession, journal: Path) -> None:
    with pytest.raises(PySparkException, match='did you mean "maxRowsPerTrigger"'):
        spark.readStream.format("weirpool").option("maxRowPerTrigger", 10).load(str(journal))


@pytest.mark.spark
def test_batch_write(spark: SparkSession, receiver: Receiver) -> None:
    rows = spark.range(0, 1000, 1, 2).select((col("id") * 2).alias("double"))
    rows.write.format("weirpool").option("url", receiver.url).option("route", "rows").mode("append").save()
    assert sorted(json.loads(one.data)["double"] for one in receiver.items) == list(range(0, 2000, 2))
    metadata = [json.loads(one.metadata or b"") for one in receiver.items]
    assert len({one["query"] for one in metadata}) == 1
    assert sorted((one["partition"], one["index"]) for one in metadata) == [(p, i) for p in (0, 1) for i in range(500)]


@pytest.mark.spark
def test_stream_write_from_journal_to_channel(
    spark: SparkSession, journal: Path, receiver: Receiver, tmp_path: Path
) -> None:
    fill(journal, "a", 5, 9)
    rows = spark.readStream.format("weirpool").option("maxRowsPerTrigger", 5).load(str(journal))
    query = (
        rows.writeStream.format("weirpool")
        .option("url", receiver.url)
        .option("route", "rows")
        .option("checkpointLocation", str(tmp_path / "c"))
        .trigger(availableNow=True)
        .start()
    )
    query_id = str(query.id)
    finish(query)
    assert [one.data for one in receiver.items] == [item(position) for position in range(9)]
    metadata = [json.loads(one.metadata or b"") for one in receiver.items]
    assert {one["query"] for one in metadata} == {query_id}
    assert [one["batch"] for one in metadata] == [0] * 5 + [1] * 4


@pytest.mark.spark
def test_stream_write_to_nobody_ends_in_one_line(spark: SparkSession, journal: Path, tmp_path: Path) -> None:
    fill(journal, "a", 5)
    with receiving() as gone:
        pass
    rows = spark.readStream.format("weirpool").load(str(journal))
    writer = rows.writeStream.format("weirpool").option("url", gone.url).option("route", "rows")
    query = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start()
    with pytest.raises(StreamingQueryException, match="ConnectError"):
        finish(query)


@pytest.mark.spark
def test_overwrite_is_refused(spark: SparkSession, receiver: Receiver) -> None:
    writer = spark.range(3).write.format("weirpool").option("url", receiver.url).option("route", "rows")
    with pytest.raises(PySparkException, match=r'cannot be overwritten; use mode\("append"\)'):
        writer.mode("overwrite").save()
    assert receiver.items == []


@pytest.mark.spark
def test_rejected_rows_of_a_write_are_kept(spark: SparkSession, receiver: Receiver, tmp_path: Path) -> None:
    rows = spark.createDataFrame([(str(n) if n % 10 else "bad",) for n in range(40)], "data string").repartition(2)
    writer = rows.write.format("weirpool").options(url=receiver.url, route="asked", kind="call")
    writer.option("deadLetters", str(tmp_path / "dead")).mode("append").save()
    dead = spark.read.parquet(str(tmp_path / "dead")).collect()
    assert [bytes(row.data) for row in dead] == [b"bad"] * 4
    assert {row.message for row in dead} == {"not a number"}
    assert len(receiver.items) == 36


@pytest.mark.spark
def test_secrets_are_not_in_plans_or_errors(spark: SparkSession, receiver: Receiver) -> None:
    writer = spark.range(3).write.format("weirpool").options(url=receiver.url, route="refuse", token="geheim")
    with pytest.raises(PySparkException) as caught:
        writer.mode("append").save()
    assert "no room" in str(caught.value) and "geheim" not in str(caught.value)
    executions = spark._jsparkSession.sharedState().statusStore().executionsList()
    plans = [executions.apply(number).physicalPlanDescription() for number in range(executions.size())]
    assert any("AppendData weirpool" in plan for plan in plans)
    assert not any("geheim" in plan for plan in plans)


@pytest.mark.spark
def test_transactional_write_is_committed_as_a_whole(spark: SparkSession, journal: Path, tmp_path: Path) -> None:
    fill(journal, "a", 5, 9)
    received = tmp_path / "received"
    with listening(received) as url:
        stream = spark.readStream.format("weirpool").option("maxRowsPerTrigger", 5).load(str(journal))
        writer = stream.writeStream.format("weirpool").options(url=url, route="rows", delivery="transactional")
        finish(writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start())
    assert held(received) == [item(position) for position in range(9)]
