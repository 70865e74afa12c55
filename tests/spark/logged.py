"""Sinks with secrets, in a Spark that logs its events: ``python -m tests.spark.logged FOLDER``; it prints JSON.

The result is where a secret was found: in an error, a plan, the progress of a query, a page of Spark, or any file.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from weirpool.spark.local import session

from .peers import receiving

SECRET = "geheim"
MARK = "not-a-secret"
"""A text that must be found, to show that the search works."""
CREDENTIALS = (
    {"token": SECRET},
    {"token": SECRET, "authenticate": "request"},
    {"user": f"{SECRET}-user", "password": SECRET},
    {"setup": SECRET},
)
MISTAKES = (
    {"token": SECRET, "kid": "call"},
    {"token": SECRET, "timeout": "soon"},
    {"token": SECRET, "cafile": "/nowhere.pem"},
    {"set.headers": f"Authorization: {SECRET}"},
    {"url": f"rsocket+tcp://127.0.0.1:1?token={SECRET}"},
    {"url": f"rsocket+tcp://me:{SECRET}@127.0.0.1:1"},
    {"url": "rsocket+tcp://127.0.0.1:1", "token": SECRET, "retries": "0"},
)
PAGES = ("jobs/", "stages/", "SQL/", "StreamingQuery/", "environment/", "api/v1/applications/{}/sql?details=true")


def main(folder: str) -> None:
    events = Path(folder, "events")
    events.mkdir()
    spark = session(
        "logged",
        master="local[1]",
        spark__driver__memory="700m",
        spark__ui__enabled="true",
        spark__ui__port="0",
        spark__eventLog__enabled="true",
        spark__eventLog__dir=str(events),
        spark__eventLog__compress="false",
    )
    texts = dict(_texts(spark, Path(folder)))
    spark.stop()
    files = [path for path in Path(folder).rglob("*") if path.is_file()]
    texts |= {str(path.relative_to(folder)): path.read_bytes().decode("latin-1") for path in files}
    log = "".join(text for name, text in texts.items() if name.startswith("events/"))
    found = {
        "secrets": sorted(name for name, text in texts.items() if SECRET in text),
        "marks": sorted(name.partition("/")[0] for name, text in texts.items() if MARK in text),
        "errors": sum(name.startswith("error") for name in texts),
        "writes": log.count("AppendData weirpool"),
        "streamed": log.count("QueryTerminatedEvent"),
    }
    print(json.dumps(found))


def _texts(spark: SparkSession, folder: Path) -> Iterator[tuple[str, str]]:
    """Yield what people see of some writes, with the place of each."""
    spark.sparkContext.setJobDescription(MARK)
    rows = spark.range(3).selectExpr("CAST(id AS STRING) AS data")
    with receiving() as receiver:
        for number, options in enumerate((*CREDENTIALS, *MISTAKES)):
            for route in ("silent", "refuse"):
                given = {"url": receiver.url, "route": route, **options}
                yield f"error {number} {route}", _error(lambda given=given: _write(rows, given))  # type: ignore[misc]
        for number, options in enumerate(CREDENTIALS):
            for route in ("silent", "refuse"):
                name = f"{number}-{route}"
                yield from _streamed(spark, {"url": receiver.url, "route": route, **options}, folder / name, name)
    assert spark.sparkContext.uiWebUrl is not None
    for page in PAGES:
        with urlopen(
            f"{spark.sparkContext.uiWebUrl}/{page.format(spark.sparkContext.applicationId)}", timeout=60
        ) as got:
            yield f"page {page}", got.read().decode()


def _write(rows: DataFrame, options: dict[str, str]) -> None:
    rows.write.format("weirpool").options(**options).mode("append").save()


def _error(work: Callable[[], None]) -> str:
    try:
        work()
    except PySparkException as error:
        return str(error)
    return ""


def _streamed(spark: SparkSession, options: dict[str, str], checkpoint: Path, name: str) -> Iterator[tuple[str, str]]:
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", "5").load()
    writer = source.selectExpr("CAST(value AS STRING) AS data").writeStream.format("weirpool").options(**options)
    query = writer.option("checkpointLocation", str(checkpoint)).queryName(name).start()
    with suppress(PySparkException):
        while not query.recentProgress:
            query.awaitTermination(1)
    yield f"plan of {name}", query._jsq.explainInternal(True)
    yield f"progress of {name}", str(query.recentProgress)
    query.stop()
    yield f"error of {name}", str(query.exception())


if __name__ == "__main__":
    main(*sys.argv[1:])
