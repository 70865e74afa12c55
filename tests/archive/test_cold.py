from __future__ import annotations

from functools import partial
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from tests.archive.logs import catalog, fill, positions, seal_all
from tests.journal.logs import SOURCE, flip
from tests.objects.stores import numbers
from weirpool.archive import SealOptions, parquet
from weirpool.archive.catalog import Catalog
from weirpool.archive.cold import ColdFiles
from weirpool.archive.footer import RowGroup, row_groups
from weirpool.archive.manifest import Segment
from weirpool.errors import JournalCorrupt
from weirpool.journal import Journal
from weirpool.objects import Store, open_store


@pytest.fixture(autouse=True)
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "ROW_GROUP_ROWS", 100)


def sealed(path: Path, uri: str | None = None) -> tuple[Catalog, Segment]:
    fill(path, 1_000, 10)
    seal_all(path, SealOptions(target_bytes=1, store=uri))
    found = catalog(path, uri)
    manifest = found.newest()
    assert manifest is not None
    return found, manifest.segments[0]


def numbers_of(batches: list[pa.RecordBatch]) -> list[int]:
    return [position for batch in batches for position in batch["position"].to_pylist()]


def read(
    found: Catalog, segment: Segment, start: int, end: int, columns: list[str] | None = None
) -> list[pa.RecordBatch]:
    return list(ColdFiles(found.store).read(found.name(segment), segment, start, end, columns))


@pytest.mark.parametrize("where", ["folder", "memory"])
def test_any_range_is_read(tmp_path: Path, where: str) -> None:
    found, segment = sealed(tmp_path, f"memory://cold-{next(numbers)}" if where == "memory" else None)
    for start, end in ((0, 1_000), (0, 1), (999, 1_000), (99, 101), (250, 750), (400, 400)):
        assert numbers_of(read(found, segment, start, end)) == [*range(start, end)]


def test_columns_are_chosen(tmp_path: Path) -> None:
    found, segment = sealed(tmp_path)
    (batch,) = read(found, segment, 5, 8, ["data", "position"])
    assert batch.schema.names == ["data", "position"] and batch["data"].to_pylist() == [b"5", b"6", b"7"]
    (batch,) = read(found, segment, 5, 8, ["stream"])
    assert batch.schema.names == ["stream"] and batch.num_rows == 3


def test_of_an_object_only_what_is_needed_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, segment = sealed(tmp_path, f"memory://cold-{next(numbers)}")
    asked: list[int] = []
    get = found.store.get

    def count(name: str, start: int = 0, length: int | None = None) -> bytes | None:
        asked.append(length or segment.size)
        return get(name, start, length)

    monkeypatch.setattr(found.store, "get", count)
    files = ColdFiles(found.store)
    assert numbers_of(list(files.read(found.name(segment), segment, 450, 460, ["position"]))) == [*range(450, 460)]
    # A byte more than the footer has, to see that the file ends there.
    assert asked[0] == segment.footer_bytes + 1 and len(asked) == 2
    assert sum(asked[1:]) < segment.size / 20
    list(files.read(found.name(segment), segment, 450, 460, None))
    # The footer is known, and the columns of a row group lie side by side.
    assert len(asked) == 3


def damaged(store: Store, name: str, change: str) -> None:
    content = store.get(name)
    assert content is not None
    if change == "missing":
        store.delete([name])
        return
    flipped = bytearray(content)
    flipped[{"page": 200, "header": 4}.get(change, -20)] ^= 1
    store.put(name, {"cut": content[:-1], "longer": content + b"x", "empty": b""}.get(change, bytes(flipped)))


@pytest.mark.parametrize("where", ["folder", "memory"])
@pytest.mark.parametrize("change", ["missing", "cut", "longer", "empty", "page", "header", "footer"])
def test_damage_is_named_and_no_row_is_wrong(tmp_path: Path, where: str, change: str) -> None:
    found, segment = sealed(tmp_path, f"memory://cold-{next(numbers)}" if where == "memory" else None)
    name = found.name(segment)
    if change == "longer" and where == "memory":
        # Its first bytes are right, and more is never read.
        return
    damaged(found.store, name, change)
    with pytest.raises(JournalCorrupt, match=f"{name}: .*restore"):
        read(found, segment, 0, 1_000)


def test_rows_of_other_segments_are_not_taken_for_these(tmp_path: Path) -> None:
    one, segment = sealed(tmp_path / "one")
    store = open_store(tmp_path / "two")
    content = one.store.get(one.name(segment))
    assert content is not None
    store.put(f"source={SOURCE}/{500:020d}.parquet", content)
    moved = Segment(
        first=500, end=1_500, name=f"{500:020d}.parquet", rows=segment.rows, size=segment.size, raw_bytes=1,
        times=segment.times, head=segment.head, checksum=segment.checksum, chunks=segment.chunks,
        footer_bytes=segment.footer_bytes, footer=segment.footer,
    )  # fmt: skip
    with pytest.raises(JournalCorrupt):
        read(Catalog(store, SOURCE), moved, 500, 1_500)


def test_files_that_are_open_are_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weirpool.archive.cold.MAX_OPEN", 2)
    fill(tmp_path, *[5] * 6)
    seal_all(tmp_path)
    reader = Journal(tmp_path).reader(SOURCE)
    for _ in range(2):
        assert positions(reader) == [*range(30)]


def test_a_flipped_bit_in_the_data_of_a_local_file_is_named(tmp_path: Path) -> None:
    found, segment = sealed(tmp_path)
    flip(tmp_path / found.name(segment), segment.size // 2)
    with pytest.raises(JournalCorrupt, match="the file is damaged"):
        positions(Journal(tmp_path).reader(SOURCE))


def test_a_segment_has_no_more_parts_than_row_groups(tmp_path: Path) -> None:
    found, segment = sealed(tmp_path)
    files = ColdFiles(found.store)
    assert len(list(files.parts(segment, 100))) == 10
    # The loss of nearly all of its rows was accepted, or somebody says so.
    wide = msgspec.structs.replace(segment, end=1 << 62)
    parts = list(files.parts(wide, 100))
    assert len(parts) <= 10 and (parts[0][0], parts[-1][1]) == (0, 1 << 62)


def _until(limit: int, footer: memoryview, end: int) -> list[RowGroup]:
    return row_groups(footer, min(limit, end))


def test_columns_outside_of_the_file_are_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, segment = sealed(tmp_path)
    # As if the file ended before its columns do.
    for limit in (0, 4, segment.size // 4):
        monkeypatch.setattr("weirpool.archive.file.row_groups", partial(_until, limit))
        with pytest.raises(JournalCorrupt, match="a column is outside of the file"):
            read(found, segment, 0, 1)
