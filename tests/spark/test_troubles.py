from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from penstock import JournalCorrupt, JournalError, JournalMissing
from penstock.journal.layout import log_folder
from penstock.spark.troubles import Troubles
from penstock.spark.view import JournalView

from .journals import fill, options


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
    assert watch.look() and watch.look()
    assert caplog.text.count("the query waits 5 s for it (option journalTimeout)") == 1
    clock.now += 4.9
    assert watch.look()
    clock.now += 0.1
    with pytest.raises(JournalMissing, match="check the path"):
        watch.look()
    fill(journal, "a", 5)
    assert watch.look()
    assert view.ends() == {"a": 5}


def test_a_journal_that_comes_in_time_is_read(tmp_path: Path, clock: Clock) -> None:
    watch, view = troubles(tmp_path / "journal", clock, journalTimeout="5")
    watch.look()
    fill(tmp_path / "journal", "a", 5)
    clock.now += 60
    assert watch.look()
    assert view.ends() == {"a": 5}


def test_a_named_source_that_is_not_there_is_waited_for_while_others_are_read(
    tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    fill(tmp_path, "a", 5)
    watch, view = troubles(tmp_path, clock, source="a,b", journalTimeout="5")
    assert watch.look()
    assert view.ends() == {"a": 5}
    assert "has no source 'b' in it; there are a" in caplog.text
    clock.now += 5
    with pytest.raises(JournalMissing, match="has no source 'b'"):
        watch.look()


def test_the_collector_inside_the_query_makes_its_log(
    tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    watch, _ = troubles(tmp_path / "journal", clock, url="rsocket+tcp://127.0.0.1:1", route="a", journalTimeout="0")
    assert watch.look() and watch.look()
    assert caplog.text == ""


@pytest.mark.parametrize("gone", ["log", "journal"])
@pytest.mark.parametrize("more", [{}, {"source": "a"}, {"failOnDataLoss": "false"}])
def test_what_goes_while_the_query_runs_ends_it(tmp_path: Path, clock: Clock, gone: str, more: dict[str, str]) -> None:
    # THREATS 99
    journal = tmp_path / "journal"
    fill(journal, "a", 5)
    watch, _ = troubles(journal, clock, **more)
    watch.look()
    shutil.rmtree(log_folder(journal, "a") if gone == "log" else journal)
    with pytest.raises(JournalMissing):
        watch.look()


def test_a_bad_log_ends_the_query_with_the_exact_error(tmp_path: Path, clock: Clock) -> None:
    fill(tmp_path, "a", 5)
    fill(tmp_path, "b", 5)
    spoil(tmp_path, "b")
    watch, _ = troubles(tmp_path, clock)
    with pytest.raises(JournalCorrupt, match=r"source=b/_log.json: is not"):
        watch.look()


def test_a_bad_log_hurts_only_itself_if_that_is_wanted(
    tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    fill(tmp_path, "a", 5)
    fill(tmp_path, "b", 5)
    good = (log_folder(tmp_path, "b") / "_log.json").read_bytes()
    spoil(tmp_path, "b")
    watch, view = troubles(tmp_path, clock, failOnDataLoss="false")
    assert watch.look() and watch.look()
    assert view.ends() == {"a": 5}
    assert caplog.text.count("the query goes on without source 'b': ") == 1
    assert "_log.json: is not" in caplog.text
    (log_folder(tmp_path, "b") / "_log.json").write_bytes(good)
    assert watch.look()
    assert view.ends() == {"a": 5, "b": 5}


def test_bad_logs_alone_end_the_query(tmp_path: Path, clock: Clock) -> None:
    fill(tmp_path, "a", 5)
    spoil(tmp_path, "a")
    watch, _ = troubles(tmp_path, clock, failOnDataLoss="false")
    with pytest.raises(JournalCorrupt):
        watch.look()


@pytest.mark.parametrize("what", ["journal", "source"])
def test_trouble_that_may_pass_is_waited_for(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    fill(tmp_path, "a", 5)
    watch, view = troubles(tmp_path, clock)
    watch.look()

    def fail(*_: object) -> None:
        raise JournalError("the disk does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(view, "_names" if what == "journal" else "_refreshed", fail)
        assert [watch.look(), watch.look()] == [what == "source"] * 2
        clock.now += 1_000
        watch.look()
        assert view.ends() == {}
        assert caplog.text.count("the disk does not answer; the query waits") == 1
        with pytest.raises(JournalError, match="does not answer"):
            watch.look(bounded=True)
    assert watch.look()
    assert view.ends() == {"a": 5}
