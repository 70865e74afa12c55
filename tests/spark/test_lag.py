from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from weirpool.journal.reader import JournalReader
from weirpool.journal.writer import JournalWriter
from weirpool.spark import lag
from weirpool.spark.lag import report

from .journals import damage, fill, item, items, segments, stream_reader


def collect(journal: Path, source: str, *minutes: int) -> JournalReader:
    """Append ten rows so many minutes ago, each time."""
    now = start = datetime.now(UTC)
    with JournalWriter.open(journal, source, fsync=False, clock=lambda: now.timestamp()) as writer:
        for ago in minutes:
            now = start - timedelta(minutes=ago)
            writer.append(items(writer.position, writer.position + 10), "flights")
    return JournalReader(journal, source)


def test_the_lag_is_rows_and_the_age_of_the_oldest(tmp_path: Path) -> None:
    readers = {source: collect(tmp_path, source, 60, 30, 10) for source in "ab"}
    found = report(readers, {"a": 10, "b": 25})
    assert found["sources"] == {"a": 30, "b": 30}
    assert found["lag"]["rows"] == 25
    assert found["lag"]["seconds"] == found["lag"]["sources"]["a"]["seconds"] == pytest.approx(1800, abs=60)
    assert found["lag"]["sources"]["b"] == {"rows": 5, "seconds": pytest.approx(600, abs=60)}


def test_what_is_read_has_no_lag(tmp_path: Path) -> None:
    assert report({"a": collect(tmp_path, "a", 60)}, {"a": 10})["lag"] == {"rows": 0, "seconds": 0.0, "sources": {}}
    assert report({}, {}) == {"sources": {}, "lag": {"rows": 0, "seconds": 0.0, "sources": {}}}


def test_a_log_that_is_not_begun_lags_as_a_whole(tmp_path: Path) -> None:
    assert report({"a": collect(tmp_path, "a", 60)}, {})["lag"]["rows"] == 10


def test_the_report_stays_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lag, "MAX_SOURCES", 2)
    readers = {source: collect(tmp_path, source, *[1] * many) for source, many in {"a": 1, "b": 3, "c": 2}.items()}
    found = report(readers, {})
    assert found["lag"]["rows"] == 60 and [*found["lag"]["sources"]] == ["b", "c"]


def test_a_row_that_cannot_be_read_has_no_age(tmp_path: Path) -> None:
    fill(tmp_path, "a", 10)
    damage(segments(tmp_path, "a")[0], item(3))
    found = report({"a": JournalReader(tmp_path, "a")}, {})
    assert found["lag"] == {"rows": 10, "seconds": None, "sources": {"a": {"rows": 10, "seconds": None}}}


def test_a_query_reports_its_lag(tmp_path: Path) -> None:
    fill(tmp_path, "a", 10)
    reader = stream_reader(tmp_path, maxRowsPerTrigger="4")
    assert reader.reportLatestOffset() is None
    start = reader.initialOffset()
    reader.latestOffset(start, reader.getDefaultReadLimit())
    found = reader.reportLatestOffset()
    assert found is not None and found["sources"] == {"a": 10} and found["lag"]["rows"] == 6


def test_spark_shows_the_lag_in_the_progress(spark: SparkSession, tmp_path: Path) -> None:
    fill(tmp_path / "j", "a", 10)
    rows = spark.readStream.format("weirpool").option("maxRowsPerTrigger", "4").load(str(tmp_path / "j"))
    query = rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "c")).start()
    query.processAllAvailable()
    query.stop()
    lags = [json.loads(one["sources"][0]["latestOffset"])["lag"]["rows"] for one in query.recentProgress]
    assert [rows for rows in lags if rows] == [6, 2]
