from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.archive.logs import fill
from tests.journal.logs import SOURCE
from weirpool.archive.footer import row_groups
from weirpool.archive.manifest import checksum
from weirpool.archive.parquet import (
    ROW_GROUP_ROWS,
    TAIL_BYTES,
    Origin,
    chunk_checksum,
    footer_bytes,
    gap_text,
    origin_of,
    same_rows,
    segment_of,
    write,
)
from weirpool.errors import JournalCorrupt
from weirpool.journal import JournalReader
from weirpool.journal.format import SCHEMA
from weirpool.journal.gaps import Gap, decode

ORIGIN = Origin(
    log="log", first=0, end=12, head="a" * 64, gaps=gap_text([Gap(3, datetime(2026, 1, 1, tzinfo=UTC), "x")])
)


def batches(path: Path) -> list[pa.RecordBatch]:
    fill(path, 3, 4, 5)
    return list(JournalReader(path, SOURCE).read(0, 12))


def test_a_file_says_where_its_rows_are_from(tmp_path: Path) -> None:
    rows = batches(tmp_path)
    file, groups = write(rows, ORIGIN)
    origin, table = origin_of(file, "f", 1_000)
    assert origin == ORIGIN
    assert decode(origin.gaps.encode(), "f")[0].position == 3
    assert table.equals(pa.Table.from_batches(rows))
    segment = segment_of(file, origin, table, 999)
    assert (segment.first, segment.end, segment.rows, segment.raw_bytes, segment.size) == (0, 12, 12, 999, file.size)
    assert segment.footer == checksum(memoryview(file)[-footer_bytes(file) :])
    assert same_rows(file, groups)


def test_other_rows_are_noticed(tmp_path: Path) -> None:
    rows = batches(tmp_path)
    file, groups = write(rows, ORIGIN)
    table = groups[0]
    for column in range(table.num_columns):
        changed = table.column(column).to_pylist()
        changed[5] = changed[4] if changed[5] != changed[4] else None
        other = table.set_column(column, table.field(column), pa.chunked_array([changed], table.field(column).type))
        assert not same_rows(file, [other]), table.field(column).name
    assert not same_rows(file, [table.slice(1)])
    assert not same_rows(file, [])
    assert not same_rows(file, [table, table])


def test_no_rows_are_a_file_too() -> None:
    file, groups = write([], ORIGIN)
    origin, table = origin_of(file, "f", 1_000)
    assert groups == [] and table.num_rows == 0 and same_rows(file, groups)
    assert segment_of(file, origin, table, 0).times is None


STREAMS = {
    "one": [["a"] * 3],
    "one in each batch": [["a"] * ROW_GROUP_ROWS, ["b"] * 5, ["a"] * 5],
    "empty names": [["", ""], [""]],
    "no rows": [[]],
    "missing": [[None, None]],
    "some missing": [["a", None], [None, "b"]],
    "one, then missing": [["a"], [None]],
    # More than Parquet keeps in a dictionary.
    "many": [[f"{number:020d}" for number in range(ROW_GROUP_ROWS + 1)]],
}


def with_streams(streams: list[str | None]) -> pa.RecordBatch:
    rows = len(streams)
    times = pa.array([5] * rows, SCHEMA.field("time").type)
    columns = [pa.array(range(rows), pa.int64()), times, pa.array(streams, pa.string())]
    return pa.RecordBatch.from_arrays([*columns, *(pa.nulls(rows, pa.binary()) for _ in range(2))], schema=SCHEMA)


@pytest.mark.parametrize("streams", STREAMS.values(), ids=STREAMS)
def test_streams_are_text_to_every_reader(streams: list[list[str | None]]) -> None:
    rows = [with_streams(each) for each in streams]
    file, groups = write(rows, ORIGIN)
    assert same_rows(file, groups)
    assert pq.read_table(pa.BufferReader(file)).equals(pa.Table.from_batches(rows))
    assert origin_of(file, "f", 1_000)[1].equals(pa.Table.from_batches(rows))


@pytest.mark.parametrize("streams", STREAMS.values(), ids=STREAMS)
def test_another_stream_is_noticed(streams: list[list[str | None]]) -> None:
    file, _ = write([with_streams(each) for each in streams], ORIGIN)
    changed = [*streams[:-1], [*streams[-1][:-1], "other"]]
    assert not same_rows(file, write([with_streams(each) for each in changed], ORIGIN)[1])


@pytest.mark.parametrize("content", [b"", b"junk", b"PAR1" + bytes(100) + b"PAR1"])
def test_what_is_no_sealed_segment_is_refused(content: bytes) -> None:
    with pytest.raises(JournalCorrupt, match="f: is not a sealed segment"):
        origin_of(pa.py_buffer(content), "f", 1_000)


def test_every_byte_of_the_columns_has_a_checksum(tmp_path: Path) -> None:
    file, _ = write(batches(tmp_path), ORIGIN)
    size = footer_bytes(file)
    (group,) = row_groups(memoryview(file)[-size:-TAIL_BYTES], file.size - size)
    ranges = [(chunk.start, chunk.size) for chunk in group.chunks]
    ends = [start + size for start, size in ranges]
    assert ranges[0][0] == len(b"PAR1") and [start for start, _ in ranges[1:]] == ends[:-1]
    assert ends[-1] + footer_bytes(file) == file.size
    checksums = segment_of(file, *origin_of(file, "f", 1_000), 0).chunks
    assert checksums == b"".join(chunk_checksum(file.slice(*each)) for each in ranges)
