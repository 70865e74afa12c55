from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from weirpool import DataLost, JournalCorrupt, JournalMissing, LocalError
from weirpool.journal.journal import Journal
from weirpool.journal.layout import log_folder
from weirpool.journal.reader import JournalReader
from weirpool.spark.options import SourceOptions
from weirpool.spark.view import REMOTE_SECONDS, JournalView

from .journals import fill, log_of, options


def test_sees_all_sources_and_those_that_come(tmp_path: Path) -> None:
    view = JournalView(options(tmp_path))
    fill(tmp_path, "a", 5)
    view.refresh()
    assert view.ends() == {"a": 5}
    fill(tmp_path, "a", 7)
    fill(tmp_path, "b", 2)
    view.refresh()
    assert view.ends() == {"a": 7, "b": 2}
    assert view.logs() == {"a": log_of(tmp_path, "a"), "b": log_of(tmp_path, "b")}


def test_sees_only_the_sources_that_were_named(tmp_path: Path) -> None:
    fill(tmp_path, "a", 5)
    fill(tmp_path, "b", 5)
    view = JournalView(options(tmp_path, source="b,c"))
    view.refresh()
    assert view.ends() == {"b": 5}
    with pytest.raises(JournalMissing, match="has no source 'c' in it; its sources are a, b: check the path"):
        view.reader("c")


def test_sees_only_the_sources_that_match_a_pattern(tmp_path: Path) -> None:
    fill(tmp_path, "flights-1", 5)
    fill(tmp_path, "delays", 5)
    view = JournalView(options(tmp_path, sourcePattern="flights-.*"))
    view.refresh()
    assert view.ends() == {"flights-1": 5}
    fill(tmp_path, "flights-2", 3)
    view.refresh()
    assert view.ends() == {"flights-1": 5, "flights-2": 3}
    # A name of the checkpoint that no longer matches is not missed.
    view.expected = {"delays", "flights-9"}
    view.refresh()
    assert view.ends().keys() == {"flights-1", "flights-2"} and view.troubles.keys() == {"flights-9"}


def test_a_pattern_that_matches_no_name_finds_nothing(tmp_path: Path) -> None:
    fill(tmp_path, "delays", 5)
    with pytest.raises(JournalMissing, match=r"has no source whose name matches flights-\."):
        JournalView(options(tmp_path, sourcePattern="flights-.")).refresh()


def test_a_log_without_new_rows_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for source in "ab":
        fill(tmp_path, source, 5)
    view = JournalView(options(tmp_path))
    view.refresh()
    assert not view.may_have_changed()
    read: list[str] = []
    refresh = JournalReader.refresh
    monkeypatch.setattr(JournalReader, "refresh", lambda self: (read.append(self.source), refresh(self))[1])
    view.refresh()
    assert read == []
    fill(tmp_path, "b", 6)
    assert view.may_have_changed()
    view.refresh()
    assert read == ["b"] and view.ends() == {"a": 5, "b": 6}
    assert not view.may_have_changed()
    fill(tmp_path, "c", 1)
    assert view.may_have_changed()


def test_the_earliest_position_is_that_of_now(tmp_path: Path) -> None:
    fill(tmp_path, "a", *range(5, 50, 5), segment_bytes=1)
    view = JournalView(options(tmp_path))
    view.refresh()
    Journal(tmp_path).trim("a", 30, retain_bytes=0)
    view.refresh()
    assert view.position("a", "earliest") == 30


@pytest.mark.parametrize("there", [True, False])
def test_a_journal_without_sources_is_missing(tmp_path: Path, there: bool) -> None:
    journal = tmp_path / "journal"
    if there:
        journal.mkdir()
    view = JournalView(options(journal))
    with pytest.raises(JournalMissing, match="check the path"):
        view.refresh()
    assert journal.exists() == there
    view.expected = {"a"}
    with pytest.raises(JournalMissing):
        view.refresh()
        view.reader("a")


def test_a_log_that_cannot_be_read_leaves_the_others_readable(tmp_path: Path) -> None:
    for source in "abc":
        fill(tmp_path, source, 5)
    (log_folder(tmp_path, "b") / "_log.json").write_bytes(b"junk")
    (log_folder(tmp_path, "c") / "_durable").write_bytes(b"junk")
    view = JournalView(options(tmp_path))
    view.refresh()
    assert view.ends() == {"a": 5}
    assert {source: type(error) for source, error in view.troubles.items()} == {
        "b": JournalCorrupt,
        "c": JournalCorrupt,
    }
    with pytest.raises(JournalCorrupt, match="source=b"):
        view.reader("b")


def test_a_log_that_goes_is_missed(tmp_path: Path) -> None:
    # THREATS 99
    fill(tmp_path, "a", 5)
    fill(tmp_path, "b", 5)
    view = JournalView(options(tmp_path))
    view.refresh()
    shutil.rmtree(log_folder(tmp_path, "b"))
    view.refresh()
    assert view.ends() == {"a": 5}
    assert isinstance(view.troubles["b"], JournalMissing)


def test_a_log_that_is_created_again_is_another_one(tmp_path: Path) -> None:
    # THREATS 99: also when it has grown longer than the one before.
    fill(tmp_path, "a", 5)
    view = JournalView(options(tmp_path))
    view.refresh()
    before = view.logs()
    shutil.rmtree(log_folder(tmp_path, "a"))
    fill(tmp_path, "a", 9)
    view.refresh()
    assert view.ends() == {"a": 9}
    assert view.logs() != before


def test_looks_at_a_remote_journal_but_once_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(SourceOptions, "remote", True)
    view = JournalView(options(tmp_path), clock=lambda: now)
    fill(tmp_path, "a", 5)
    view.refresh()
    fill(tmp_path, "a", 6)
    view.refresh()
    assert view.ends() == {"a": 5}
    assert not view.may_have_changed()
    now += REMOTE_SECONDS
    assert view.may_have_changed()
    view.refresh()
    assert view.ends() == {"a": 6}


def test_places_become_positions(tmp_path: Path) -> None:
    fill(tmp_path, "a", 5)
    view = JournalView(options(tmp_path))
    view.refresh()
    assert [view.position("a", place) for place in ("earliest", "latest", 3, 5)] == [0, 5, 3, 5]
    with pytest.raises(DataLost, match="ends at position 5, before 6"):
        view.position("a", 6)
    assert view.size("a", 0, 5) > view.size("a", 0, 1) > 0


def test_options_may_name_only_sources_that_are_there(tmp_path: Path) -> None:
    fill(tmp_path, "count", 5)
    fill(tmp_path, "flights", 5)
    view = JournalView(options(tmp_path))
    view.refresh()
    view.require_sources({"startingOffsets": {"count": 5}, "endingOffsets": "latest"})
    with pytest.raises(LocalError, match=r".startingOffsets. names source 'cuont', .*; its sources are count, flights"):
        view.require_sources({"startingOffsets": {"count": 1, "cuont": 5}})
