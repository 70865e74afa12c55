from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.archive.logs import SMALL, broken, catalog, fill, glob_positions, positions, seal_all
from tests.journal.logs import SOURCE, append, flip, segment
from tests.objects.stores import numbers
from weirpool.archive import SealOptions, seal
from weirpool.archive.catalog import Catalog
from weirpool.archive.parquet import Origin, write
from weirpool.archive.sealing import due
from weirpool.errors import JournalCorrupt, JournalMismatch, JournalMissing, StoreError
from weirpool.journal import Journal, JournalReader, JournalWriter
from weirpool.journal.layout import log_folder
from weirpool.journal.sealed import load_sealed, store_uri
from weirpool.objects import open_store


def memory() -> str:
    return f"memory://seal-{next(numbers)}"


def test_all_but_the_last_segment_are_sealed(tmp_path: Path) -> None:
    folder = fill(tmp_path, 3, 4, 5)
    sealed = seal(tmp_path, SOURCE, SMALL)
    assert sealed is not None and (sealed.first, sealed.end) == (0, 3)
    assert seal_all(tmp_path) == 1
    assert seal(tmp_path, SOURCE, SMALL, force=True) is None
    assert sorted(path.name for path in folder.glob("*.*") if path.suffix in (".arrows", ".parquet")) == [
        f"{0:020d}.parquet", f"{3:020d}.parquet", f"{7:020d}.arrows",
    ]  # fmt: skip
    assert broken(tmp_path, 12, set()) == []


@pytest.mark.parametrize("force", [False, True])
def test_what_is_due_is_what_will_be_sealed(tmp_path: Path, force: bool) -> None:
    folder = fill(tmp_path, *[10] * 8)
    options = SealOptions(target_bytes=3 * segment(folder).stat().st_size, max_age=1e9)
    files = []
    for _ in range(2):
        before = sorted(tmp_path.rglob("*"))
        planned = due(tmp_path, SOURCE, options, force=force)
        assert sorted(tmp_path.rglob("*")) == before
        sealed = []
        while (file := seal(tmp_path, SOURCE, options, force=force)) is not None:
            sealed.append((file.first, file.end, file.raw_bytes))
        assert [(each.first, each.end, each.size) for each in planned] == sealed
        files.append(len(sealed))
        fill(tmp_path, 1)
    assert files == ([3, 1] if force else [2, 0])


def test_the_file_says_what_it_contains(tmp_path: Path) -> None:
    fill(tmp_path, 3, 4, 5)
    head = JournalReader(tmp_path, SOURCE).head(7)
    seal(tmp_path, SOURCE, SealOptions(target_bytes=1 << 30), force=True)
    manifest = catalog(tmp_path).newest()
    assert manifest is not None
    (entry,) = manifest.segments
    path = tmp_path / "source=s" / entry.name
    assert (entry.first, entry.end, entry.rows, entry.size, entry.head) == (0, 7, 7, path.stat().st_size, head)
    assert entry.times is not None and entry.times[0] <= entry.times[1]
    table = pq.read_table(path, partitioning=None)
    assert table.column_names == ["position", "time", "stream", "data", "metadata"]
    group = pq.ParquetFile(path).metadata.row_group(0)
    assert [group.column(number).statistics is not None for number in range(5)] == [True, True, False, False, False]
    assert {group.column(number).compression for number in range(5)} == {"ZSTD"}


def test_small_segments_are_sealed_together_when_they_are_enough(tmp_path: Path) -> None:
    folder = fill(tmp_path, *[10] * 8)
    size = segment(folder).stat().st_size
    options = SealOptions(target_bytes=3 * size, max_age=1e9)
    first = seal(tmp_path, SOURCE, options)
    assert first is not None and 20 < first.end <= 40
    assert first.raw_bytes >= 3 * size
    seal_all(tmp_path, options)
    assert broken(tmp_path, 80, set()) == []


def test_small_segments_wait_until_they_are_old(tmp_path: Path) -> None:
    folder = fill(tmp_path, 3, 4)
    now = os.stat(segment(folder)).st_mtime
    options = SealOptions(max_age=60)
    assert seal(tmp_path, SOURCE, options, clock=lambda: now + 59) is None
    assert seal(tmp_path, SOURCE, options, clock=lambda: now + 61) is not None


def test_nothing_is_asked_of_the_store_when_nothing_is_due(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, 3, 4)
    seal_all(tmp_path)

    def fail(*arguments: object) -> None:
        raise AssertionError("the store was asked")

    monkeypatch.setattr(Catalog, "newest", fail)
    assert seal(tmp_path, SOURCE, SMALL) is None


def test_gaps_stay(tmp_path: Path) -> None:
    uri = memory()
    fill(tmp_path, 3, 4, 5, 6, gaps=(1, 3))
    seal_all(tmp_path, SealOptions(target_bytes=1, store=uri))
    assert broken(tmp_path, 18, {3, 12}, uri) == []
    # Without the folder, too.
    assert [gap.position for gap in Journal(uri).reader(SOURCE).gaps()] == [3, 12]


def test_a_store_has_the_rows_and_the_folder_names_it(tmp_path: Path) -> None:
    uri = memory()
    folder = fill(tmp_path, 3, 4, 5)
    seal_all(tmp_path, SealOptions(target_bytes=1, store=uri))
    assert store_uri(tmp_path) == uri
    assert not list(folder.glob("*.parquet"))
    assert glob_positions(open_store(uri)) == [*range(7)]
    assert positions(Journal(tmp_path).reader(SOURCE)) == [*range(12)]
    assert Journal(uri).sources() == [SOURCE]
    assert positions(Journal(uri).reader(SOURCE)) == [*range(7)]
    with pytest.raises(JournalMismatch, match="are in memory"):
        seal(tmp_path, SOURCE, SealOptions(store=memory()))


def test_readers_no_longer_trim(tmp_path: Path) -> None:
    folder = fill(tmp_path, 3, 4, 5)
    seal(tmp_path, SOURCE, SealOptions(max_age=1e9))
    assert Journal(tmp_path).trim(SOURCE, 12, retain_bytes=0) == 0
    assert len(list(folder.glob("*.arrows"))) == 3
    seal_all(tmp_path)
    assert broken(tmp_path, 12, set()) == []


def test_nothing_is_deleted_before_it_is_sealed(tmp_path: Path) -> None:
    folder = fill(tmp_path, 3, 4, 5)
    seal(tmp_path, SOURCE, SealOptions(target_bytes=1, local_bytes=1 << 30))
    # The sealed rows stay.
    assert Journal(tmp_path).delete(SOURCE, 12) == 0
    assert len(list(folder.glob("*.arrows"))) == 2 and broken(tmp_path, 12, set()) == []


def test_local_copies_may_stay(tmp_path: Path) -> None:
    folder = fill(tmp_path, *[10] * 5)
    seal_all(tmp_path, SealOptions(target_bytes=1, local_bytes=1 << 30))
    assert len(list(folder.glob("*.arrows"))) == 5
    assert broken(tmp_path, 50, set()) == []
    seal_all(tmp_path, SMALL)
    fill(tmp_path, 10)
    seal_all(tmp_path)
    assert len(list(folder.glob("*.arrows"))) == 1


def test_a_writer_goes_on(tmp_path: Path) -> None:
    with JournalWriter.open(tmp_path, SOURCE, segment_bytes=1, fsync=False) as writer:
        for count in (3, 4, 5):
            append(writer, count)
            seal_all(tmp_path)
    with JournalWriter.open(tmp_path, SOURCE, segment_bytes=1, fsync=False) as writer:
        assert writer.position == 12 and writer.state == b"at 12"
        append(writer, 6)
    seal_all(tmp_path)
    assert broken(tmp_path, 18, set()) == []
    assert Journal(tmp_path).verify()[SOURCE].problems == []


def test_rows_in_a_store_leave_the_budget(tmp_path: Path) -> None:
    with JournalWriter.open(tmp_path, SOURCE, segment_bytes=1, fsync=False) as writer:
        append(writer, 30, 40, 50)
        before = writer.used_bytes
        seal_all(tmp_path, SealOptions(target_bytes=1, store=memory()))
        writer.refresh()
        assert 0 < writer.used_bytes < before / 2


def test_rows_that_are_only_in_the_folder_stay_in_the_budget(tmp_path: Path) -> None:
    with JournalWriter.open(tmp_path, SOURCE, segment_bytes=1, fsync=False) as writer:
        append(writer, 30, 40, 50)
        before = writer.used_bytes
    seal_all(tmp_path)
    with JournalWriter.open(tmp_path, SOURCE, segment_bytes=1, fsync=False) as writer:
        assert writer.used_bytes == before
        Journal(tmp_path).trim(SOURCE, 70)
        writer.refresh()
        assert 0 < writer.used_bytes < before / 2


def test_a_damaged_segment_is_not_sealed(tmp_path: Path) -> None:
    folder = fill(tmp_path, 10, 10, 10)
    flip(segment(folder, 10), segment(folder, 10).stat().st_size - 3)
    with pytest.raises(JournalCorrupt, match="positions 10 to 19"):
        seal_all(tmp_path)
    assert len(list(folder.glob("*.arrows"))) == 2
    assert positions(Journal(tmp_path).reader(SOURCE), 0, 10) == [*range(10)]


def test_rows_that_were_accepted_as_lost_are_not_missed(tmp_path: Path) -> None:
    folder = fill(tmp_path, 10, 10, 10)
    flip(segment(folder, 10), segment(folder, 10).stat().st_size - 3)
    Journal(tmp_path).repair(SOURCE, apply=True, accept_loss=True)
    seal_all(tmp_path)
    reader = Journal(tmp_path).reader(SOURCE)
    assert [p for batch in reader.read(0, 30) for p in batch["position"].to_pylist()] == [*range(10), *range(20, 30)]
    assert [(gap.position, gap.lost) for gap in reader.gaps()] == [(20, (10, 20))]


def test_a_file_that_differs_from_its_rows_is_not_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = fill(tmp_path, 3, 4)
    monkeypatch.setattr("weirpool.archive.sealing.same_rows", lambda file, groups: False)
    with pytest.raises(JournalCorrupt, match="positions 0 to 2 differ"):
        seal_all(tmp_path)
    assert len(list(folder.glob("*.arrows"))) == 2 and not list(folder.glob("*.parquet"))


def orphan(path: Path, store: str, end: int, log: str | None = None, rows: int | None = None) -> None:
    """Write the file of a sealer that died before it published."""
    reader = JournalReader(path, SOURCE)
    origin = Origin(log=log or reader.uuid, first=0, end=end, head=reader.head(end) or "")
    file, _ = write(reader.read(0, rows or end), origin)
    open_store(store).put(f"source=s/{0:020d}.parquet", memoryview(file))


def test_an_orphan_is_adopted(tmp_path: Path) -> None:
    uri = memory()
    fill(tmp_path, 3, 4, 5, 6)
    orphan(tmp_path, uri, 7)
    assert seal_all(tmp_path, SealOptions(target_bytes=1, store=uri)) == 2
    assert broken(tmp_path, 18, set(), uri) == []


def test_an_orphan_of_another_log_is_refused(tmp_path: Path) -> None:
    for number, changes in enumerate(({"log": "6a2f1a7e-0000-4000-8000-000000000000"}, {"rows": 3})):
        uri, path = memory(), tmp_path / str(number)
        folder = fill(path, 3, 4, 5)
        orphan(path, uri, 7, **changes)
        with pytest.raises(JournalMismatch, match="contains other rows"):
            seal_all(path, SealOptions(target_bytes=1, store=uri))
        assert len(list(folder.glob("*.arrows"))) == 3


def test_something_else_under_the_name_is_refused(tmp_path: Path) -> None:
    uri = memory()
    fill(tmp_path, 3, 4)
    open_store(uri).put(f"source=s/{0:020d}.parquet", b"junk")
    with pytest.raises(JournalCorrupt, match="is not a sealed segment"):
        seal_all(tmp_path, SealOptions(target_bytes=1, store=uri))


def test_another_log_of_the_name_is_refused(tmp_path: Path) -> None:
    uri = memory()
    for name in ("one", "two"):
        fill(tmp_path / name, 3, 4)
    seal_all(tmp_path / "one", SealOptions(target_bytes=1, store=uri))
    with pytest.raises(JournalMismatch, match="those of log"):
        seal_all(tmp_path / "two", SealOptions(target_bytes=1, store=uri))


def test_rows_that_were_trimmed_before_are_missed(tmp_path: Path) -> None:
    folder = fill(tmp_path, 3, 4, 5, 6)
    seal(tmp_path, SOURCE, SMALL)
    (folder / "_sealed").unlink()
    Journal(tmp_path).trim(SOURCE, 12, retain_bytes=0)
    with pytest.raises(JournalCorrupt, match="rows 3 to 11 were trimmed and not sealed"):
        seal_all(tmp_path)


def test_a_damaged_record_of_sealing_is_written_again(tmp_path: Path) -> None:
    folder = fill(tmp_path, 3, 4, 5)
    seal(tmp_path, SOURCE, SMALL)
    (folder / "_sealed").write_bytes(b"junk")
    with pytest.raises(JournalCorrupt, match="seal the log again"):
        Journal(tmp_path).reader(SOURCE)
    seal_all(tmp_path)
    assert broken(tmp_path, 12, set()) == []
    state = load_sealed(log_folder(tmp_path, SOURCE))
    assert state is not None and state.end == 7


def test_a_log_that_does_not_exist_is_missing(tmp_path: Path) -> None:
    with pytest.raises(JournalMissing):
        seal(tmp_path, SOURCE)


def test_a_store_without_conditional_writes_is_refused(tmp_path: Path) -> None:
    fill(tmp_path, 3, 4)
    with pytest.raises(StoreError):
        seal(tmp_path, SOURCE, SealOptions(target_bytes=1, store="nowhere://x"))


def test_large_rows_are_written_in_small_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weirpool.archive.parquet.ROW_GROUP_BYTES", 2_000)
    monkeypatch.setattr("weirpool.archive.parquet.ROW_GROUP_ROWS", 7)
    fill(tmp_path, 50, 10)
    seal_all(tmp_path)
    manifest = catalog(tmp_path).newest()
    assert manifest is not None
    assert pq.ParquetFile(tmp_path / "source=s" / manifest.segments[0].name).num_row_groups >= 8
    reader = Journal(tmp_path).reader(SOURCE)
    for start, end in ((0, 60), (13, 14), (6, 8), (49, 51)):
        assert positions(reader, start, end) == [*range(start, end)]
    assert isinstance(reader.read(0, 60).__next__(), pa.RecordBatch)
