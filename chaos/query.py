"""The Spark query: ``python -m chaos.query FOLDER JOURNAL EXECUTORS``.

JOURNAL is a folder, or the URL of a served one. The query copies it to Parquet until the file `drain` exists. Then it
copies the remaining rows, writes the gaps as seen by Spark to a file, and ends.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from weirpool.spark.local import session

READER: Final = "chaos"
PATIENCE: Final = 1
"""Seconds between checks for the file."""


def begin(spark: SparkSession, folder: Path, journal: str, once: bool) -> StreamingQuery:
    """Start the query from its checkpoint."""
    rows = spark.readStream.format("weirpool").option("reader", READER)
    columns = rows.load(journal).select("source", "position", "data")
    writer = columns.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    trigger = {"availableNow": True} if once else {"processingTime": "200 milliseconds"}
    return writer.trigger(**trigger).start(str(folder / "parquet"))


def write_gaps(spark: SparkSession, folder: Path, journal: str) -> None:
    """Write the gaps as seen by Spark to a file."""
    gaps = spark.read.format("weirpool").option("rows", "gaps").load(journal)
    shown = sorted((row["source"], row["position"], row["reason"]) for row in gaps.collect())
    (folder / "gaps.json").write_text(json.dumps(shown))


def main(folder: Path, journal: str, executors: int) -> None:
    """Run the query on executors in separate processes, each with its own Python workers."""
    spark = session(
        "chaos",
        master=f"local-cluster[{executors},1,1024]",
        spark__driver__memory="1g",
        spark__executor__memory="1g",
        spark__task__maxFailures="8",
        # By default the application ends with the tenth executor that is killed.
        spark__deploy__maxExecutorRetries="-1",
        # Executors import what the driver imports.
        spark__executorEnv__PYTHONPATH=os.environ.get("PYTHONPATH", ""),
        spark__sql__streaming__pollingDelay="50ms",
        spark__sql__streaming__minBatchesToRetain="20",
    )
    drain = folder / "drain"
    query = begin(spark, folder, journal, once=False)
    while not drain.exists():
        if query.awaitTermination(PATIENCE):
            raise SystemExit("chaos: the query ended by itself")
    query.stop()
    begin(spark, folder, journal, once=True).awaitTermination()
    write_gaps(spark, folder, journal)
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
