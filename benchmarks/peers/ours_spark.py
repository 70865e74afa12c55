"""Spark, which reads a journal: the address of its client is the journal's folder."""

from __future__ import annotations

import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamReader, StreamingQuery

from weirpool.journal.opening import open_log
from weirpool.spark.local import session
from weirpool.spark.options import SourceOptions
from weirpool.spark.partitions import JournalPartition, Range
from weirpool.spark.reading import TaskReader
from weirpool.spark.schema import COLUMNS, Projection

from ..journal_to_spark import Prebuilt
from .publisher import EVENT_BYTES

__all__ = ["Client", "connected"]

MASTER = "local[2]"


class Client:
    def __init__(self, spark: SparkSession, journal: str) -> None:
        self.spark = spark
        self.options = {"journal": journal, "trim": "false", "partitions": "2"}
        self.query: StreamingQuery | None = None

    async def batch(self, source: str) -> None:
        """Read a log to the noop sink as a batch."""
        rows = self.spark.read.format("weirpool").options(**self.options, source=source).load()
        rows.write.format("noop").mode("overwrite").save()

    async def prebuilt(self, rows: str) -> None:
        """Read so many rows, which need no reading, to the noop sink as a batch."""
        self.spark.dataSource.register(Prebuilt)
        self.spark.read.format("prebuilt").option("rows", rows).load().write.format("noop").mode("overwrite").save()

    async def rows(self, source: str) -> dict[str, float]:
        """Read a log as the tasks of a batch do, without Spark, and return the CPU seconds that it takes."""
        journal = self.options["journal"]
        log = open_log(journal, source)
        begun = time.process_time()
        task = TaskReader(SourceOptions.parse(self.options), Projection(COLUMNS))
        for _ in task.read(JournalPartition([Range(source, log.first, log.end, log.uuid)])):
            pass
        return {"cpu_used": time.process_time() - begun}

    async def stream(self, source: str, rows_per_batch: str) -> None:
        """Read a log to the noop sink as a stream, in micro-batches of this size."""
        rows = self._log(source).option("maxRowsPerTrigger", rows_per_batch).load()
        with tempfile.TemporaryDirectory(prefix="weirpool-bench-") as checkpoint:
            writer = rows.writeStream.format("noop").option("checkpointLocation", checkpoint)
            writer.trigger(availableNow=True).start().awaitTermination()

    async def start(self, source: str, rows_per_batch: str, checkpoint: str) -> None:
        """Start to read a log to the noop sink."""
        rows = self._log(source).option("maxRowsPerTrigger", rows_per_batch).load()
        self.query = rows.writeStream.format("noop").option("checkpointLocation", checkpoint).start()

    async def settle(self) -> None:
        """Wait until the query has read all rows that there are."""
        assert self.query is not None
        self.query.processAllAvailable()

    async def follow(self, source: str, folder: str) -> None:
        """Start to write the times of a log's events to a folder of Parquet files."""
        rows = self._log(source).schema("data binary").load()
        event = f"CAST(conv(hex(substring(data, 1, {EVENT_BYTES})), 16, 10) AS BIGINT) AS event"
        self._start(rows.selectExpr(event), folder)

    async def floor(self, folder: str) -> None:
        """Start to write one row a second to a folder; Spark emits it when its second is over."""
        rows = self.spark.readStream.format("rate").option("rowsPerSecond", "1").load()
        self._start(rows.selectExpr("unix_micros(timestamp) + 1000000 AS event"), folder)

    async def stop(self) -> None:
        """Stop the query."""
        assert self.query is not None
        self.query.stop()

    def _log(self, source: str) -> DataStreamReader:
        return self.spark.readStream.format("weirpool").options(**self.options, source=source)

    def _start(self, events: DataFrame, folder: str) -> None:
        writer = events.writeStream.format("parquet").option("checkpointLocation", f"{folder}-checkpoint")
        self.query = writer.start(folder)


@asynccontextmanager
async def connected(address: str, tuned: bool) -> AsyncIterator[Client]:
    spark = session("benchmarks", master=MASTER, spark__log__level="ERROR")
    try:
        yield Client(spark, address)
    finally:
        spark.stop()
