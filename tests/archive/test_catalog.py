from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from threading import Barrier

import pytest

from tests.archive.test_manifest import UUID, entry
from tests.objects.stores import numbers
from weirpool.archive import catalog as catalogs
from weirpool.archive import manifest as manifests
from weirpool.archive.catalog import Catalog
from weirpool.archive.manifest import Manifest
from weirpool.errors import JournalCorrupt
from weirpool.journal.gaps import Gap
from weirpool.objects import Store, open_store


@pytest.fixture
def store() -> Store:
    return open_store(f"memory://catalog-{next(numbers)}")


def empty() -> Manifest:
    return Manifest(uuid=UUID, version=0, writer="w", first=0)


def longer(manifest: Manifest) -> Manifest:
    return manifest.successor(segments=[*manifest.segments, entry(manifest.end, manifest.end + 10)])


def published(store: Store, versions: int) -> Manifest:
    catalog, manifest = Catalog(store, "s"), empty()
    for _ in range(versions):
        assert catalog.publish(longer(manifest))
        newest = catalog.newest()
        assert newest is not None and newest.end == manifest.end + 10
        manifest = newest
    return manifest


def test_there_is_nothing_at_first(store: Store) -> None:
    assert Catalog(store, "s").newest() is None


def test_the_newest_version_is_found(store: Store) -> None:
    manifest = published(store, 3)
    catalog = Catalog(store, "s")
    assert catalog.newest() == manifest and catalog.newest(manifest) == manifest
    assert [each.first for each in catalog.segments(manifest)] == [0, 10, 20]
    assert [each.first for each in catalog.segments(manifest, 9, 11)] == [0, 10]
    assert catalog.segments(manifest, 10, 10) == []


def test_only_one_of_many_publishes(store: Store) -> None:
    before, count = published(store, 1), 8
    barrier = Barrier(count)

    def publish(_: int) -> bool:
        barrier.wait(timeout=30)
        return Catalog(store, "s").publish(longer(before))

    with ThreadPoolExecutor(count) as pool:
        assert [*pool.map(publish, range(count))].count(True) == 1
    newest = Catalog(store, "s").newest()
    assert newest is not None and newest.version == 2


def test_a_writer_that_slept_for_years_does_not_publish(store: Store) -> None:
    old = published(store, 1)
    manifest = old
    catalog = Catalog(store, "s")
    for _ in range(3 * catalogs.KEPT_VERSIONS):
        manifest = longer(manifest)
        assert catalog.publish(manifest)
    # Its next version existed, and was removed since.
    assert store.get(f"source=s/_manifest/{2:020d}.json") is None
    assert not Catalog(store, "s").publish(longer(old))
    assert Catalog(store, "s").newest() == manifest


def test_years_of_versions_take_a_short_list_and_small_files(store: Store) -> None:
    manifest = empty()
    catalog = Catalog(store, "s")
    for _ in range(2 * manifests.MAX_SEGMENTS):
        manifest = longer(manifest)
        assert catalog.publish(manifest)
        newest = catalog.newest()
        assert newest is not None
        manifest = newest
    assert len(store.list("source=s/_manifest")) <= catalogs.KEPT_VERSIONS + catalogs._TIDY_EVERY + 1
    assert len(manifest.segments) <= manifests.MAX_SEGMENTS and len(manifest.pages) == 2
    again = Catalog(store, "s")
    assert [each.first for each in again.segments(manifest)] == [*range(0, manifest.end, 10)]
    assert [each.first for each in again.segments(manifest, 1_279, 1_281)] == [1_270, 1_280]
    # What no version uses is removed, but not what another writer may be about to publish.
    late = f"source=s/_pages/{manifest.version + 1:020d}-{'0' * 16}.json"
    store.put(late, b"")
    store.put(f"source=s/_pages/{1:020d}-{'1' * 16}.json", b"")
    for _ in range(catalogs._TIDY_EVERY):
        manifest = longer(manifest)
        assert catalog.publish(manifest)
    names = [name for name, _ in store.list("source=s/_pages")]
    assert late in names and len(names) == 3


def test_entries_below_the_history_are_left_out(store: Store) -> None:
    manifest = published(store, 3).successor(first=15)
    assert [each.first for each in Catalog(store, "s").segments(manifest)] == [10, 20]


def test_gaps_are_kept_once(store: Store) -> None:
    catalog, manifest = Catalog(store, "s"), published(store, 1)
    one, two = (Gap(position, datetime(2026, 1, 1, tzinfo=UTC), "lost") for position in (3, 7))
    assert catalog.keep_gaps(manifest, []) is None
    manifest = manifest.successor(gaps=catalog.keep_gaps(manifest, [one]))
    assert catalog.publish(manifest)
    assert catalog.keep_gaps(manifest, [one]) == manifest.gaps
    manifest = manifest.successor(gaps=catalog.keep_gaps(manifest, [two]))
    assert Catalog(store, "s").gaps(manifest) == [one, two]


@pytest.mark.parametrize("content", [b"junk", None])
def test_damage_is_named(tmp_path: Path, content: bytes | None) -> None:
    store = open_store(tmp_path)
    manifest = published(store, 2)
    gaps = Catalog(store, "s").keep_gaps(manifest, [Gap(3, datetime(2026, 1, 1, tzinfo=UTC), "lost")])
    assert gaps is not None
    manifest = manifest.successor(gaps=gaps)
    name = f"source=s/_pages/{gaps.name}"
    if content is None:
        store.delete([name])
    else:
        store.put(name, content)
        store.put(f"source=s/_manifest/{2:020d}.json", content)
        with pytest.raises(JournalCorrupt, match=r"2\.json: is not a manifest"):
            Catalog(store, "s").newest()
    with pytest.raises(JournalCorrupt, match="missing or damaged"):
        Catalog(store, "s").gaps(manifest)


def test_a_version_under_another_name_is_refused(store: Store) -> None:
    manifest = published(store, 1)
    store.put(f"source=s/_manifest/{7:020d}.json", manifests.encode(manifest))
    with pytest.raises(JournalCorrupt, match="is version 1"):
        Catalog(store, "s").newest()
