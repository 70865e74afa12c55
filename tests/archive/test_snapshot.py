from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.archive.changes import OTHER_FILES, changed_rows
from tests.archive.logs import fill, seal_all
from tests.journal.logs import SOURCE
from tests.objects.stores import CREDENTIALS, new_uri, numbers, s3_server
from tests.serving.served import serving
from weirpool.archive import SealOptions
from weirpool.archive.snapshot import snapshot
from weirpool.errors import JournalCorrupt
from weirpool.objects import open_store


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with s3_server() as started:
        yield started


@pytest.fixture(params=["folder", "s3", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URI of an empty store."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    if request.param == "s3":
        return new_uri(request.getfixturevalue("endpoint"))
    return str(tmp_path / "store") if request.param == "folder" else f"memory://snapshot-{next(numbers)}"


def test_a_snapshot_has_the_files_and_the_rows_after_them(tmp_path: Path) -> None:
    fill(tmp_path, 10, 10, 10)
    before = snapshot(tmp_path, SOURCE)
    assert (before.files, before.store, before.first, before.sealed_end, before.end) == ((), "", 0, 0, 30)
    seal_all(tmp_path)
    after = snapshot(tmp_path, SOURCE)
    assert (after.store, after.first, after.sealed_end, after.end) == (str(tmp_path), 0, 20, 30)
    assert [name for name, _ in after.files_between(5, 10)] == [f"source=s/{0:020d}.parquet"]
    assert len(after.files_between(9, 11)) == 2 and after.files_between(20, 30) == []
    assert after.uuid == before.uuid


def test_local_copies_do_not_hide_the_files(tmp_path: Path) -> None:
    fill(tmp_path, 10, 10, 10)
    seal_all(tmp_path, SealOptions(target_bytes=1, local_bytes=1 << 30))
    assert snapshot(tmp_path, SOURCE).sealed_end == 20


def test_a_collector_reads_its_files_itself(tmp_path: Path) -> None:
    fill(tmp_path, 10, 10, 10)
    seal_all(tmp_path)
    with serving(tmp_path) as served:
        found = snapshot(served.url, SOURCE)
    assert (found.files, found.store, found.first, found.sealed_end, found.end) == ((), "", 0, 0, 30)
    assert found.uuid == snapshot(tmp_path, SOURCE).uuid


def test_each_file_must_be_the_one_that_was_sealed(tmp_path: Path, place: str) -> None:
    fill(tmp_path, 500, 400, 10)
    seal_all(tmp_path, SealOptions(target_bytes=1, store=place))
    found = snapshot(tmp_path, SOURCE)
    found.check()
    store = open_store(place)
    (first, _), (second, _) = found.files
    content, neighbour = store.get(first), store.get(second)
    assert content is not None and neighbour is not None
    for what, change in OTHER_FILES.items():
        changed = change(content, neighbour)
        if changed is None:
            store.delete([first])
        else:
            store.put(first, changed)
        with pytest.raises(JournalCorrupt, match=f"{first}: .*; restore this file"):
            found.check()
            pytest.fail(what)
        store.put(first, content)
    found.check()
    store.put(first, next(changed_rows(content)))
    # Readers notice these.
    found.check()


def test_a_log_without_files_has_none_to_check(tmp_path: Path) -> None:
    fill(tmp_path, 10, 10)
    found = snapshot(tmp_path, SOURCE)
    assert not found.files
    found.check()
