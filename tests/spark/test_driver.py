from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from penstock import DataLost, JournalCorrupt, JournalError, JournalLocked, LocalError
from penstock.journal.layout import log_folder
from penstock.journal.retention import commits
from penstock.journal.writer import JournalWriter
from penstock.spark import cursor
from penstock.spark.driver import SourceDriver
from penstock.spark.offsets import Offset

from .journals import fill, items, options, segments

EARLIEST = Offset("earliest", {})
LATEST = Offset("latest", {})
NO_LIMITS = (None, None)


def test_the_end_of_the_first_batch_says_where_it_began(tmp_path: Path) -> None:
    fill(tmp_path, "a", 5)
    assert SourceDriver(options(tmp_path)).advance(EARLIEST, NO_LIMITS) == Offset({"a": 0}, {"a": 5})


def test_nothing_new_is_no_batch(tmp_path: Path) -> None:
    driver = SourceDriver(options(tmp_path))
    assert driver.advance(EARLIEST, NO_LIMITS) is None
    fill(tmp_path, "a", 5)
    end = driver.advance(EARLIEST, NO_LIMITS)
    assert end is not None
    assert driver.advance(end, NO_LIMITS) is None


@pytest.mark.parametrize("begun", ["latest", {"a": "latest"}])
def test_latest_is_settled_at_once_even_if_there_is_nothing_to_read(tmp_path: Path, begun: str) -> None:
    fill(tmp_path, "a", 5)
    driver = SourceDriver(options(tmp_path))
    settled = driver.advance(Offset(begun, {}), NO_LIMITS)
    assert settled == Offset({"a": 5}, {"a": 5})
    assert driver.advance(settled, NO_LIMITS) is None
    fill(tmp_path, "a", 8)
    assert SourceDriver(options(tmp_path)).advance(settled, NO_LIMITS) == Offset({"a": 5}, {"a": 8})


def test_latest_of_an_empty_journal_is_its_beginning(tmp_path: Path) -> None:
    settled = SourceDriver(options(tmp_path)).advance(LATEST, NO_LIMITS)
    assert settled == Offset({}, {})
    fill(tmp_path, "a", 5)
    assert SourceDriver(options(tmp_path)).advance(settled, NO_LIMITS) == Offset({"a": 0}, {"a": 5})


def test_sources_that_come_later_are_read_from_their_beginning(tmp_path: Path) -> None:
    fill(tmp_path, "a", 5)
    driver = SourceDriver(options(tmp_path))
    first = driver.advance(LATEST, NO_LIMITS)
    assert first is not None
    fill(tmp_path, "b", 3)
    second = driver.advance(first, NO_LIMITS)
    assert second == Offset({"a": 5, "b": 0}, {"a": 5, "b": 3})
    assert first.ranges(second) == {"b": (0, 3)}


def test_sources_that_are_read_no_more_keep_their_place(tmp_path: Path) -> None:
    fill(tmp_path, "a", 5)
    fill(tmp_path, "b", 5)
    both = Offset({"a": 0, "b": 1}, {"a": 2, "b": 3})
    end = SourceDriver(options(tmp_path, source="b")).advance(both, NO_LIMITS)
    assert end == Offset({"a": 0, "b": 1}, {"a": 2, "b": 5})


def test_limits_of_rows_and_bytes_hold_together(tmp_path: Path) -> None:
    fill(tmp_path, "a", *range(100, 1001, 100))
    driver = SourceDriver(options(tmp_path))
    row_bytes = segments(tmp_path, "a")[0].stat().st_size / 1000
    assert driver.advance(EARLIEST, (300, None)) == Offset({"a": 0}, {"a": 300})
    end = driver.advance(EARLIEST, (300, round(200 * row_bytes)))
    assert end is not None and abs(end.positions["a"] - 200) <= 1
    assert driver.advance(EARLIEST, (None, 1)) == Offset({"a": 0}, {"a": 1})


def test_a_bounded_run_ends_where_the_journal_ended(tmp_path: Path) -> None:
    fill(tmp_path, "a", 5)
    driver = SourceDriver(options(tmp_path))
    driver.stop_here()
    fill(tmp_path, "a", 9)
    fill(tmp_path, "b", 9)
    end = driver.advance(EARLIEST, NO_LIMITS)
    assert end == Offset({"a": 0}, {"a": 5})
    assert driver.advance(end, NO_LIMITS) is None


def test_a_bounded_run_never_goes_back(tmp_path: Path) -> None:
    fill(tmp_path, "a", 9)
    driver = SourceDriver(options(tmp_path))
    driver.stop_here()
    driver._targets = {"a": 5}
    assert driver.advance(Offset({"a": 0}, {"a": 7}), NO_LIMITS) is None


def test_a_log_that_ends_before_the_query_is_another_log(tmp_path: Path) -> None:
    fill(tmp_path, "a", 5)
    ahead = Offset({"a": 0}, {"a": 6})
    with pytest.raises(DataLost, match="ends at position 5, before 6; restore"):
        SourceDriver(options(tmp_path)).advance(ahead, NO_LIMITS)
    assert SourceDriver(options(tmp_path, failOnDataLoss="false")).advance(ahead, NO_LIMITS) is None


def test_trouble_that_may_pass_is_nothing_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fill(tmp_path, "a", 5)
    driver = SourceDriver(options(tmp_path))

    def fail() -> None:
        raise JournalError("the disk does not answer")

    monkeypatch.setattr(driver.view, "refresh", fail)
    assert driver.advance(EARLIEST, NO_LIMITS) is None
    assert driver.advance(EARLIEST, NO_LIMITS) is None
    assert caplog.text.count("the disk does not answer; the query waits") == 1
    driver.report_gaps({"a": (0, 5)})
    monkeypatch.undo()
    assert driver.advance(EARLIEST, NO_LIMITS) is not None


def test_trouble_does_not_pass_for_the_end_of_a_bounded_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, "a", 5)
    driver = SourceDriver(options(tmp_path))
    driver.stop_here()

    def fail() -> None:
        raise JournalError("the disk does not answer")

    monkeypatch.setattr(driver.view, "refresh", fail)
    with pytest.raises(JournalError):
        driver.advance(EARLIEST, NO_LIMITS)


def test_a_log_whose_end_is_damaged_ends_the_query_unless_that_is_wanted(tmp_path: Path) -> None:
    fill(tmp_path, "a", 5, 10)
    last = segments(tmp_path, "a")[0]
    last.write_bytes(bytes(last.stat().st_size))
    with pytest.raises(JournalCorrupt):
        SourceDriver(options(tmp_path)).advance(EARLIEST, NO_LIMITS)
    assert SourceDriver(options(tmp_path, failOnDataLoss="false")).advance(EARLIEST, NO_LIMITS) is None


def test_what_the_query_has_committed_is_trimmed(tmp_path: Path) -> None:
    fill(tmp_path, "a", 10, 20, 30, segment_bytes=1)
    driver = SourceDriver(options(tmp_path, retainBytes="0"))
    driver.begin(EARLIEST)
    assert commits(log_folder(tmp_path, "a")) == {"spark": 0}
    driver.commit(Offset({"a": 0}, {"a": 20}))
    assert len(segments(tmp_path, "a")) == 1


def test_a_margin_stays(tmp_path: Path) -> None:
    fill(tmp_path, "a", 10, 20, 30, segment_bytes=1)
    driver = SourceDriver(options(tmp_path))
    driver.begin(EARLIEST)
    driver.commit(Offset({"a": 0}, {"a": 30}))
    assert len(segments(tmp_path, "a")) == 3


def test_a_query_that_does_not_trim_leaves_no_trace(tmp_path: Path) -> None:
    fill(tmp_path, "a", 10)
    before = sorted(tmp_path.rglob("*"))
    driver = SourceDriver(options(tmp_path, trim="false"))
    driver.begin(EARLIEST)
    driver.commit(Offset({"a": 0}, {"a": 10}))
    assert sorted(tmp_path.rglob("*")) == before


def test_a_second_query_of_the_same_name_is_kept_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cursor, "PATIENCE", 0.0)
    fill(tmp_path, "a", 10)
    first, second = SourceDriver(options(tmp_path)), SourceDriver(options(tmp_path))
    first.begin(EARLIEST)
    first.begin(EARLIEST)
    with pytest.raises(JournalLocked):
        second.begin(EARLIEST)
    # It has no say in what goes, either.
    second.commit(Offset({"a": 0}, {"a": 10}))
    assert commits(log_folder(tmp_path, "a")) == {"spark": 0}
    first.stop()
    second.begin(EARLIEST)


def test_a_query_that_collects_has_no_end(tmp_path: Path) -> None:
    driver = SourceDriver(options(tmp_path, url="rsocket+tcp://127.0.0.1:1", route="flights"))
    with pytest.raises(LocalError, match="run `penstock collect` first"):
        driver.stop_here()


def test_a_trim_that_fails_is_tried_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    fill(tmp_path, "a", 10)
    driver = SourceDriver(options(tmp_path))
    driver.begin(EARLIEST)
    committed = log_folder(tmp_path, "a") / "_committed"
    shutil.rmtree(committed)
    committed.write_text("in the way")
    driver.commit(Offset({"a": 0}, {"a": 10}))
    assert "the journal is trimmed later" in caplog.text
    committed.unlink()
    driver.commit(Offset({"a": 0}, {"a": 10}))
    assert commits(log_folder(tmp_path, "a")) == {"spark": 10}


def test_gaps_are_reported_with_the_rows_behind_them(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with JournalWriter.open(tmp_path, "a", fsync=False) as writer:
        writer.append(items(0, 5), "flights")
        writer.append_gap("the publisher had forgotten the session")
        writer.append(items(5, 9), "flights")
    driver = SourceDriver(options(tmp_path))
    driver.report_gaps({"a": (0, 5), "unknown": (0, 1)})
    assert caplog.text == ""
    driver.report_gaps({"a": (5, 9)})
    assert "source 'a': items were lost before position 5: the publisher had forgotten the session" in caplog.text
