from __future__ import annotations

from pathlib import Path

import pytest

from tests.replica.groups import MemoryStore, sequence, update
from weirpool.errors import JournalCorrupt, LocalError, StoreError
from weirpool.objects.folder import FolderStore
from weirpool.replica.ownership import take
from weirpool.replica.sequence import Sequence


def test_a_number_is_written_once(tmp_path: Path) -> None:
    bundles = sequence(FolderStore(tmp_path))
    assert bundles.numbers() == []
    assert bundles.create(3, b"one")
    assert not bundles.create(3, b"two")
    assert bundles.create(12, b"three")
    assert bundles.numbers() == [3, 12]
    assert bundles.numbers(3) == [12]
    assert bundles.numbers(12) == []
    bundles.delete([3])
    assert bundles.numbers() == [12]


def test_bundles_are_read_by_number() -> None:
    bundles = sequence(MemoryStore())
    owned = take(bundles)
    owned.append([update(owned, "a", 2, "x")])
    bundle = bundles.read(1)
    assert bundle is not None
    assert bytes(bundle.batches("a")) == b"0 x\n1 x\n"
    found = bundles.header(1)
    assert found is not None
    assert found == (bundle.header, bundle.digest)
    assert bundles.read(2) is None
    assert bundles.header(2) is None


def test_long_headers_are_read_whole() -> None:
    bundles = sequence(MemoryStore())
    owned = take(bundles)
    owned.append([update(owned, f"source-{number}", 1, "x") for number in range(2_000)])
    found = bundles.header(1)
    assert found is not None
    assert len(found[0].parts) == 2_000


def test_missing_and_misplaced_bundles_are_found() -> None:
    store = MemoryStore()
    bundles = sequence(store)
    owned = take(bundles)
    for _ in range(3):
        owned.append()
    assert [header.number for header in bundles.headers(range(4))] == [0, 1, 2, 3]
    kept = store.objects.pop(bundles.name(2))
    with pytest.raises(JournalCorrupt, match="is missing"):
        list(bundles.headers(range(4)))
    store.objects[bundles.name(2)] = store.objects[bundles.name(1)]
    with pytest.raises(JournalCorrupt, match="is bundle 1"):
        bundles.read(2)
    store.objects[bundles.name(2)] = kept[:50]
    with pytest.raises(JournalCorrupt, match="is cut off"):
        bundles.header(2)


def test_bundles_of_another_history_are_found() -> None:
    one, two = MemoryStore(), MemoryStore()
    for store in (one, two):
        owned = take(sequence(store))
        owned.append()
        owned.append()
    name = sequence(one).name(1)
    one.objects[name] = two.objects[name]
    with pytest.raises(JournalCorrupt, match="does not follow"):
        list(sequence(one).headers(range(3)))


def test_stores_and_names_are_checked() -> None:
    store = MemoryStore()
    with pytest.raises(LocalError, match="group"):
        Sequence(store, "a/b")
    store.conditional = False  # type: ignore[misc]
    with pytest.raises(StoreError, match="cannot fence collectors"):
        Sequence(store, "edge")
