from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from weirpool import JournalMissing
from weirpool.journal.journal import Journal
from weirpool.journal.layout import log_folder
from weirpool.spark import watch
from weirpool.spark.watch import Watch

from .journals import fill


def test_a_log_is_unchanged_until_rows_are_appended(tmp_path: Path) -> None:
    fill(tmp_path, "a", 5)
    fill(tmp_path, "b", 5)
    one = Watch(str(tmp_path))
    assert not one.is_unchanged("a") and not one.is_unchanged("b")
    assert one.is_unchanged("a") and not one.sees_change("ab", names=False)
    fill(tmp_path, "a", 6)
    assert one.sees_change("ab", names=False) and not one.sees_change("b", names=False)
    assert not one.is_unchanged("a") and one.is_unchanged("b")
    assert one.is_unchanged("a")


def test_a_change_is_seen_however_coarse_the_file_system_s_clock_is(tmp_path: Path) -> None:
    fill(tmp_path, "a", 5)
    mark = log_folder(tmp_path, "a") / "_durable"
    one = Watch(str(tmp_path))
    one.is_unchanged("a")
    before = mark.stat()
    fill(tmp_path, "a", 6)
    os.utime(mark, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert one.sees_change("a", names=False) and not one.is_unchanged("a")


def test_a_log_that_is_created_again_has_changed(tmp_path: Path) -> None:
    fill(tmp_path, "a", 5)
    one = Watch(str(tmp_path))
    one.is_unchanged("a")
    shutil.rmtree(log_folder(tmp_path, "a"))
    assert one.sees_change("a", names=False)
    fill(tmp_path, "a", 5)
    assert one.sees_change("a", names=False) and not one.is_unchanged("a")


def test_a_log_without_a_mark_is_never_unchanged(tmp_path: Path) -> None:
    fill(tmp_path, "a", 5)
    (log_folder(tmp_path, "a") / "_durable").unlink()
    one = Watch(str(tmp_path))
    assert [one.is_unchanged("a") for _ in range(2)] == [False, False]


def test_a_journal_without_changes_is_not_listed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, "a", 5)
    listings = 0
    sources = Journal.sources

    def counted(self: Journal) -> list[str]:
        nonlocal listings
        listings += 1
        return sources(self)

    monkeypatch.setattr(Journal, "sources", counted)
    one = Watch(str(tmp_path))
    # So soon after a change, another one may have the same time.
    assert one.names() == one.names() == ["a"]
    assert listings == 2
    past = time.time_ns() - 60 * 10**9
    os.utime(tmp_path, ns=(past, past))
    assert one.names() == one.names() == ["a"]
    assert not one.sees_change((), names=True)
    assert listings == 3
    fill(tmp_path, "b", 5)
    assert one.sees_change((), names=True) and one.names() == ["a", "b"]


def test_a_journal_is_listed_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The clock of a network file system may differ.
    fill(tmp_path, "a", 5)
    past = time.time_ns() - 60 * 10**9
    os.utime(tmp_path, ns=(past, past))
    one = Watch(str(tmp_path))
    one.names()
    fill(tmp_path, "b", 5)
    os.utime(tmp_path, ns=(past, past))
    assert one.names() == ["a"]
    monkeypatch.setattr(watch, "LISTING_SECONDS", 0)
    assert one.names() == ["a", "b"]


def test_a_journal_that_is_missing_is_an_error(tmp_path: Path) -> None:
    one = Watch(str(tmp_path / "journal"))
    with pytest.raises(JournalMissing):
        one.names()
    fill(tmp_path / "journal", "a", 5)
    assert one.names() == ["a"]
