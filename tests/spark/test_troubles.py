from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from weirpool import (
    DataLost,
    DiskFull,
    JournalCorrupt,
    JournalError,
    JournalLocked,
    JournalMismatch,
    JournalMissing,
    StoreError,
)
from weirpool.journal.layout import log_folder
from weirpool.journal.ports import Refused
from weirpool.journal.reader import JournalReader
from weirpool.spark import troubles as troubles_module
from weirpool.spark.troubles import Troubles
from weirpool.spark.view import JournalView

from .journals import fill, options, quiet_collector


class Clock:
    """A clock that is moved by hand."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def troubles(journal: Path, clock: Clock, **more: str) -> tuple[Troubles, JournalView]:
    parsed = options(journal, **more)
    view = JournalView(parsed)
    return Troubles(parsed, view, clock), view


def spoil(journal: Path, source: str) -> None:
    (log_folder(journal, source) / "_log.json").write_bytes(b"junk")


@pytest.mark.parametrize("there", [True, False])
def test_a_journal_that_is_not_there_is_waited_for_and_then_an_error(
    tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture, there: bool
) -> None:
    # THREATS 99: a path with a typo, or a disk that is not mounted.
    journal = tmp_path / "journal"
    if there:
        journal.mkdir()
    watch, view = troubles(journal, clock, journalTimeout="5")
    assert watch.refresh() and watch.refresh()
    assert caplog.text.count("the query waits 5 s for it (option journalTimeout)") == 1
    clock.now += 4.9
    assert watch.refresh()
    clock.now += 0.1
    with pytest.raises(JournalMissing, match="check the path"):
        watch.refresh()
    fill(journal, "a", 5)
    assert watch.refresh()
    assert view.ends() == {"a": 5}


def test_a_journal_that_comes_in_time_is_read(tmp_path: Path, clock: Clock) -> None:
    watch, view = troubles(tmp_path / "journal", clock, journalTimeout="5")
    watch.refresh()
    fill(tmp_path / "journal", "a", 5)
    clock.now += 60
    assert watch.refresh()
    assert view.ends() == {"a": 5}


def test_a_named_source_that_is_not_there_is_waited_for_while_others_are_read(
    tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    fill(tmp_path, "a", 5)
    watch, view = troubles(tmp_path, clock, source="a,b", journalTimeout="5")
    assert watch.refresh()
    assert view.ends() == {"a": 5}
    assert "has no source 'b' in it; its sources are a" in caplog.text
    clock.now += 5
    with pytest.raises(JournalMissing, match="has no source 'b'"):
        watch.refresh()


def test_the_collector_inside_the_query_makes_its_log(
    tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    watch, _ = troubles(tmp_path / "journal", clock, url="rsocket+tcp://127.0.0.1:1", route="a", journalTimeout="0")
    assert watch.refresh() and watch.refresh()
    assert caplog.text == ""


@pytest.mark.parametrize("gone", ["log", "journal"])
@pytest.mark.parametrize("more", [{}, {"source": "a"}, {"failOnDataLoss": "false"}])
def test_what_goes_while_the_query_runs_ends_it(tmp_path: Path, clock: Clock, gone: str, more: dict[str, str]) -> None:
    # THREATS 99
    journal = tmp_path / "journal"
    fill(journal, "a", 5)
    watch, _ = troubles(journal, clock, **more)
    watch.refresh()
    shutil.rmtree(log_folder(journal, "a") if gone == "log" else journal)
    with pytest.raises(JournalMissing):
        watch.refresh()


def test_a_bad_log_ends_the_query_with_the_exact_error(tmp_path: Path, clock: Clock) -> None:
    fill(tmp_path, "a", 5)
    fill(tmp_path, "b", 5)
    spoil(tmp_path, "b")
    watch, _ = troubles(tmp_path, clock)
    with pytest.raises(JournalCorrupt, match=r"source=b/_log.json: is not"):
        watch.refresh()


def test_a_bad_log_hurts_only_itself_if_that_is_wanted(
    tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    fill(tmp_path, "a", 5)
    fill(tmp_path, "b", 5)
    good = (log_folder(tmp_path, "b") / "_log.json").read_bytes()
    spoil(tmp_path, "b")
    watch, view = troubles(tmp_path, clock, failOnDataLoss="false")
    assert watch.refresh() and watch.refresh()
    assert view.ends() == {"a": 5}
    assert caplog.text.count("the query continues without source 'b': ") == 1
    assert "_log.json: is not" in caplog.text
    (log_folder(tmp_path, "b") / "_log.json").write_bytes(good)
    assert watch.refresh()
    assert view.ends() == {"a": 5, "b": 5}


@pytest.mark.parametrize("more", [{}, {"source": "a,b"}])
@pytest.mark.parametrize("lossy", ["true", "false"])
def test_a_log_that_goes_is_never_gone_on_without(
    tmp_path: Path, clock: Clock, lossy: str, more: dict[str, str]
) -> None:
    # THREATS 99: its disk is not mounted any more, although the others are.
    for source in "ab":
        fill(tmp_path, source, 5)
    watch, view = troubles(tmp_path, clock, failOnDataLoss=lossy, **more)
    watch.refresh()
    log_folder(tmp_path, "b").rename(tmp_path / "away")
    with pytest.raises(JournalMissing, match=r"no source .b. .* name the remaining ones with the option source"):
        watch.refresh()
    assert troubles(tmp_path, clock, source="a")[0].refresh(bounded=True)
    expecting, view = troubles(tmp_path, clock, failOnDataLoss=lossy, journalTimeout="5")
    view.expected = ["a", "b"]
    assert expecting.refresh() and view.ends() == {"a": 5}
    clock.now += 5
    with pytest.raises(JournalMissing, match="source 'b'"):
        expecting.refresh()


@pytest.mark.parametrize("trouble", ["missing", "empty", "unreadable"])
def test_a_bounded_read_never_goes_on_without_what_it_cannot_see(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    # THREATS 99
    fill(tmp_path, "a", 5)
    more = {"source": "a,b"} if trouble == "missing" else {}
    if trouble == "empty":
        log_folder(tmp_path, "b").mkdir()
    watch, view = troubles(tmp_path, clock, failOnDataLoss="false", **more)
    if trouble == "unreadable":
        fill(tmp_path, "b", 5)
        readers = view._journal.reader

        def reader(source: str) -> JournalReader:
            if source == "b":
                raise JournalError("b cannot be read (permission denied)")
            return readers(source)

        monkeypatch.setattr(view._journal, "reader", reader)
    with pytest.raises(JournalError, match="b"):
        watch.refresh(bounded=True)


@pytest.mark.parametrize("bounded", [True, False])
def test_a_collector_that_has_no_row_yet_hurts_no_query(
    tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture, bounded: bool
) -> None:
    fill(tmp_path, "a", 5)
    watch, view = troubles(tmp_path, clock, journalTimeout="5")
    with quiet_collector(tmp_path, "b"):
        for _ in range(3):
            assert watch.refresh(bounded=bounded)
            clock.now += 10
        assert (view.ends(), view.troubles, view.awaited) == ({"a": 5}, {}, {"b"})
        assert caplog.text == ""
    fill(tmp_path, "b", 3)
    assert watch.refresh(bounded=bounded)
    assert (view.ends(), view.awaited) == ({"a": 5, "b": 3}, set())


@pytest.mark.parametrize("more", [{}, {"source": "b"}])
def test_a_first_row_is_waited_for_as_long_as_it_takes(
    tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture, more: dict[str, str]
) -> None:
    watch, view = troubles(tmp_path, clock, journalTimeout="5", **more)
    with quiet_collector(tmp_path, "b"):
        for _ in range(3):
            assert watch.refresh()
            clock.now += 10
        assert caplog.text.count("has no rows of b yet: the collector has received none; the query waits") == 1
        with pytest.raises(JournalMissing, match="no rows of b yet"):
            watch.refresh(bounded=True)
    fill(tmp_path, "b", 3)
    assert watch.refresh() and view.ends() == {"b": 3}


def test_a_log_of_which_only_the_lock_is_left_is_missed(tmp_path: Path, clock: Clock) -> None:
    # It was there: its rows are gone, and not to come.
    fill(tmp_path, "a", 5)
    watch, _ = troubles(tmp_path, clock)
    watch.refresh()
    for path in log_folder(tmp_path, "a").iterdir():
        if path.name != "_lock":
            path.unlink()
    with pytest.raises(JournalMissing):
        watch.refresh()


def test_gaps_that_cannot_be_read_are_judged_alike(
    tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for source in "ab":
        fill(tmp_path, source, 5)
    strict, lossy = troubles(tmp_path, clock)[0], troubles(tmp_path, clock, failOnDataLoss="false")[0]
    unreachable, damaged, missing = JournalError("no answer"), JournalCorrupt("junk"), JournalMissing("gone")
    for one in (strict, lossy):
        one.refresh()
        one.skip_gaps("a", unreachable)
        for error, bounded in ((unreachable, True), (missing, False)):
            with pytest.raises(type(error)):
                one.skip_gaps("a", error, bounded=bounded)
    with pytest.raises(JournalCorrupt):
        strict.skip_gaps("a", damaged)
    caplog.clear()
    for _ in range(3):
        lossy.refresh()
        lossy.skip_gaps("a", damaged, bounded=True)
    assert caplog.text.count("the query continues without source 'a': junk") == 1


def test_bad_logs_alone_end_the_query(tmp_path: Path, clock: Clock) -> None:
    fill(tmp_path, "a", 5)
    spoil(tmp_path, "a")
    watch, _ = troubles(tmp_path, clock, failOnDataLoss="false")
    with pytest.raises(JournalCorrupt):
        watch.refresh()


@pytest.mark.parametrize("error", [JournalError("no answer"), StoreError("no answer"), DiskFull("no answer")])
def test_work_is_repeated_until_everything_responds(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: JournalError
) -> None:
    monkeypatch.setattr(troubles_module, "RETRY", 0.0)
    watch, _ = troubles(tmp_path, clock, journalTimeout="5")
    left = [*range(3)]

    def work() -> str:
        clock.now += 4
        if left:
            left.pop()
            raise error
        return "done"

    assert watch.insist(work) == "done"
    left += range(3)
    assert watch.insist(work) == "done"
    assert caplog.text.count("no answer; the query waits") == 2
    left += range(3)
    with pytest.raises(type(error), match="no answer"):
        watch.insist(work, bounded=True)
    assert left == [0]


@pytest.mark.parametrize("kind", [JournalCorrupt, JournalMismatch, JournalMissing, JournalLocked, DataLost, Refused])
def test_work_that_will_fail_again_is_not_repeated(tmp_path: Path, clock: Clock, kind: type[JournalError]) -> None:
    watch, _ = troubles(tmp_path, clock)

    def work() -> None:
        raise kind("lasting")

    with pytest.raises(kind, match="lasting"):
        watch.insist(work)


@pytest.mark.parametrize("what", ["journal", "source"])
def test_trouble_that_may_pass_is_waited_for(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    fill(tmp_path, "a", 5)
    watch, view = troubles(tmp_path, clock)
    watch.refresh()

    def fail(*_: object) -> None:
        raise JournalError("the disk does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(view, "_names" if what == "journal" else "_refreshed", fail)
        assert [watch.refresh(), watch.refresh()] == [what == "source"] * 2
        clock.now += 1_000
        watch.refresh()
        assert view.ends() == {}
        assert caplog.text.count("the disk does not answer; the query waits") == 1
        patch.undo()
        watch.refresh()
        patch.setattr(view, "_names" if what == "journal" else "_refreshed", fail)
        watch.refresh()
        assert caplog.text.count("the disk does not answer; the query waits") == 2
        with pytest.raises(JournalError, match="does not answer"):
            watch.refresh(bounded=True)
    assert watch.refresh()
    assert view.ends() == {"a": 5}
