"""A data engineer's program, and Spark's driver: ``python -m tests.cluster.pipeline MASTER JVM_OPTIONS``.

It reads orders from its standard input, a line of JSON each, and answers each with a line of JSON.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from weirpool.spark import history

EXECUTORS = ("WEIRPOOL_JOURNAL_CA", "WEIRPOOL_JOURNAL_CERT", "WEIRPOOL_JOURNAL_KEY")
STORE = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")


class Pipeline:
    """The program between two orders."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._query: StreamingQuery | None = None

    def start(self, url: str, lake: str) -> None:
        """Copy a journal into a table of Parquet, from the table's checkpoint on."""
        rows = self._spark.readStream.format("weirpool").option("reader", "lake").option("minPartitions", "2").load(url)
        writer = rows.writeStream.format("parquet").option("checkpointLocation", f"{lake}/checkpoint")
        self._query = writer.trigger(processingTime="2 seconds").start(f"{lake}/table")

    def error(self) -> str | None:
        """Return what has ended the query; None while it runs."""
        assert self._query is not None
        error = self._query.exception()
        return None if error is None else str(error)

    def stop(self) -> None:
        """Stop the query."""
        assert self._query is not None
        self._query.stop()

    def history(self, journal: str, lake: str) -> None:
        """Write the history of a journal to a table."""
        history(self._spark, journal).write.parquet(lake)

    def look(self, folder: str) -> list[list[str]]:
        """Return what the driver and the workers see in a folder."""
        found = self._spark.sparkContext.parallelize(range(4), 4).map(lambda _: seen(folder)).collect()
        return [seen(folder), *found]


def seen(folder: str) -> list[str]:
    """Return the names in a folder, which may be closed to this process."""
    try:
        return sorted(os.listdir(folder))
    except PermissionError:
        return []


def main(master: str, java: str) -> None:
    """Obey until the input ends."""
    builder = SparkSession.builder.master(master).appName("lab")
    for name in (*EXECUTORS, *STORE):
        builder = builder.config(f"spark.executorEnv.{name}", os.environ[name])
    for name, value in {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "768m",
        "spark.executor.memory": "768m",
        "spark.driver.extraJavaOptions": java,
        "spark.executor.extraJavaOptions": java,
        # On a machine that is busy, Python takes longer than 15 s to start.
        "spark.python.authenticate.socketTimeout": "120s",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Compiling a query takes longer than running it on so few rows.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.streaming.pollingDelay": "50ms",
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    pipeline = Pipeline(spark)
    print(json.dumps({"answer": "ready"}), flush=True)
    for line in sys.stdin:
        order: dict[str, Any] = json.loads(line)
        try:
            answer = {"answer": getattr(pipeline, order.pop("do"))(**order)}
        except Exception as error:
            answer = {"answer": None, "error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
