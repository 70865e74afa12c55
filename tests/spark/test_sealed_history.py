from __future__ import annotations

import logging
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.dataset
import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.objects.stores import numbers
from tests.spark.journals import fill, item, items
from weirpool.archive import SealOptions, seal
from weirpool.errors import JournalMissing, LocalError
from weirpool.journal import Journal, JournalWriter
from weirpool.spark.schema import COLUMNS
from weirpool.spark.sealed_history import history

pytestmark = pytest.mark.spark

HOUR = timedelta(hours=1)
START = datetime(2026, 1, 1, tzinfo=UTC)
SMALL = SealOptions(target_bytes=1)


def hourly(journal: Path, source: str, *ends: int) -> None:
    """Append batches that end at these positions, each a segment, an hour after the one before it."""
    hour = 0
    with JournalWriter.open(
        journal, source, segment_bytes=1, fsync=False, clock=lambda: (START + hour * HOUR).timestamp()
    ) as writer:
        for hour, end in enumerate(ends):  # noqa: B007
            writer.append(items(writer.position, end), "flights")


def sealed(journal: Path, source: str, files: int = 100, options: SealOptions = SMALL) -> None:
    for _ in range(files):
        if seal(journal, source, options, force=True) is None:
            return


def rows(frame: DataFrame) -> list[tuple[str, int]]:
    assert frame.columns == COLUMNS.names
    found = sorted(
        (row.source, row.position, bytes(row.data)) for row in frame.select("source", "position", "data").collect()
    )
    assert all(data == item(position) for _, position, data in found)
    return [(source, position) for source, position, _ in found]


def of(source: str, *spans: tuple[int, int]) -> list[tuple[str, int]]:
    return [(source, position) for first, end in spans for position in range(first, end)]


def files_read(frame: DataFrame) -> set[str]:
    """Return the names of the Parquet files that a query over all of a frame would open."""
    return {path.rpartition("/")[2].removesuffix(".parquet").lstrip("0") or "0" for path in frame.inputFiles() if path}


def test_sealed_rows_and_the_tail_are_one_frame(spark: SparkSession, journal: Path) -> None:
    hourly(journal, "a", 10, 20, 30)
    hourly(journal, "007", 5, 15)
    hourly(journal, "b", 4)
    for source in ("a", "007", "b"):
        sealed(journal, source)
    frame = history(spark, str(journal))
    assert rows(frame) == [*of("007", (0, 15)), *of("a", (0, 30)), *of("b", (0, 4))]
    first = frame.where("source = 'a' and position = 12").collect()[0]
    assert (first.stream, first.metadata, first.time.astimezone(UTC)) == ("flights", bytearray(b"even"), START + HOUR)


def test_a_folder_may_have_any_name(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("a b", "x%41", "ü", "a[b]{c,d}", "q?*", "h#x", "co:lon", "back\\slash"):
        journal = tmp_path / name
        hourly(journal, "a", 2, 4, 6)
        sealed(journal, "a")
        assert rows(history(spark, str(journal))) == of("a", (0, 6)), name


def test_a_file_that_is_removed_meanwhile_is_an_error_whatever_the_session_says(
    spark: SparkSession, journal: Path
) -> None:
    hourly(journal, "a", 10, 20, 30)
    sealed(journal, "a")
    for setting, damage in (("Missing", Path.unlink), ("Corrupt", lambda path: path.write_bytes(b"junk"))):
        name = f"spark.sql.files.ignore{setting}Files"
        spark.conf.set(name, "true")
        try:
            frame = history(spark, str(journal))
            damage(next(iter(sorted(journal.glob("source=a/*.parquet")))))
            with pytest.raises(Exception, match=r"(?i)does not exist|not a Parquet file|FileNotFound|FAILED_READ_FILE"):
                frame.collect()
        finally:
            spark.conf.unset(name)
        shutil.rmtree(journal)
        hourly(journal, "a", 10, 20, 30)
        sealed(journal, "a")


def test_sources_positions_and_times_are_selected(spark: SparkSession, journal: Path) -> None:
    hourly(journal, "a", 10, 20, 30, 40)
    hourly(journal, "b", 10, 20)
    sealed(journal, "a")
    sealed(journal, "b")
    path = str(journal)
    assert rows(history(spark, path, sources=["b"])) == of("b", (0, 20))
    assert rows(history(spark, path, positions={"a": (5, 35)})) == of("a", (5, 35))
    assert rows(history(spark, path, positions={"a": (20, 20), "b": (19, 99)})) == of("b", (19, 20))
    assert rows(history(spark, path, sources=["a"], since=START + HOUR, until=START + 3 * HOUR)) == of("a", (10, 30))
    assert rows(history(spark, path, since=START + 9 * HOUR)) == []
    assert files_read(history(spark, path, positions={"a": (12, 25)})) == {"10", "20"}
    assert files_read(history(spark, path, sources=["a"], until=START + HOUR)) == {"0"}


def test_rows_that_are_sealed_meanwhile_are_read_once(spark: SparkSession, journal: Path) -> None:
    hourly(journal, "a", 10, 20, 30, 40, 50)
    sealed(journal, "a", 2)
    frame = history(spark, str(journal))
    sealed(journal, "a")
    fill(journal, "a", 60, segment_bytes=1)
    assert rows(frame) == of("a", (0, 50))
    assert rows(history(spark, str(journal))) == of("a", (0, 60))


def test_a_store_without_a_file_system_of_spark_is_read_by_us(
    spark: SparkSession, journal: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # The store of the tests lives in this process, so only the plan can be looked at.
    uri = f"memory://history-{next(numbers)}"
    hourly(journal, "a", 10, 20, 30)
    sealed(journal, "a", options=SealOptions(target_bytes=1, store=uri))
    with caplog.at_level(logging.WARNING, "weirpool.spark"):
        frame = history(spark, str(journal))
    assert len(caplog.messages) == 1 and "no file system" in caplog.messages[0]
    assert frame.columns == COLUMNS.names and not files_read(frame)


def test_a_journal_without_sealed_rows_is_its_tail(spark: SparkSession, journal: Path) -> None:
    fill(journal, "a", 10)
    assert rows(history(spark, str(journal))) == of("a", (0, 10))


def test_wrong_arguments_are_refused(spark: SparkSession, journal: Path) -> None:
    fill(journal, "a", 10)
    with pytest.raises(LocalError, match="time zone"):
        history(spark, str(journal), since=datetime(2026, 1, 1))
    for value in (1795810805, 1795810805.5, "2026-01-01T00:00:00Z"):
        with pytest.raises(LocalError, match=r"until is .*; pass a datetime"):
            history(spark, str(journal), until=value)  # type: ignore[arg-type]
    with pytest.raises(LocalError, match="not both"):
        history(spark, str(journal), sources=["a"], positions={"a": (0, 1)})
    with pytest.raises(LocalError, match="no range from 3 to 1"):
        history(spark, str(journal), positions={"a": (3, 1)})
    with pytest.raises(JournalMissing):
        history(spark, str(journal), sources=["other"])


def test_streams_read_sealed_rows(spark: SparkSession, journal: Path, tmp_path: Path) -> None:
    hourly(journal, "a", 10, 20, 30)
    sealed(journal, "a", 1)
    stream = spark.readStream.format("weirpool").option("reader", "r").option("maxRowsPerTrigger", "8")
    query = (
        stream.load(str(journal))
        .writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "out"))
    )
    sealed(journal, "a")
    assert query.awaitTermination(120)
    assert rows(spark.read.parquet(str(tmp_path / "out"))) == of("a", (0, 30))


def test_pandas_and_pyarrow_read_the_folder(journal: Path) -> None:
    import pandas

    hourly(journal, "a", 10, 20, 30)
    sealed(journal, "a")
    files = sorted(journal.glob("source=*/*.parquet"))
    table = pyarrow.dataset.dataset(files, format="parquet", partitioning="hive", partition_base_dir=str(journal))
    found = table.to_table(filter=pyarrow.dataset.field("position") >= 15)
    assert found["position"].to_pylist() == [*range(15, 20)] and set(found["source"].to_pylist()) == {"a"}
    frame = pandas.concat(pandas.read_parquet(path, partitioning=None) for path in files)
    assert frame["position"].tolist() == [*range(20)]
    assert Journal(journal).reader("a").end == 30
