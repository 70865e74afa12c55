from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from unittest import mock

import pytest

from tests.journal.logs import SOURCE, append, flip, segment
from weirpool.feeds.board import Board
from weirpool.feeds.status import FeedState, FeedStatus
from weirpool.journal import JournalReader, JournalWriter
from weirpool.journal.lag import lags
from weirpool.journal.layout import log_folder
from weirpool.journal.retention import commit, cursors, trim
from weirpool.spark import lag as spark_lag

START = 1_700_000_000


def write_slowly(path: Path, *counts: int) -> Path:
    """Write a log with a batch and a segment each second, from a second after the start."""
    times = iter(range(START, START + 100))
    with JournalWriter.open(path, SOURCE, segment_bytes=1, fsync=False, clock=lambda: float(next(times))) as writer:
        append(writer, *counts)
    return log_folder(path, SOURCE)


def now() -> datetime:
    return datetime.fromtimestamp(START + 10, UTC)


def test_lag_is_rows_bytes_and_seconds(tmp_path: Path) -> None:
    folder = write_slowly(tmp_path, 3, 2, 4)
    commit(folder, "behind", 3)
    commit(folder, "done", 9)
    commit(folder, "parts@one", 5)
    commit(folder, "parts@two", 4, query="q")
    log = JournalReader(tmp_path, SOURCE)
    behind, done, parts = lags(cursors(folder), log, now)
    assert (behind.reader, behind.position, behind.rows, behind.seconds) == ("behind", 3, 6, 8.0)
    assert behind.size == log.bytes_between(3, 9)
    assert (done.rows, done.size, done.seconds) == (0, 0, 0.0)
    assert (parts.reader, parts.query, parts.position, parts.rows) == ("parts", "q", 4, 5)
    assert behind.committed is not None and behind.committed.tzinfo is not None


def test_rows_that_are_gone_do_not_count(tmp_path: Path) -> None:
    folder = write_slowly(tmp_path, 3, 2, 4)
    trim(folder, 5, reader="ahead", retain_bytes=0)
    commit(folder, "late", 0)
    late = lags(cursors(folder), JournalReader(tmp_path, SOURCE), now)[1]
    assert (late.position, late.rows, late.seconds) == (0, 4, 7.0)


def test_a_reader_may_be_ahead_of_the_view(tmp_path: Path) -> None:
    folder = write_slowly(tmp_path, 3)
    log = JournalReader(tmp_path, SOURCE)
    write_slowly(tmp_path, 2)
    commit(folder, "spark", 5)
    (spark,) = lags(cursors(folder), log, now)
    assert (spark.position, spark.rows, spark.seconds) == (5, 0, 0.0)


def test_the_age_of_a_damaged_row_is_unknown(tmp_path: Path) -> None:
    folder = write_slowly(tmp_path, 3, 2)
    commit(folder, "spark", 1)
    first = segment(folder, 0)
    flip(first, first.stat().st_size - 1)
    (spark,) = lags(cursors(folder), JournalReader(tmp_path, SOURCE), now)
    assert (spark.rows, spark.seconds) == (4, None)


@pytest.mark.parametrize("damaged", [False, True])
def test_the_three_places_that_show_a_lag_agree(tmp_path: Path, damaged: bool) -> None:
    # Lists, the progress of Spark's queries, and the status of feeds.
    folder = write_slowly(tmp_path, 3, 2, 4)
    if damaged:
        flip(segment(folder, 3), segment(folder, 3).stat().st_size - 1)
    for position in range(10):
        commit(folder, "reader", position, rewind=True)
        log = JournalReader(tmp_path, SOURCE)
        (listed,) = lags(cursors(folder), log, now)
        board = Board(clock=lambda: now().timestamp())
        fields = {"name": "a", "url": "u", "route": "r", "source": SOURCE, "state": FeedState.LIVE}
        board.publish([FeedStatus(**fields, journal=str(tmp_path), position=log.end)])  # type: ignore[arg-type]
        shown = board.document().feeds[0].readers["reader"]
        with mock.patch.object(spark_lag, "datetime", mock.Mock(now=lambda zone: now())):
            report = spark_lag.report({SOURCE: log}, {SOURCE: position})["lag"]
        assert (shown.rows, shown.seconds) == (listed.rows, listed.seconds)
        assert (report["rows"], report["seconds"]) == (listed.rows, listed.seconds)
        assert (listed.seconds is None) is (damaged and position in (3, 4))
