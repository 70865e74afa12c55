"""Queries on a journal that a collector serves: neither the driver nor a task is told its folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.serving.served import serving, until
from weirpool.archive import SealOptions, seal
from weirpool.errors import JournalCorrupt, JournalError, JournalMismatch
from weirpool.journal import Journal
from weirpool.journal.coordinator import FolderCoordinator
from weirpool.spark import history

from .journals import (
    advance,
    damage,
    datasource,
    fill,
    item,
    over_the_wire,
    read_batch,
    read_between,
    segments,
    stream_reader,
)


def rows(frame: DataFrame) -> list[tuple[str, int, bytes]]:
    """Return source, position and data of all rows, in order."""
    return sorted((row.source, row.position, bytes(row.data)) for row in frame.collect())


def expected(**ends: int) -> list[tuple[str, int, bytes]]:
    return [(source, at, item(at)) for source, end in sorted(ends.items()) for at in range(end)]


def test_batches_and_streams_read_it_across_a_restart_of_the_collector(
    spark: SparkSession, journal: Path, tmp_path: Path
) -> None:
    fill(journal, "a", 20_000, 30_000)
    fill(journal, "b", 500)

    def run(url: str) -> None:
        stream = spark.readStream.format("weirpool").option("reader", "lake").option("retainBytes", "0").load(url)
        write = stream.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
        write.trigger(availableNow=True).start(str(tmp_path / "lake")).awaitTermination()

    with serving(journal) as served:
        assert rows(spark.read.format("weirpool").load(served.url)) == expected(a=30_000, b=500)
        run(served.url)
    fill(journal, "a", 30_010)
    with serving(journal, served.url) as again:
        run(again.url)
    assert rows(spark.read.parquet(str(tmp_path / "lake"))) == expected(a=30_010, b=500)
    committed = FolderCoordinator(str(journal)).cursors("a")
    assert committed["lake"].position >= 30_000


def test_the_history_is_read_there_too(spark: SparkSession, journal: Path) -> None:
    fill(journal, "a", 10, 20, 30, segment_bytes=1)
    sealed = seal(journal, "a", SealOptions(target_bytes=1), force=True)
    assert sealed is not None
    with serving(journal) as served:
        assert rows(history(spark, served.url)) == expected(a=30)
        assert rows(history(spark, served.url, positions={"a": (5, 7)})) == expected(a=30)[5:7]


def test_a_driver_sees_new_rows_and_commits_them(journal: Path) -> None:
    fill(journal, "a", 100)
    with serving(journal) as served:
        reader = stream_reader(served.url, reader="lake", retainBytes="0")
        first = advance(reader, over_the_wire(reader.initialOffset()))
        assert read_between(reader, over_the_wire(reader.initialOffset()), first) == [item(at) for at in range(100)]
        fill(journal, "a", 150)
        fill(journal, "b", 5)
        ends: list[dict[str, int]] = []

        def complete() -> bool:
            ends.append(advance(reader, first)["sources"])
            return ends[-1] == {"a": 150, "b": 5}

        until(complete)
        assert FolderCoordinator(str(journal)).cursors("a")["lake"].position == 100
        other = stream_reader(served.url, reader="lake")
        with pytest.raises(JournalMismatch, match="belongs to another query"):
            advance(other, over_the_wire(other.initialOffset()))
        reader.stop()


def test_lost_rows_are_skipped_and_recorded_at_the_collector(journal: Path) -> None:
    fill(journal, "a", 10, 20, 30)
    damage(segments(journal, "a")[0], b"item 15")
    with serving(journal) as served:
        strict, lenient = (stream_reader(served.url, failOnDataLoss=text) for text in ("true", "false"))
        start = over_the_wire(strict.initialOffset())
        with pytest.raises(JournalCorrupt, match="positions 10 to 19"):
            read_between(strict, start, advance(strict, start))
        end = advance(lenient, start)
        assert read_between(lenient, start, end) == [item(at) for at in (*range(10), *range(20, 30))]
    [loss] = Journal(journal).reader("a").gaps()
    assert loss.lost == (10, 20) and loss.query == end["query"]


def test_gaps_are_rows_from_there_too(journal: Path) -> None:
    fill(journal, "a", 10)
    with Journal(journal).writer("a", fsync=False) as writer:
        writer.append_gap("the publisher was replaced")
    with serving(journal) as served:
        source = datasource(served.url, rows="gaps")
        assert read_batch(source.reader(source.schema())).column("reason").to_pylist() == ["the publisher was replaced"]


def test_a_collector_that_is_not_there_ends_a_batch_with_a_sentence(journal: Path) -> None:
    with serving(journal) as served:
        pass
    source = datasource(served.url, journalTimeout="0")
    with pytest.raises(JournalError, match="cannot be reached"):
        source.reader(source.schema()).partitions()
