"""What readers wait for in the journals of a group; the owner is a thread here, see tests/replica for the real one."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.journal.logs import SOURCE, write
from weirpool.errors import DiskFull, JournalError, JournalMismatch, LocalError
from weirpool.journal import Journal, asks, retention
from weirpool.journal.asks import Ask, asked
from weirpool.journal.coordinator import FolderCoordinator
from weirpool.journal.layout import ASKS, COMMITTED
from weirpool.journal.retention import Committed

SECONDS = 10


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A log of ten rows in the journal of a group."""
    folder = write(tmp_path, 10)
    asks.prepare(tmp_path)
    return folder


@pytest.fixture
def owner(folder: Path) -> Iterator[list[dict[str, Committed]]]:
    """Answers, and returns the cursors that it has found each time."""
    found: list[dict[str, Committed]] = []
    stop = threading.Event()

    def answer() -> None:
        while not stop.wait(0.001):
            for files in asked(folder.parent).values():
                found.append(retention.cursors(folder))
                for file in files:
                    file.unlink()

    thread = threading.Thread(target=answer)
    thread.start()
    yield found
    stop.set()
    thread.join()


class Waits:
    """Counts what would be waited for."""

    def __init__(self) -> None:
        self.asks: list[Ask] = []

    def __call__(self, ask: Ask) -> None:
        self.asks.append(ask)


def rings(folder: Path) -> list[str]:
    return sorted(os.listdir(folder.parent / ASKS))


def test_a_journal_without_a_group_waits_for_nobody(tmp_path: Path) -> None:
    folder = write(tmp_path, 10)
    waits = Waits()
    retention.commit(folder, "r", 5, query="q", wait=waits)
    retention.trim(folder, 6, reader="t", wait=waits)
    retention.forget(folder, "r", wait=waits)
    asks.confirm(folder)
    assert not waits.asks and not (tmp_path / ASKS).exists() and asked(tmp_path) == {}


def test_only_what_a_successor_must_know_is_waited_for(folder: Path) -> None:
    waits = Waits()
    answered = 0

    def waited(change: Callable[[], object]) -> bool:
        nonlocal answered
        change()
        asked_for = len(waits.asks) > answered
        answered = len(waits.asks)
        for file in [file for files in asked(folder.parent).values() for file in files]:
            file.unlink()
        return asked_for

    desk = FolderCoordinator(str(folder.parent), waits)
    assert waited(lambda: desk.commit(SOURCE, "r", 3, query="q"))
    assert not waited(lambda: desk.commit(SOURCE, "r", 4, query="q"))
    assert not waited(lambda: desk.trim(SOURCE, "r", 6, query="q", retain_bytes=0))
    assert not waited(lambda: desk.commit(SOURCE, "r", 6, query="q"))
    assert waited(lambda: desk.commit(SOURCE, "r", 5, query="q"))
    assert waited(lambda: desk.commit(SOURCE, "r@two", 9, query="q"))
    assert waited(lambda: desk.seek(SOURCE, "export", 0))
    assert not waited(lambda: desk.seek(SOURCE, "export", 8))
    assert waited(lambda: desk.trim(SOURCE, "new", 1, query=None, retain_bytes=0))
    # The name belongs to a query from now on.
    assert waited(lambda: desk.commit(SOURCE, "new", 2, query="other"))
    assert waited(lambda: desk.drop(SOURCE, "export"))
    assert not waited(lambda: desk.drop(SOURCE, "export"))
    assert waited(lambda: desk.forget(SOURCE, "r"))
    assert not waited(lambda: desk.forget(SOURCE, "r"))


def test_an_advance_is_told_to_the_owner(folder: Path) -> None:
    retention.commit(folder, "r", 3, wait=Waits())
    asked(folder.parent)
    for file in (folder.parent / ASKS).iterdir():
        file.unlink()
    retention.commit(folder, "r", 4)
    assert rings(folder) == [SOURCE]
    assert asked(folder.parent) == {SOURCE: []}
    assert rings(folder) == []


def test_readers_are_answered_when_their_change_is_stored(folder: Path, owner: list[dict[str, Committed]]) -> None:
    journal = Journal(folder.parent)
    assert journal.seek(SOURCE, "r", 5) == 5
    assert owner[-1]["r"].position == 5
    assert journal.seek(SOURCE, "r", 2) == 2
    assert owner[-1]["r"].position == 2
    assert set(journal.forget(SOURCE, "r")) == {"r"}
    assert owner[-1] == {}
    asks.confirm(folder)


def test_without_an_owner_a_reader_is_refused_each_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asks, "PATIENCE", 0.01)
    for _ in range(2):
        with pytest.raises(JournalError, match="reader 'r' is at 5: the owner of this log's group has not stored"):
            retention.commit(folder, "r", 5, query="q")
    # An advance is held back only until the claim is answered.
    with pytest.raises(JournalError):
        retention.commit(folder, "r", 6, query="q")
    for _ in range(2):
        with pytest.raises(JournalError, match="reader 'r' is removed"):
            retention.forget(folder, "r")
    with pytest.raises(JournalError, match="does not know all readers"):
        asks.confirm(folder)


def test_a_change_that_a_take_over_has_undone_is_not_answered(folder: Path) -> None:
    waits = Waits()
    retention.commit(folder, "r", 5, query="q", wait=waits)
    retention.commit(folder, "other", 5, query="q", wait=waits)
    retention.forget(folder, "other", wait=waits)
    uuid = Journal(folder.parent).reader(SOURCE).uuid
    retention.restore(folder, {"other": Committed(1, "q", uuid)})
    for file in [file for files in asked(folder.parent).values() for file in files]:
        file.unlink()
    claim, _, dropped = waits.asks
    with pytest.raises(JournalError, match="reader 'r' was restored"):
        claim.is_answered()
    with pytest.raises(JournalError, match="reader 'other' is there again"):
        dropped.is_answered()


def test_restored_readers_replace_all_others(folder: Path) -> None:
    retention.commit(folder, "r", 5, query="q", wait=Waits())
    (folder / COMMITTED / "junk").write_bytes(b"junk")
    uuid = Journal(folder.parent).reader(SOURCE).uuid
    restored = {"lake": Committed(3, "q", uuid), "lake@two": Committed(4, None, uuid)}
    retention.restore(folder, restored)
    assert retention.cursors(folder) == restored
    with pytest.raises(JournalMismatch):
        retention.commit(folder, "lake", 5, query="another")
    retention.restore(folder, {})
    assert retention.cursors(folder) == {}


def test_names_of_any_length_can_be_waited_for(folder: Path, owner: list[dict[str, Committed]]) -> None:
    cursor = f"{'r' * 128}@{'q' * 63}"
    retention.commit(folder, cursor, 5, query="q" * 128)
    assert cursor in owner[-1]


def test_strange_files_are_ignored(folder: Path) -> None:
    for name in ("..", "-x", "~", "a b"):
        if name != "..":
            (folder.parent / ASKS / name).write_bytes(b"")
    assert asked(folder.parent) == {}


def test_a_full_disk_refuses_a_claim_and_no_advance(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    retention.commit(folder, "r", 3, wait=Waits())
    for file in (folder.parent / ASKS).iterdir():
        file.unlink()

    def full(path: Path, flags: int) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(asks, "open_private", full)
    assert retention.commit(folder, "r", 4) == 4
    with pytest.raises(DiskFull):
        retention.commit(folder, "new", 4)
    assert set(retention.cursors(folder)) == {"r"}


def test_names_of_cursors_are_recognized() -> None:
    assert retention.is_cursor("a") and retention.is_cursor("a@b")
    for name in ("", "@", "a@", "@b", "../a", "a@../b", "a" * 200):
        assert not retention.is_cursor(name)
        with pytest.raises(LocalError):
            retention.reader_of(name)
