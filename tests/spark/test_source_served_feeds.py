"""Spark reads the journals of a collector of many feeds through its one address."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.cli.conftest import INTEROP, SECONDS
from tests.cli.conftest import serving as publishing
from tests.cli.test_feeds import collecting
from tests.cli.test_feeds_serving import feed, reads, served_on, write
from tests.serving.served import served_by, until
from weirpool import Service
from weirpool.serving.journals import ServedJournals

from .journals import EARLIEST, advance, fill, item, read_between, stream_reader


def test_queries_go_on_while_journals_come_and_go(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("WEIRPOOL_SERVE_TOKEN", "WEIRPOOL_JOURNAL_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    source = spark.readStream.format("weirpool").option("reader", "lake")

    def run(url: str) -> DataFrame:
        write_rows = source.load(url).writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        write_rows.trigger(availableNow=True).start(str(tmp_path / "lake")).awaitTermination()
        return spark.read.parquet(str(tmp_path / "lake"))

    with publishing(f"{INTEROP}:service", "rsocket+tcp://127.0.0.1:0") as (_, [publisher]):
        path = write(tmp_path / "feeds.toml", publisher, feed("one", 500) + feed("two", 300))
        with collecting(path, "--serve", "rsocket+tcp://127.0.0.1:0") as (process, _):
            url = served_on(process)
            one, two, three = (f"{url}?journal={name}" for name in ("one", "two", "three"))
            until(reads(one, "one", 500), SECONDS)
            until(reads(two, "two", 300), SECONDS)
            assert run(one).count() == 500
            assert spark.read.format("weirpool").load(two).count() == 300
            write(path, publisher, feed("one", 500) + feed("more", 40, "one") + feed("three", 7))
            os.kill(process.pid, signal.SIGHUP)
            until(reads(three, "three", 7), SECONDS)
            until(reads(one, "more", 40), SECONDS)
            # The same query goes on, with the rows of a log that the reload has added.
            assert run(one).groupBy("source").count().orderBy("source").collect() == [("more", 40), ("one", 500)]
            assert spark.read.format("weirpool").load(three).count() == 7
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, "Traceback" in err) == (0, False)


def test_a_driver_reads_the_journal_that_its_url_names(tmp_path: Path) -> None:
    for name, rows in (("one", 50), ("two", 30)):
        fill(tmp_path / name, name, rows)
    journals = ServedJournals({name: str(tmp_path / name) for name in ("one", "two")})
    admit = {"acceptor": lambda setup: journals.admit(setup.payload.data), "on_connection": journals.connected}
    with served_by(Service(), **admit) as url:
        for name, rows in (("one", 50), ("two", 30)):
            reader = stream_reader(f"{url}?journal={name}", reader="lake")
            start = EARLIEST.json()
            assert read_between(reader, start, advance(reader, start)) == [item(at) for at in range(rows)]
            reader.stop()
