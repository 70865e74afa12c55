"""Footers and pages from others. A mistake can end the process, so one test starts another."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.archive.logs import SMALL, catalog, fill, seal_all
from tests.journal.logs import SOURCE
from weirpool.archive import SealOptions, footer, seal, verify_sealed
from weirpool.archive.file import SealedFile
from weirpool.archive.footer import check_pages, row_groups
from weirpool.archive.manifest import Segment, checksum
from weirpool.archive.parquet import TAIL_BYTES, Origin, footer_bytes, origin_of, segment_of, write
from weirpool.errors import JournalCorrupt, JournalError, JournalMismatch
from weirpool.journal.format import SCHEMA
from weirpool.objects import open_store

COLUMNS = SCHEMA.names
ORIGIN = Origin(log="log", first=0, end=3, head="0" * 64)
ROOT = Path(__file__).parent.parent.parent


def batch(count: int, data: bytes = b"data") -> pa.RecordBatch:
    columns = [
        pa.array(range(count), pa.int64()),
        pa.array([1] * count, SCHEMA.field("time").type),
        pa.array(["s"] * count),
        pa.array([data] * count, pa.binary()),
        pa.nulls(count, pa.binary()),
    ]
    return pa.record_batch(columns, schema=SCHEMA)


def file(count: int = 3, data: bytes = b"data") -> bytes:
    written, _ = write([batch(count, data)], ORIGIN)
    return bytes(written)


def described(content: bytes) -> list[footer.RowGroup]:
    size = footer_bytes(content)
    return row_groups(content[-size:-TAIL_BYTES], len(content) - size)


def entry(content: bytes, rows: int) -> Segment:
    """Return the entry that a manifest would have for a file."""
    table = SCHEMA.empty_table()
    found = segment_of(pa.py_buffer(content), ORIGIN, table, 1_000)
    return msgspec.structs.replace(found, rows=rows, end=rows, times=(1, 1))


def read(path: Path, content: bytes, segment: Segment) -> int:
    """Read a file from a folder as a sealed segment, and return the number of its rows."""
    (path / segment.name).write_bytes(content)
    sealed = SealedFile(open_store(path), segment.name, segment)
    return sum(sealed.rows(group, COLUMNS).num_rows for group in sealed.groups(0, 1 << 62))


def test_a_footer_says_what_pyarrow_says(tmp_path: Path) -> None:
    fill(tmp_path, 10, 300)
    seal(tmp_path, SOURCE, SealOptions(), force=True)
    (content,) = (path.read_bytes() for path in tmp_path.rglob("*.parquet"))
    metadata = pq.read_metadata(pa.BufferReader(content))
    found = described(content)
    assert len(found) == metadata.num_row_groups
    for number, group in enumerate(found):
        expected = metadata.row_group(number)
        assert (group.rows, group.raw_bytes) == (expected.num_rows, expected.total_byte_size)
        statistics = expected.column(0).statistics
        assert group.positions == (statistics.min, statistics.max)
        for column, chunk in enumerate(group.chunks):
            other = expected.column(column)
            start = other.dictionary_page_offset if other.has_dictionary_page else other.data_page_offset
            sizes = other.total_compressed_size, other.total_uncompressed_size
            assert (chunk.start, chunk.size, chunk.raw_bytes) == (start, *sizes)
            check_pages(content[chunk.start : chunk.start + chunk.size], chunk)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_cut_footers_are_damaged(count: int) -> None:
    content = file(count)
    size = footer_bytes(content)
    whole = content[-size:-TAIL_BYTES]
    assert len(row_groups(whole, len(content))) == (1 if count else 0)
    for end in range(len(whole)):
        with pytest.raises(ValueError):
            row_groups(whole[:end], len(content))


def test_a_row_group_that_asks_for_much_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A few kilobytes that become gigabytes.
    content = file(1, bytes(1 << 22))
    assert len(content) < 10_000
    segment = entry(content, 1)
    assert read(tmp_path, content, segment) == 1
    monkeypatch.setattr(footer, "MAX_GROUP_BYTES", 1 << 20)
    with pytest.raises(
        JournalCorrupt, match=f"{segment.name}: the file is damaged .a row group of 1 rows and .* large"
    ):
        read(tmp_path, content, segment)


def test_a_row_group_of_too_many_rows_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = file(3)
    segment = entry(content, 3)
    assert read(tmp_path, content, segment) == 3
    monkeypatch.setattr(footer, "MAX_GROUP_ROWS", 2)
    with pytest.raises(JournalCorrupt, match=f"{segment.name}: the file is damaged .a row group of 3 rows"):
        read(tmp_path, content, segment)


def test_pages_may_not_be_larger_than_the_footer_says() -> None:
    content = file(1, bytes(1 << 20))
    for chunk in described(content)[0].chunks:
        pages = content[chunk.start : chunk.start + chunk.size]
        check_pages(pages, chunk)
        smaller = footer.Chunk(chunk.start, chunk.size, chunk.raw_bytes - 1, b"", b"")
        with pytest.raises(ValueError, match="larger than its metadata says"):
            check_pages(pages, smaller)
        for end in range(1, 20):
            with pytest.raises(ValueError):
                check_pages(pages[:end], chunk)


@pytest.mark.parametrize(
    "data", [b"", b"\x00", b"\xff" * 20, b"\x19\xfc\xff\xff\xff\xff\x0f", b"\x1c" * 5_000, b"\x49\xfc\x01"]
)
def test_junk_is_no_footer(data: bytes) -> None:
    try:
        assert row_groups(data, 100) == []
    except ValueError:
        pass
    else:
        assert data == b"\x00"


def test_other_columns_are_refused(tmp_path: Path) -> None:
    for schema in (
        pa.schema([("position", pa.int64())]),
        pa.schema([(name, pa.string()) for name in COLUMNS]),
        pa.schema([*SCHEMA, pa.field("more", pa.int64())]),
    ):
        sink = pa.BufferOutputStream()
        pq.write_table(pa.Table.from_pylist([{}], schema), sink)
        content = bytes(sink.getvalue())
        size = footer_bytes(content)
        segment = msgspec.structs.replace(
            entry(file(), 3), size=len(content), footer_bytes=size, footer=checksum(content[-size:])
        )
        with pytest.raises(JournalCorrupt, match=f"{segment.name}: the file is damaged"):
            read(tmp_path, content, segment)
        with pytest.raises(JournalCorrupt, match="name: is not a sealed segment"):
            origin_of(pa.py_buffer(content), "name", 1_000)


def test_a_file_in_the_way_is_not_read_into_memory(tmp_path: Path) -> None:
    fill(tmp_path, 3, 4)
    store = catalog(tmp_path).store
    name = catalog(tmp_path).file(0)
    path = tmp_path / name
    with open(path, "wb") as huge:
        # It takes no space on the disk.
        huge.truncate(1 << 40)
    with pytest.raises(JournalMismatch, match=r"\.parquet: contains other rows than this log has"):
        seal(tmp_path, SOURCE, SMALL)
    path.write_bytes(file(1, bytes(1 << 25)))
    with pytest.raises(JournalCorrupt, match=r"\.parquet: is not a sealed segment .its rows are larger"):
        seal(tmp_path, SOURCE, SMALL)
    store.delete([name])
    assert seal(tmp_path, SOURCE, SMALL)


def test_verify_reads_no_more_than_the_manifest_says(tmp_path: Path) -> None:
    fill(tmp_path, 3, 4)
    seal_all(tmp_path)
    (path,) = tmp_path.rglob("*.parquet")
    with open(path, "r+b") as huge:
        huge.truncate(1 << 40)
    (problem,) = verify_sealed(tmp_path, SOURCE)
    assert path.name in problem and "differs from what was sealed" in problem


def changed(rng: random.Random, data: bytes) -> bytes:
    """Return bytes with some of them changed, inserted or removed."""
    found = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        at = rng.randrange(len(found))
        match rng.randrange(4):
            case 0:
                found[at] ^= 1 << rng.randrange(8)
            case 1:
                found[at] = rng.randrange(256)
            case 2:
                found[at:at] = rng.choice((b"\xff" * 9, b"\0", b"\xff\xff\xff\xff\x0f"))
            case _:
                del found[at : at + rng.randrange(1, 4)]
    return bytes(found)


def attempts(path: Path, seed: int, count: int) -> None:
    """Read files with changed footers and pages, and entries that fit them."""
    rng = random.Random(seed)
    good = file(20)
    start = len(good) - footer_bytes(good)
    for _ in range(count):
        pages, metadata = good[:start], good[start:-TAIL_BYTES]
        if rng.random() < 0.5:
            metadata = changed(rng, metadata)
        else:
            pages = changed(rng, pages)
        content = pages + metadata + len(metadata).to_bytes(4, "little") + b"PAR1"
        try:
            origin, rows = origin_of(pa.py_buffer(content), "name", 1_000)
            segment_of(pa.py_buffer(content), origin, rows, 1_000)
        except JournalError as error:
            assert str(error).startswith("name: ")
        try:
            segment = entry(content, 20)
        except ValueError:
            segment = msgspec.structs.replace(
                entry(good, 20), size=len(content), footer_bytes=len(metadata) + TAIL_BYTES,
                footer=checksum(content[len(pages) :]),
            )  # fmt: skip
        try:
            read(path, content, segment)
        except JournalError as error:
            assert segment.name in str(error)


def test_hostile_files_end_in_an_error_and_not_the_process(tmp_path: Path) -> None:
    lines = (
        "import pathlib, resource, sys",
        "from tests.archive.test_footer import attempts",
        "resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))",
        "attempts(pathlib.Path(sys.argv[1]), 7, 1500)",
    )
    process = subprocess.run([sys.executable, "-c", "\n".join(lines), tmp_path], cwd=ROOT, timeout=100)
    assert process.returncode == 0
