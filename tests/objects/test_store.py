"""What each kind of store does in the same way."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pyarrow as pa
import pytest

from tests.objects.stores import numbers
from weirpool.errors import LocalError, StoreError
from weirpool.objects import Store, open_store


def test_what_is_put_is_got(store: Store) -> None:
    store.put("a/b.json", b"one")
    assert store.get("a/b.json") == b"one"
    store.put("a/b.json", memoryview(b"two, longer"))
    assert store.create("b", memoryview(pa.py_buffer(b"\xff"))) and store.get("b") == b"\xff"
    assert store.get("a/b.json") == b"two, longer"


def test_an_object_that_does_not_exist_is_none(store: Store) -> None:
    assert store.get("a") is None
    assert store.get("a", 3, 4) is None


@pytest.mark.parametrize(
    ("start", "length", "expected"),
    [(0, 3, b"012"), (4, 3, b"456"), (8, 9, b"89"), (7, None, b"789"), (10, 2, b""), (99, 1, b"")],
)
def test_a_range_is_read(store: Store, start: int, length: int | None, expected: bytes) -> None:
    store.put("a", b"0123456789")
    assert store.get("a", start, length) == expected


def test_create_writes_once(store: Store) -> None:
    assert store.conditional
    assert store.create("a/1", b"first")
    assert not store.create("a/1", b"second")
    assert not store.create("a/1", b"first")
    assert store.get("a/1") == b"first"


def test_exactly_one_of_many_creates(store: Store) -> None:
    count = 8
    for name in ("a", "b", "c"):
        barrier = Barrier(count)

        def race(number: int, name: str = name, barrier: Barrier = barrier) -> bool:
            barrier.wait(timeout=30)
            return store.create(f"race/{name}", b"writer %d" % number)

        with ThreadPoolExecutor(count) as pool:
            won = list(pool.map(race, range(count)))
        assert won.count(True) == 1
        assert store.get(f"race/{name}") == b"writer %d" % won.index(True)


def test_create_succeeds_after_delete(store: Store) -> None:
    assert store.create("a", b"1")
    store.delete(["a"])
    assert store.create("a", b"2")


def test_list_is_in_order_and_may_start_later(store: Store) -> None:
    for name in ("m/3", "m/1", "m/10", "m/2/x", "n", "ma"):
        store.put(name, b"x" * len(name))
    assert store.list("m") == [("m/1", 3), ("m/10", 4), ("m/2/x", 5), ("m/3", 3)]
    assert store.list("m", after="m/10") == [("m/2/x", 5), ("m/3", 3)]
    assert [name for name, _ in store.list("")] == ["m/1", "m/10", "m/2/x", "m/3", "ma", "n"]
    assert store.list("nothing") == []


def test_folders_are_listed(store: Store) -> None:
    for name in ("source=b/1", "source=a/_manifest/1", "file"):
        store.put(name, b"")
    assert store.folders() == ["source=a", "source=b"]
    assert store.folders("source=a") == ["_manifest"]
    assert store.folders("nothing") == []


def test_what_is_deleted_is_gone(store: Store) -> None:
    store.put("a", b"1")
    store.put("b", b"2")
    store.delete(["a", "missing"])
    assert store.list("") == [("b", 1)]


def test_a_store_is_opened_again_by_its_uri(store: Store) -> None:
    store.put("a", b"1")
    assert open_store(store.uri).get("a") == b"1"


def test_file_uris_and_paths_are_folders(tmp_path: Path) -> None:
    open_store(tmp_path).put("a", b"1")
    assert open_store(f"file://{tmp_path}").get("a") == b"1"
    assert open_store(str(tmp_path)).uri == str(tmp_path)


def test_other_schemes_go_to_pyarrow() -> None:
    with pytest.raises(StoreError, match="nowhere://x"):
        open_store("nowhere://x/y")


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "weirpool.objects.remote", raising=False)
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(StoreError, match=r"weirpool\[store\]"):
        open_store(f"memory://test-{next(numbers)}")


def test_credentials_in_a_uri_are_refused() -> None:
    with pytest.raises(LocalError, match="environment") as caught:
        open_store("s3://key:secret@bucket/a")
    assert "secret@" not in str(caught.value)
