from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from weirpool import DedupError
from weirpool.dedup.progress import Origin, Progress
from weirpool.dedup.store import Store

TASK = Origin("q", 3)


def test_what_was_saved_is_found_by_the_next_process(tmp_path: Path) -> None:
    store = Store(tmp_path / "db")
    assert store.load(TASK) == Progress() and not store.has("k")
    store.save({TASK: Progress(5, [0, 7], [3, 8])}, ["k"])
    store.close()
    store.close()
    again = Store(tmp_path / "db")
    assert again.load(TASK) == Progress(5, [0, 7], [3, 8]) and again.has("k")
    again.close()


def test_transaction_is_stored_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    store = Store(tmp_path / "db")
    store.connection.execute("CREATE TABLE effects (value TEXT)")
    for commits in (False, True):
        store.begin()
        store.connection.execute("INSERT INTO effects VALUES ('x')")
        if commits:
            store.commit({TASK: Progress(1)}, [])
        store.rollback()
        count = store.connection.execute("SELECT count(*) FROM effects").fetchone()[0]
        assert (count, store.load(TASK).batch) == ((1, 1) if commits else (0, -1))
    store.close()


def test_what_is_old_is_forgotten(tmp_path: Path) -> None:
    now = [10_000.0]
    store = Store(tmp_path / "db", keep=100, clock=lambda: now[0])
    store.save({TASK: Progress(1)}, ["old"])
    now[0] += 10_000
    store.save({Origin("q", 4): Progress(1)}, ["new"])
    assert store.load(TASK) == Progress() and not store.has("old") and store.has("new")
    store.close()


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "junk").write_bytes(b"junk" * 1000)
    with pytest.raises(DedupError, match="cannot be used"):
        Store(tmp_path / "junk")
    with pytest.raises(DedupError, match="cannot be used"):
        Store(tmp_path / "missing" / "db")
    store = Store(tmp_path / "db")
    store.connection.execute("INSERT INTO weirpool_progress VALUES ('q', 3, 'junk', 0)")
    with pytest.raises(DedupError, match="invalid progress of query q"):
        store.load(TASK)
    store.close()


def test_commit_that_fails_leaves_no_transaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path / "db")

    def full() -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(store._database, "commit", full)
        with pytest.raises(DedupError, match="disk is full"):
            store.save({TASK: Progress(1)}, [])
    store.save({TASK: Progress(2)}, [])
    assert store.load(TASK).batch == 2
    store.close()
