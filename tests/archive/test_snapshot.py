from __future__ import annotations

from pathlib import Path

from penstock.archive import SealOptions
from penstock.archive.snapshot import snapshot
from tests.archive.logs import fill, seal_all
from tests.journal.logs import SOURCE
from tests.serving.served import serving


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
