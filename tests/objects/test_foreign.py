from __future__ import annotations

from pathlib import Path

import pyarrow.fs
import pytest

from weirpool.errors import StoreError
from weirpool.objects.foreign import ForeignStore, foreign_store
from weirpool.objects.places import parse_place


@pytest.fixture
def store(tmp_path: Path) -> ForeignStore:
    return ForeignStore("hdfs://host/data", pyarrow.fs.LocalFileSystem(), str(tmp_path))


def test_files_are_read_and_listed(store: ForeignStore) -> None:
    store.put("m/a", b"0123456789")
    store.put("m/b", b"1")
    assert store.get("m/a") == b"0123456789"
    assert store.get("m/a", 8, 9) == b"89" and store.get("m/a", 50, 1) == b""
    assert store.get("m/a", 7) == b"789"
    assert store.get("m/c") is None
    assert store.list("m") == [("m/a", 10), ("m/b", 1)] and store.list("m", after="m/a") == [("m/b", 1)]
    assert store.folders() == ["m"] and store.list("other") == []
    store.delete(["m/a", "m/c"])
    assert store.list("") == [("m/b", 1)]


def test_conditional_writes_are_refused(store: ForeignStore) -> None:
    assert not store.conditional
    with pytest.raises(StoreError, match=r"hdfs://host/data: this store has no conditional writes"):
        store.create("a", b"")


def test_unknown_schemes_are_refused() -> None:
    with pytest.raises(StoreError, match="nowhere://x/y"):
        foreign_store(parse_place("nowhere://x/y"))
