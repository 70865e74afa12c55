"""A client of Spark Connect: ``python -m tests.spark.connected JOURNAL SEALED FOLDER``; it prints JSON."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from weirpool.errors import JournalCorrupt
from weirpool.spark import history
from weirpool.spark.java import ensure_java

from ..archive.changes import changed_rows
from .journals import fill


def main(journal: str, sealed: str, folder: str) -> None:
    ensure_java()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    # Otherwise the server has a fixed port.
    os.environ["SPARK_TESTING"] = "1"
    spark = (
        SparkSession.builder.remote("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.python.filterPushdown.enabled", "true")
        .getOrCreate()
    )
    found: dict[str, Any] = {"session": type(spark).__module__}
    rows = spark.read.format("weirpool").load(journal)
    part = rows.where("position >= 7")
    found["rows"] = [part.count(), rows.count(), part.unionAll(rows.where("position < 2")).unionAll(rows).count()]
    files = sorted(Path(sealed).glob("source=a/*.parquet"))
    content = files[0].read_bytes()
    found["history"] = history(spark, sealed).count()
    found["damage"] = []
    for changed in (next(changed_rows(content)), files[1].read_bytes()):
        files[0].write_bytes(changed)
        try:
            history(spark, sealed).collect()
        except (PySparkException, JournalCorrupt) as error:
            found["damage"].append(str(error).splitlines()[0])
    rows.createOrReplaceTempView("rows_of_then")
    spark.table("rows_of_then").count()
    fill(Path(journal), "a", 14)
    found["later"] = [
        rows.count(),
        spark.table("rows_of_then").count(),
        spark.read.format("weirpool").load(journal).count(),
    ]
    out, checkpoint = str(Path(folder, "out")), str(Path(folder, "checkpoint"))
    stream = spark.readStream.format("weirpool").option("reader", "connect").load(journal)
    writer = stream.writeStream.format("parquet").option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start(out).awaitTermination()
    found["streamed"] = spark.read.parquet(out).count()
    try:
        spark.read.format("weirpool").load(f"{journal}-typo").count()
    except PySparkException as error:
        found["error"] = str(error).splitlines()[0]
    spark.stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
