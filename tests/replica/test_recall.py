"""Bringing logs to a machine; what they are afterwards is shown in test_group.py and test_restore.py."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.journal.logs import append, numbers
from tests.replica.groups import MemoryStore, sequence
from weirpool.errors import JournalCorrupt, JournalError, JournalLocked
from weirpool.journal import Journal, JournalWriter
from weirpool.journal import secret as secrets
from weirpool.journal.layout import LOCK, log_folder
from weirpool.journal.lock import Lock
from weirpool.replica import recall as recall_module
from weirpool.replica.bundler import Bundler
from weirpool.replica.logs import Logs
from weirpool.replica.ownership import Ownership, take
from weirpool.replica.recall import recall
from weirpool.replica.vault import Vault, new_key

SOURCES = ("a", "b", "c")
VAULT = Vault(new_key(), "edge")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    """Three logs of 12 rows, in twelve bundles."""
    store = MemoryStore()
    bundler = Bundler(take(sequence(store)), interval=0.0, heartbeat=1_000.0)
    logs = Logs(bundler, VAULT, {})
    for _ in range(4):
        for source in SOURCES:
            with JournalWriter.open(tmp_path / "former", source, replica=logs) as writer:
                append(writer, 3)
    logs.keep("b", b"a secret")
    bundler.close()
    yield store


def recalled(store: MemoryStore, journal: Path, vault: Vault = VAULT) -> Ownership:
    owned = take(sequence(store))
    recall(sequence(store), range(owned.floor, owned.number), list(owned.logs.values()), journal, vault)
    return owned


def test_all_logs_are_restored(store: MemoryStore, tmp_path: Path) -> None:
    recalled(store, tmp_path / "here")
    journal = Journal(tmp_path / "here")
    assert journal.sources() == list(SOURCES)
    assert all(numbers(journal.reader(source)) == list(range(12)) for source in SOURCES)
    assert (log_folder(tmp_path / "here", "b") / "_secret").read_bytes() == b"a secret"
    assert secrets.load(log_folder(tmp_path / "here", "a")) is None
    # The temporary file is gone.
    assert sorted(path.name for path in (tmp_path / "here").iterdir()) == [
        "_store.json", "source=a", "source=b", "source=c",
    ]  # fmt: skip


def test_only_some_bundles_are_in_memory(store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recall_module, "AHEAD", 2)
    lock, held, most = threading.Lock(), 0, 0
    read = recall_module.Sequence.read
    add = recall_module._Spool.add

    def reading(found: recall_module.Sequence, number: int) -> object:
        nonlocal held, most
        with lock:
            held += 1
            most = max(most, held)
        return read(found, number)

    def adding(spool: recall_module._Spool, bundle: recall_module.Bundle) -> None:
        nonlocal held
        with lock:
            held -= 1
        add(spool, bundle)

    monkeypatch.setattr(recall_module.Sequence, "read", reading)
    monkeypatch.setattr(recall_module._Spool, "add", adding)
    recalled(store, tmp_path / "here")
    assert most <= 2


def test_a_missing_bundle_is_named(store: MemoryStore, tmp_path: Path) -> None:
    owned = take(sequence(store))
    del store.objects[sequence(store).name(5)]
    with pytest.raises(JournalCorrupt, match="is missing; restore"):
        recall(sequence(store), range(owned.number), list(owned.logs.values()), tmp_path / "here", VAULT)


def test_a_log_in_use_is_left_alone(store: MemoryStore, tmp_path: Path) -> None:
    folder = log_folder(tmp_path / "here", "c")
    folder.mkdir(parents=True)
    with Lock(folder / LOCK), pytest.raises(JournalLocked):
        recalled(store, tmp_path / "here")
    assert not any((tmp_path / "here").glob("**/*.arrows"))


def test_another_key_opens_no_secret(store: MemoryStore, tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="cannot be decrypted"):
        recalled(store, tmp_path / "here", Vault(new_key(), "edge"))
