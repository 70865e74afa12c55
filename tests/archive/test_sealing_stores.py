"""Where a log is sealed to, and what happens when that is not there any more."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.archive.logs import SMALL, broken, fill, positions, seal_all
from tests.journal.logs import SOURCE
from tests.objects.stores import numbers
from weirpool.archive import SealOptions, seal
from weirpool.archive.retire import retire
from weirpool.errors import JournalMismatch, JournalMissing
from weirpool.journal import Journal, JournalReader
from weirpool.journal.sealed import load_sealed, store_uri
from weirpool.objects import open_store
from weirpool.objects import probe as probing
from weirpool.objects.ports import Data
from weirpool.objects.probe import ConditionIgnored
from weirpool.objects.remote import RemoteStore


def memory() -> SealOptions:
    return SealOptions(target_bytes=1, store=f"memory://sealing-{next(numbers)}")


def test_a_relative_path_is_the_folder_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = fill(Path("data"), 3, 4)
    seal_all(Path("data"))
    state = load_sealed(folder)
    assert state is not None and not state.stored and store_uri("data") is None
    assert broken(Path("data"), 7, set()) == []


def test_another_folder_is_a_store(tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    folder = fill(tmp_path / "data", 3, 4)
    seal_all(tmp_path / "data", SealOptions(target_bytes=1, store=store))
    state = load_sealed(folder)
    assert state is not None and state.stored and store_uri(tmp_path / "data") == store
    assert broken(tmp_path / "data", 7, set(), store) == []


def test_sealed_rows_do_not_stay_behind_when_a_store_is_named_later(tmp_path: Path) -> None:
    fill(tmp_path, 3, 4, 5, 6)
    seal(tmp_path, SOURCE, SMALL)
    options = memory()
    with pytest.raises(JournalMismatch, match="no manifest of all rows up to 3"):
        seal_all(tmp_path, options)
    assert store_uri(tmp_path) is None and broken(tmp_path, 18, set()) == []
    # They are copied.
    here, there = open_store(tmp_path), open_store(str(options.store))
    for name, _ in here.list("source=s"):
        if not name.endswith(".arrows"):
            there.put(name, here.get(name) or b"")
    assert seal_all(tmp_path, options) == 2
    shutil.rmtree(tmp_path / "source=s" / "_manifest")
    assert positions(Journal(tmp_path).reader(SOURCE)) == [*range(18)]


def test_a_store_that_is_empty_is_not_an_empty_history(tmp_path: Path) -> None:
    options = memory()
    fill(tmp_path, 3, 4, 5)
    seal_all(tmp_path, options)
    store = open_store(str(options.store))
    store.delete([name for name, _ in store.list("")])
    assert JournalReader(tmp_path, SOURCE).first == 7
    with pytest.raises(JournalMissing, match="manifest of positions up to 6 is not there"):
        Journal(tmp_path).reader(SOURCE)
    fill(tmp_path, 6)
    with pytest.raises(JournalMismatch, match="no manifest of all rows up to 7"):
        seal_all(tmp_path, options)


@pytest.mark.parametrize("work", [seal, retire])
def test_a_store_that_ignores_conditions_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, work: Callable[..., object]
) -> None:
    options = SealOptions(store=f"memory://careless-{next(numbers)}", target_bytes=1, keep=0)
    fill(tmp_path, 3, 4)
    if work is retire:
        seal_all(tmp_path, options)
    store = open_store(str(options.store))
    before = store.list("")
    create = RemoteStore.create

    def overwrite(store: RemoteStore, name: str, data: Data) -> bool:
        store.put(name, data)
        return True

    monkeypatch.setattr(probing, "_asked", {})
    monkeypatch.setattr(RemoteStore, "create", overwrite)
    with pytest.raises(ConditionIgnored):
        work(tmp_path, SOURCE, options)
    assert store.list("") == before
    monkeypatch.setattr(RemoteStore, "create", create)
    monkeypatch.setattr(probing, "_asked", {})
    assert work(tmp_path, SOURCE, options)
