from __future__ import annotations

from pathlib import Path

import pytest

from tests.archive.logs import SMALL, fill, positions, seal_all
from tests.journal.logs import SOURCE
from tests.objects.stores import CREDENTIALS, new_uri, numbers, s3_server
from weirpool.archive import ArchiveReader, SealOptions, parquet, seal, sealedlog
from weirpool.errors import DataLost, JournalCorrupt, JournalMismatch, JournalMissing, LocalError
from weirpool.journal import Journal, JournalReader
from weirpool.journal.layout import bytes_between
from weirpool.objects import open_store


def both(path: Path, *, files: int = 2) -> ArchiveReader:
    """Return a reader of a log of 50 rows, some of them sealed."""
    fill(path, 10, 10, 10, 10, 10, gaps=(1, 3))
    for _ in range(files):
        seal(path, SOURCE, SMALL)
    return ArchiveReader(path, SOURCE)


def test_every_range_is_the_same_as_before_sealing(tmp_path: Path) -> None:
    before = both(tmp_path, files=0)
    expected = {(a, b): positions(before, a, b) for a in range(0, 51, 7) for b in range(a, 51, 5)}
    for _ in range(4):
        seal(tmp_path, SOURCE, SMALL)
        for reader in (before, ArchiveReader(tmp_path, SOURCE)):
            assert {span: positions(reader, *span) for span in expected} == expected
            assert (reader.first, reader.end) == (0, 50)


def test_columns_are_those_asked_for_in_either_form(tmp_path: Path) -> None:
    reader = both(tmp_path)
    for columns in (["data"], ["position"], ["metadata", "position", "time"]):
        batches = list(reader.read(5, 45, columns=columns))
        assert all(batch.schema.names == columns for batch in batches)
        assert sum(batch.num_rows for batch in batches) == 40
    assert [each for batch in reader.read(18, 22, columns=["data"]) for each in batch["data"].to_pylist()] == [
        b"18", b"19", b"20", b"21",
    ]  # fmt: skip


def test_sizes_are_those_of_arrow(tmp_path: Path) -> None:
    fresh = both(tmp_path, files=0)
    extents = [(each.first, each.end, each.size) for each in fresh.segments()]
    reader = both(tmp_path / "x")
    assert [(each.first, each.end) for each in reader.segments()] == [each[:2] for each in extents]
    assert all(abs(one.size - two[2]) < 50 for one, two in zip(reader.segments(), extents, strict=True))
    assert reader.segments()[0].times is not None
    assert reader.bytes_between(5, 45) == bytes_between(reader.segments(), 5, 45)
    assert reader.bytes_between(25, 45) > 0


def test_ranges_are_split_over_both_forms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (sealedlog, parquet):
        monkeypatch.setattr(module, "ROW_GROUP_ROWS", 4)
    reader = both(tmp_path)
    assert reader.split(0, 50, max_rows=8)[:4] == [(0, 8), (8, 14), (14, 20), (20, 25)]
    parts = reader.split(3, 27)
    assert (parts[0][0], parts[-1][1]) == (3, 27)
    assert [position for part in reader.split(3, 47, max_rows=3) for position in positions(reader, *part)] == [
        *range(3, 47)
    ]
    assert reader.split(7, 7) == []
    with pytest.raises(LocalError, match="at least 1"):
        reader.split(0, 5, max_rows=0)
    assert reader.locate(5) == (4, 8) and reader.locate(25) == (20, 30)


def test_gaps_are_those_of_both_forms(tmp_path: Path) -> None:
    reader = both(tmp_path)
    assert [gap.position for gap in reader.gaps()] == [10, 30]
    assert [gap.position for gap in reader.gaps(0, 30)] == [10]
    assert [gap.position for gap in reader.gaps(30, 40)] == [30]
    assert reader.damage() == [] and reader.damage(0, 10) == []


def test_positions_that_are_not_there_are_named(tmp_path: Path) -> None:
    reader = both(tmp_path)
    with pytest.raises(DataLost, match="positions 50 to 59 are not in the log, which holds 0 to 49"):
        list(reader.read(40, 60))
    for start, end in ((-1, 3), (5, 3)):
        with pytest.raises(LocalError, match="there is no range"):
            reader.read(start, end)
    with pytest.raises(DataLost):
        reader.locate(50)


def test_a_missing_file_is_damage_and_later_rows_are_readable(tmp_path: Path) -> None:
    reader = both(tmp_path)
    (tmp_path / f"source=s/{10:020d}.parquet").unlink()
    with pytest.raises(JournalCorrupt, match=r"10\.parquet: the file is missing"):
        positions(reader)
    assert positions(reader, 0, 10) == [*range(10)] and positions(reader, 20, 50) == [*range(20, 50)]


def test_refreshing_costs_no_look_into_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = both(tmp_path)

    def fail(*arguments: object) -> None:
        raise AssertionError("the manifest was read")

    monkeypatch.setattr("weirpool.archive.catalog.Catalog.newest", fail)
    fill(tmp_path, 10)
    reader.refresh()
    assert reader.end == 60 and positions(reader, 0, 60) == [*range(60)]


def test_a_store_alone_is_read(tmp_path: Path) -> None:
    uri = f"memory://reader-{next(numbers)}"
    fill(tmp_path, 10, 10, 10)
    seal(tmp_path, SOURCE, SealOptions(target_bytes=1, store=uri))
    reader = ArchiveReader(uri, SOURCE)
    assert (reader.first, reader.end, reader.uuid) == (0, 10, JournalReader(tmp_path, SOURCE).uuid)
    seal_all(tmp_path, SealOptions(target_bytes=1, store=uri))
    assert reader.end == 10
    reader.refresh()
    assert reader.end == 20 and positions(reader) == [*range(20)]
    assert reader.split(0, 20) == [(0, 20)] and [each.end for each in reader.segments()] == [10, 20]
    assert reader.damage() == [] and reader.gaps() == []


def test_a_store_without_the_log_has_no_source(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(JournalMissing, match="no journal in this store"):
        Journal(f"memory://reader-{next(numbers)}").sources()


def test_sealed_segments_of_another_log_are_refused(tmp_path: Path) -> None:
    uri = f"memory://reader-{next(numbers)}"
    fill(tmp_path, 10, 10, 10)
    seal_all(tmp_path, SealOptions(target_bytes=1, store=uri))
    manifest = f"source=s/_manifest/{2:020d}.json"
    store = open_store(uri)
    fill(tmp_path / "other", 10, 10, 10)
    another = f"memory://reader-{next(numbers)}"
    seal_all(tmp_path / "other", SealOptions(target_bytes=1, store=another))
    foreign = open_store(another).get(manifest)
    assert foreign is not None
    store.put(manifest, foreign)
    with pytest.raises(JournalMismatch, match="are those of log"):
        ArchiveReader(tmp_path, SOURCE)


def test_a_bucket_holds_the_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(parquet, "ROW_GROUP_ROWS", 4)
    with s3_server() as endpoint:
        uri = new_uri(endpoint)
        fill(tmp_path, 10, 10, 10, gaps=(1,))
        seal_all(tmp_path, SealOptions(target_bytes=1, store=uri))
        assert not list(tmp_path.glob("source=*/*.parquet"))
        assert positions(Journal(tmp_path).reader(SOURCE)) == [*range(30)]
        assert Journal(uri).sources() == [SOURCE]
        reader = Journal(uri).reader(SOURCE)
        assert positions(reader, 3, 17) == [*range(3, 17)]
        assert [gap.position for gap in reader.gaps()] == [10]
