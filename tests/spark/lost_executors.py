"""Queries whose executors are killed in the middle of a task: ``python -m tests.spark.lost_executors FOLDER``.

It prints JSON: the rows that each query has, and how many executors were lost. Each task that kills does it once.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyspark
from pyspark.sql import DataFrame, SparkSession

from weirpool.spark.local import session

from .collectors import held, listening
from .journals import fill, item

ROWS = 2000


def killing(folder: str, name: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the work of a task that passes rows on, and kills its executor after the first batch, once."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch
            try:
                os.close(os.open(f"{folder}/killed-{name}", os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                continue
            # This process, the daemon that has forked it, and the executor.
            with open(f"/proc/{os.getppid()}/stat") as stat:
                os.kill(int(stat.read().rpartition(")")[2].split()[1]), signal.SIGKILL)

    return work


def main(folder: str) -> None:
    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    spark = session(
        "lost executors",
        master="local-cluster[2,1,512]",
        spark__driver__memory="700m",
        spark__executor__memory="512m",
        spark__task__maxFailures="8",
        spark__sql__execution__arrow__maxRecordsPerBatch="100",
    )
    spark.sparkContext.setLogLevel("OFF")
    journal = Path(folder, "journal")
    fill(journal, "a", *range(100, ROWS + 1, 100))
    found = {
        "batch": _positions(_batch(spark, journal, folder)),
        "stream": _positions(_stream(spark, journal, folder)),
        "sink": _sent(spark, journal, folder),
        "killed": len(list(Path(folder).glob("killed-*"))),
    }
    print(json.dumps(found))
    sys.stdout.flush()
    # The executors that Spark is still replacing make noise at the end.
    os._exit(0)


def _batch(spark: SparkSession, journal: Path, folder: str) -> DataFrame:
    """Lose an executor while rows are read, and one with the results of a stage while the next one reads them."""
    rows = spark.read.format("weirpool").option("partitions", "4").load(str(journal)).select("position")
    read = rows.mapInArrow(killing(folder, "read"), "position bigint")
    return read.repartition(4).mapInArrow(killing(folder, "shuffle"), "position bigint")


def _stream(spark: SparkSession, journal: Path, folder: str) -> DataFrame:
    source = spark.readStream.format("weirpool").option("reader", "lake").option("maxRowsPerTrigger", "1000")
    rows = source.option("partitions", "2").load(str(journal)).select("position")
    killed = rows.mapInArrow(killing(folder, "stream"), "position bigint")
    writer = killed.writeStream.format("parquet").option("checkpointLocation", f"{folder}/checkpoint")
    writer.trigger(availableNow=True).start(f"{folder}/out").awaitTermination()
    return spark.read.parquet(f"{folder}/out")


def _sent(spark: SparkSession, journal: Path, folder: str) -> list[int]:
    """Commit rows at a collector, and lose an executor after its task has staged some."""
    rows = spark.read.format("weirpool").option("partitions", "2").load(str(journal)).select("data")
    received = Path(folder, "received")
    with listening(received) as url:
        writer = rows.mapInArrow(killing(folder, "sink"), "data binary").write
        writer.format("weirpool").options(url=url, route="rows", delivery="transactional").mode("append").save()
    numbers = {item(position): position for position in range(ROWS)}
    return [numbers[data] for data in held(received)]


def _positions(frame: DataFrame) -> list[int]:
    return [row.position for row in frame.collect()]


if __name__ == "__main__":
    main(*sys.argv[1:])
