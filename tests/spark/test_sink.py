from __future__ import annotations

import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from weirpool import LocalError
from weirpool.spark import sink
from weirpool.spark.delivery import Delivered
from weirpool.spark.items import Origin, Packer
from weirpool.spark.sink import BatchSink, Sent, StreamSink
from weirpool.spark.sink_options import SinkOptions

from .collectors import held
from .drivers import exit_code_of
from .journals import fill, item

SCHEMA = StructType([StructField("data", StringType())])


class Task:
    """Stands in for Spark's TaskContext."""

    def __init__(self, **properties: str) -> None:
        self.properties = {key.replace("_", "."): value for key, value in properties.items()}

    def partitionId(self) -> int:
        return 3

    def getLocalProperty(self, name: str) -> str | None:
        return self.properties.get(name)


@pytest.fixture
def origins(monkeypatch: pytest.MonkeyPatch) -> list[Origin]:
    seen: list[Origin] = []

    def publish(options: SinkOptions, packer: Packer, origin: Origin, batches: Iterator[pa.RecordBatch]) -> Delivered:
        seen.append(origin)
        return Delivered(sum(batch.num_rows for batch in batches))

    monkeypatch.setattr(sink, "publish", publish)
    return seen


def options(**more: str) -> SinkOptions:
    return SinkOptions.parse({"url": "rsocket+tcp://127.0.0.1:1", "route": "rows", **more})


def write(writer: Any, monkeypatch: pytest.MonkeyPatch, task: Task) -> Sent:
    monkeypatch.setattr(TaskContext, "get", lambda: task)
    sent = pickle.loads(pickle.dumps(writer)).write(iter([pa.record_batch({"data": ["a", "b"]})]))
    assert isinstance(sent, Sent)
    return sent


def test_a_batch_has_one_name_for_all_its_tasks(origins: list[Origin], monkeypatch: pytest.MonkeyPatch) -> None:
    writer = BatchSink(options(), SCHEMA)
    assert write(writer, monkeypatch, Task()).delivered == Delivered(2)
    write(writer, monkeypatch, Task())
    write(BatchSink(options(), SCHEMA), monkeypatch, Task())
    first, again, other = origins
    assert first == again and first.query != other.query
    assert (first.batch, first.partition) == (0, 3)


def test_a_stream_has_the_id_and_micro_batch_of_its_query(
    origins: list[Origin], monkeypatch: pytest.MonkeyPatch
) -> None:
    task = Task(streaming_sql_batchId="12", sql_streaming_queryId="4a7d")
    assert write(StreamSink(options(), SCHEMA), monkeypatch, task) == Sent(Origin("4a7d", 12, 3), Delivered(2))
    write(StreamSink(options(queryName="delays"), SCHEMA), monkeypatch, task)
    assert origins == [Origin("4a7d", 12, 3)] * 2


def test_a_stream_without_a_micro_batch_is_an_older_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LocalError, match=r"Spark 4\.2 or newer"):
        write(StreamSink(options(), SCHEMA), monkeypatch, Task())


@pytest.mark.parametrize("writer", [BatchSink(options(), SCHEMA), StreamSink(options(), SCHEMA)])
def test_writes_inside_a_task_only(writer: BatchSink | StreamSink) -> None:
    with pytest.raises(LocalError, match="inside a Spark task"):
        writer.write(iter([]))


@pytest.mark.parametrize("writer", [BatchSink, StreamSink])
def test_wrong_columns_are_seen_when_the_write_is_planned(writer: type[BatchSink] | type[StreamSink]) -> None:
    with pytest.raises(LocalError, match="did you mean 'data'"):
        writer(options(dataColumn="dta"), SCHEMA)


@contextmanager
def collector(journal: Path) -> Iterator[str]:
    """Run `weirpool collect --listen`, and end it by `kill -9`."""
    command = [sys.executable, "-m", "weirpool", "collect", "--listen", "rsocket+tcp://127.0.0.1:0"]
    command += ["--receive", "rows", "--journal", str(journal)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().split()[-1]
    finally:
        process.kill()
        process.communicate()


def killed(point: str, folder: Path, url: str) -> int:
    """Copy the journal with a driver that is killed at a point; return its exit code."""
    return exit_code_of("tests.spark.killed_sink", point, str(folder / "journal"), str(folder / "c"), url)


@pytest.mark.spark
@pytest.mark.slow
def test_killed_drivers_and_collectors_leave_every_row_once(spark: SparkSession, tmp_path: Path) -> None:
    fill(tmp_path / "journal", "a", *range(1_000, 10_001, 1_000))
    for point in ("staged", "committed"):
        with collector(tmp_path / "received") as url:
            assert killed(point, tmp_path, url) == -signal.SIGKILL
    with collector(tmp_path / "received") as url:
        rows = spark.readStream.format("weirpool").option("maxRowsPerTrigger", 3_000).load(str(tmp_path / "journal"))
        writer = rows.writeStream.format("weirpool").options(url=url, route="rows", delivery="transactional")
        query = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start()
        assert query.awaitTermination(100)
    assert held(tmp_path / "received") == [item(position) for position in range(10_000)]
