from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from weirpool import DataLost, JournalCorrupt, JournalError, JournalMismatch, JournalMissing, LocalError
from weirpool.journal.layout import log_folder
from weirpool.journal.retention import commits, cursors
from weirpool.spark import troubles
from weirpool.spark.driver import SourceDriver
from weirpool.spark.offsets import Offset

from .journals import EARLIEST, NO_LIMITS, driver, fill, item, log_of, numbers, segments, span


def at(journal: Path, begun: dict[str, int], query: str = "q1", **positions: int) -> Offset:
    """Return an offset that Spark has kept."""
    return Offset(dict(begun), positions, {source: log_of(journal, source) for source in positions}, query)


def first_batch(one: SourceDriver, start: Offset = EARLIEST) -> Offset:
    """Plan the first batch as Spark does, and return its end."""
    end = one.advance(start, NO_LIMITS)
    assert end is not None
    one.plan(start, end)
    return end


def test_the_end_of_the_first_batch_says_where_it_began(tmp_path: Path) -> None:
    fill(tmp_path, "a", 5)
    end = driver(tmp_path).advance(EARLIEST, NO_LIMITS)
    assert numbers(end) == ({"a": 0}, {"a": 5})
    assert end is not None and end.logs == {"a": log_of(tmp_path, "a")}


def test_the_id_of_a_query_is_settled_with_its_first_batch(tmp_path: Path) -> None:
    fill(tmp_path, "a", 5)
    one = driver(tmp_path)
    ends = [one.advance(EARLIEST, NO_LIMITS) for _ in range(2)]
    assert ends[0] is not None and ends[0] == ends[1]
    fill(tmp_path, "a", 9)
    later, other = driver(tmp_path).advance(ends[0], NO_LIMITS), driver(tmp_path).advance(EARLIEST, NO_LIMITS)
    assert later is not None and later.query == ends[0].query
    assert other is not None and other.query != ends[0].query


def test_nothing_new_is_no_batch(tmp_path: Path) -> None:
    one = driver(tmp_path)
    assert one.advance(EARLIEST, NO_LIMITS) is None
    fill(tmp_path, "a", 5)
    end = one.advance(EARLIEST, NO_LIMITS)
    assert end is not None
    assert one.advance(end, NO_LIMITS) is None


def test_sources_that_are_read_no_more_keep_their_place(tmp_path: Path) -> None:
    fill(tmp_path, "a", 5)
    fill(tmp_path, "b", 5)
    both = at(tmp_path, {"a": 0, "b": 1}, a=2, b=3)
    end = driver(tmp_path, source="b").advance(both, NO_LIMITS)
    assert numbers(end) == ({"a": 0, "b": 1}, {"a": 2, "b": 5})


def test_limits_of_rows_and_bytes_hold_together(tmp_path: Path) -> None:
    fill(tmp_path, "a", *range(100, 1001, 100))
    one = driver(tmp_path)
    row_bytes = segments(tmp_path, "a")[0].stat().st_size / 1000
    assert numbers(one.advance(EARLIEST, (300, None))) == ({"a": 0}, {"a": 300})
    end = one.advance(EARLIEST, (300, round(200 * row_bytes)))
    assert end is not None and abs(end.positions["a"] - 200) <= 1
    assert numbers(one.advance(EARLIEST, (None, 1))) == ({"a": 0}, {"a": 1})


def test_a_bounded_run_ends_where_the_journal_ended(tmp_path: Path) -> None:
    fill(tmp_path, "a", 5)
    one = driver(tmp_path)
    one.stop_here()
    fill(tmp_path, "a", 9)
    fill(tmp_path, "b", 9)
    end = one.advance(EARLIEST, NO_LIMITS)
    assert end is not None and numbers(end) == ({"a": 0}, {"a": 5})
    assert one.advance(end, NO_LIMITS) is None


def test_a_bounded_run_never_goes_back(tmp_path: Path) -> None:
    fill(tmp_path, "a", 9)
    one = driver(tmp_path)
    one.stop_here()
    one._targets = {"a": 5}
    assert one.advance(at(tmp_path, {"a": 0}, a=7), NO_LIMITS) is None


@pytest.mark.parametrize("lossy", ["true", "false"])
def test_a_log_that_ends_before_the_query_is_refused(tmp_path: Path, lossy: str) -> None:
    # THREATS 99: it is a copy that is older than the checkpoint.
    fill(tmp_path, "a", 5)
    ahead = at(tmp_path, {"a": 0}, a=6)
    with pytest.raises(DataLost, match="ends at position 5, before 6; restore"):
        driver(tmp_path, failOnDataLoss=lossy).advance(ahead, NO_LIMITS)
    with pytest.raises(DataLost, match="ends at position 5, before 6; restore"):
        driver(tmp_path, failOnDataLoss=lossy).plan(at(tmp_path, {"a": 0}, a=4), ahead)


@pytest.mark.parametrize("rows", [3, 9])
@pytest.mark.parametrize("lossy", ["true", "false"])
def test_a_journal_that_was_created_again_is_refused(tmp_path: Path, rows: int, lossy: str) -> None:
    # THREATS 99: also when it has grown longer than it was.
    fill(tmp_path, "a", 5)
    before, end = at(tmp_path, {"a": 0}, a=3), at(tmp_path, {"a": 0}, a=5)
    running = driver(tmp_path, failOnDataLoss=lossy)
    running.advance(before, NO_LIMITS)
    shutil.rmtree(log_folder(tmp_path, "a"))
    fill(tmp_path, "a", rows)
    for one in (running, driver(tmp_path, failOnDataLoss=lossy)):
        with pytest.raises(
            JournalMismatch, match=r"source 'a' .* the log was created again, or this is another journal"
        ):
            one.advance(end, NO_LIMITS)
        with pytest.raises(JournalMismatch):
            one.plan(before, end)
    assert not (log_folder(tmp_path, "a") / "_gaps").exists()


def test_the_checkpoint_of_another_journal_is_refused(tmp_path: Path) -> None:
    # THREATS 99
    fill(tmp_path / "one", "a", 5)
    fill(tmp_path / "two", "a", 5)
    with pytest.raises(JournalMismatch, match="read this one with a new checkpoint"):
        driver(tmp_path / "two").advance(at(tmp_path / "one", {"a": 0}, a=5), NO_LIMITS)


def test_a_source_of_the_checkpoint_that_is_not_there_is_missed(tmp_path: Path) -> None:
    # THREATS 99: after a restart, too.
    for source in "ab":
        fill(tmp_path, source, 5)
    before = at(tmp_path, {"a": 0, "b": 0}, a=5, b=5)
    shutil.rmtree(log_folder(tmp_path, "b"))
    with pytest.raises(JournalMissing, match="source 'b'"):
        driver(tmp_path, journalTimeout="0").advance(before, NO_LIMITS)


def test_startingoffsets_name_sources_that_are_there(tmp_path: Path) -> None:
    typo = Offset({"cuont": 3})
    waiting = driver(tmp_path)
    assert waiting.advance(typo, NO_LIMITS) is None
    fill(tmp_path, "count", 5)
    with pytest.raises(LocalError, match=r".startingOffsets. names source 'cuont', .*; its sources are count"):
        waiting.advance(typo, NO_LIMITS)


def test_trouble_that_may_pass_is_nothing_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(troubles, "RETRY", 0.0)
    fill(tmp_path, "a", 5)
    one = driver(tmp_path)
    refresh, failures = one.view.refresh, [True] * 3

    def fail() -> None:
        if failures and failures.pop():
            raise JournalError("the disk does not answer")
        refresh()

    monkeypatch.setattr(one.view, "refresh", fail)
    assert one.advance(EARLIEST, NO_LIMITS) is None
    # Spark does not ask again for the partitions of a batch.
    assert one.plan(EARLIEST, at(tmp_path, {"a": 0}, a=5)) == [span(tmp_path, "a", 0, 5)]
    assert failures == []


def test_a_planned_batch_waits_for_its_journal_and_not_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path / "journal", "a", 5)
    start, end = at(tmp_path / "journal", {"a": 0}, a=0), at(tmp_path / "journal", {"a": 0}, a=5)
    (tmp_path / "journal").rename(tmp_path / "away")
    with pytest.raises(JournalMissing):
        driver(tmp_path / "journal", journalTimeout="0").plan(start, end)
    one, mounted = driver(tmp_path / "journal"), []

    def mount(seconds: float) -> None:
        mounted.append((tmp_path / "away").rename(tmp_path / "journal"))

    monkeypatch.setattr(troubles.time, "sleep", mount)
    assert one.plan(start, end) == [span(tmp_path / "journal", "a", 0, 5)]
    assert len(mounted) == 1


def test_trouble_does_not_pass_for_the_end_of_a_bounded_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, "a", 5)
    one = driver(tmp_path)
    one.stop_here()

    def fail() -> None:
        raise JournalError("the disk does not answer")

    monkeypatch.setattr(one.view, "refresh", fail)
    with pytest.raises(JournalError):
        one.advance(EARLIEST, NO_LIMITS)


def test_a_bounded_run_does_not_wait_for_a_journal(tmp_path: Path) -> None:
    with pytest.raises(JournalMissing):
        driver(tmp_path / "typo").stop_here()


def test_a_log_whose_end_nobody_knows_ends_the_query(tmp_path: Path) -> None:
    fill(tmp_path, "a", 5, 10)
    (log_folder(tmp_path, "a") / "_durable").write_bytes(b"junk")
    for lossy in ("true", "false"):
        with pytest.raises(JournalCorrupt):
            driver(tmp_path, failOnDataLoss=lossy).advance(EARLIEST, NO_LIMITS)


def test_damage_at_the_end_of_a_log_is_passed_over_if_that_is_wanted(tmp_path: Path) -> None:
    fill(tmp_path, "a", 5, 10, segment_bytes=1)
    last = segments(tmp_path, "a")[-1]
    last.write_bytes(bytes(last.stat().st_size))
    one = driver(tmp_path, failOnDataLoss="false")
    end = one.advance(EARLIEST, NO_LIMITS)
    assert end is not None and end.positions == {"a": 10}
    assert one.plan(EARLIEST, end) == [span(tmp_path, "a", 0, 5)]
    assert one.advance(end, NO_LIMITS) is None


def test_a_log_in_which_no_loss_can_be_recorded_stands_still(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for source in "ab":
        fill(tmp_path, source, 5)
    record = log_folder(tmp_path, "b") / "_gaps"
    record.write_bytes(b"junk")
    one = driver(tmp_path, failOnDataLoss="false")
    end = one.advance(EARLIEST, NO_LIMITS)
    assert numbers(end) == ({"a": 0, "b": 0}, {"a": 5, "b": 0})
    assert end is not None and one.plan(EARLIEST, end) == [span(tmp_path, "a", 0, 5)]
    assert one.advance(end, NO_LIMITS) is None
    assert caplog.text.count("the query continues without source 'b': ") == 1
    with pytest.raises(JournalCorrupt, match="_gaps"):
        driver(tmp_path, source="b", failOnDataLoss="false").advance(EARLIEST, NO_LIMITS)
    record.unlink()
    assert numbers(one.advance(end, NO_LIMITS)) == ({"a": 0, "b": 0}, {"a": 5, "b": 5})


def test_a_bad_log_among_others_stands_still(tmp_path: Path) -> None:
    for source in "abc":
        fill(tmp_path, source, 5)
    before = at(tmp_path, {"a": 0, "b": 0, "c": 0}, a=2, b=2, c=2)
    (log_folder(tmp_path, "b") / "_durable").write_bytes(b"junk")
    with pytest.raises(JournalCorrupt, match="source=b"):
        driver(tmp_path).advance(before, NO_LIMITS)
    end = driver(tmp_path, failOnDataLoss="false").advance(before, NO_LIMITS)
    assert end is not None and end.positions == {"a": 5, "b": 2, "c": 5}
    assert end.logs == before.logs


def test_what_the_query_has_committed_is_trimmed(tmp_path: Path) -> None:
    fill(tmp_path, "a", 10, 20, 30, segment_bytes=1)
    one = driver(tmp_path, reader="r", retainBytes="0")
    end = first_batch(one)
    assert commits(log_folder(tmp_path, "a")) == {"r": 0}
    assert cursors(log_folder(tmp_path, "a"))["r"].query == end.query
    one.commit(at(tmp_path, {"a": 0}, a=20))
    assert len(segments(tmp_path, "a")) == 1


def test_a_margin_stays(tmp_path: Path) -> None:
    fill(tmp_path, "a", 10, 20, 30, segment_bytes=1)
    one = driver(tmp_path, reader="r")
    one.commit(first_batch(one))
    assert len(segments(tmp_path, "a")) == 3


@pytest.mark.parametrize("more", [{}, {"retainBytes": "0"}, {"reader": "r", "trim": "false"}])
def test_a_query_without_a_name_leaves_no_trace(tmp_path: Path, more: dict[str, str]) -> None:
    fill(tmp_path, "a", 10, 20, segment_bytes=1)
    before = sorted(tmp_path.rglob("*"))
    one = driver(tmp_path, **more)
    one.commit(first_batch(one))
    one.advance(at(tmp_path, {"a": 0}, a=20), NO_LIMITS)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_query_that_nobody_makes_room_for_is_told_so_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    fill(tmp_path, "a", 10)
    one = driver(tmp_path)
    first_batch(one)
    first_batch(one)
    assert caplog.text.count('name this query with the option "reader"') == 1
    named = driver(tmp_path, reader="r")
    first_batch(named)
    caplog.clear()
    first_batch(driver(tmp_path))
    first_batch(driver(tmp_path, trim="false"))
    assert caplog.text == ""


def test_a_second_query_of_the_same_name_is_kept_out(tmp_path: Path) -> None:
    # THREATS 99
    fill(tmp_path, "a", 10, 20, segment_bytes=1)
    first = driver(tmp_path, reader="r", retainBytes="0")
    end = first_batch(first)
    first.stop()
    second = driver(tmp_path, reader="r", retainBytes="0")
    with pytest.raises(JournalMismatch, match="choose another name with the option reader"):
        second.advance(EARLIEST, NO_LIMITS)
    # It has no say in what goes, either.
    second.commit(end)
    assert len(segments(tmp_path, "a")) == 2
    again = driver(tmp_path, reader="r", retainBytes="0")
    assert again.advance(end, NO_LIMITS) is None
    again.commit(end)


def test_a_first_batch_that_a_crash_has_cut_off_goes_on(tmp_path: Path) -> None:
    # Spark asks for the partitions of the offsets that it has kept, and for no end before.
    fill(tmp_path, "a", 10)
    killed = driver(tmp_path, reader="r")
    end = killed.advance(EARLIEST, NO_LIMITS)
    assert end is not None
    killed.stop()
    again = driver(tmp_path, reader="r")
    assert again.plan(EARLIEST, end) == [span(tmp_path, "a", 0, 10)]
    again.commit(end)
    assert commits(log_folder(tmp_path, "a")) == {"r": 10}


class Collecting:
    """Stands in for the collector inside the query."""

    runs = 0

    def run(self) -> None:
        self.runs += 1


def test_a_query_that_collects_never_does_so_beside_its_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # THREATS 99: the disk of its checkpoint's journal is not mounted, or another one is in its place.
    more = {"url": "rsocket+tcp://127.0.0.1:1", "route": "a"}
    journal = tmp_path / "journal"
    fill(journal, "a", 5)
    start, end = at(journal, {"a": 0}, a=2), at(journal, {"a": 0}, a=5)
    journal.rename(tmp_path / "away")
    one = driver(journal, **more)
    one._collector = collector = Collecting()  # type: ignore[assignment]
    assert one.advance(end, NO_LIMITS) is None
    (tmp_path / "away").rename(journal)
    assert collector.runs == 0
    assert one.advance(end, NO_LIMITS) is None
    assert collector.runs == 1
    journal.rename(tmp_path / "away")
    for lacking in ("none", "another"):
        if lacking == "another":
            fill(journal, "a", 9)
        again = driver(journal, journalTimeout="0", **more)
        again._collector = collector = Collecting()  # type: ignore[assignment]
        with pytest.raises((JournalMissing, JournalMismatch)):
            again.advance(end, NO_LIMITS)
        with pytest.raises((JournalMissing, JournalMismatch)):
            again.plan(start, end)
        assert collector.runs == 0


def test_a_query_that_collects_does_so_from_the_first_look(tmp_path: Path) -> None:
    one = driver(tmp_path / "journal", url="rsocket+tcp://127.0.0.1:1", route="a")
    one._collector = collector = Collecting()  # type: ignore[assignment]
    assert one.advance(EARLIEST, NO_LIMITS) is None
    assert collector.runs == 1


def test_a_query_that_collects_has_no_end(tmp_path: Path) -> None:
    one = driver(tmp_path, url="rsocket+tcp://127.0.0.1:1", route="flights")
    with pytest.raises(LocalError, match="run `weirpool collect` first"):
        one.stop_here()


def test_a_trim_that_fails_is_tried_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    fill(tmp_path, "a", 10)
    one = driver(tmp_path, reader="r")
    end = first_batch(one)
    committed = log_folder(tmp_path, "a") / "_committed"
    shutil.rmtree(committed)
    committed.write_text("in the way")
    one.commit(end)
    one.commit(end)
    assert caplog.text.count("the journal is trimmed later") == 1
    committed.unlink()
    one.commit(end)
    assert commits(log_folder(tmp_path, "a")) == {"r": 10}


def test_an_offset_stays_as_spark_has_it(tmp_path: Path) -> None:
    # Spark compares texts: a batch of nothing would be planned over and over.
    for source in "ba":
        fill(tmp_path, source, 5)
    end = first_batch(driver(tmp_path))
    text = json.dumps(end.json())
    assert json.dumps(Offset.parse(json.loads(text)).json()) == text
    assert driver(tmp_path).advance(Offset.parse(json.loads(text)), NO_LIMITS) is None
    assert item(0) == b"item 0"
