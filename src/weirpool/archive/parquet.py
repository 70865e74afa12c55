"""A sealed segment as a Parquet file: written in memory, and checked before anybody sees it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import xxhash

from ..errors import JournalCorrupt
from ..journal import gaps
from ..journal.format import SCHEMA
from ..journal.gaps import Gap
from .footer import RowGroup, check_pages, row_groups
from .manifest import FORMAT, Segment, checksum, segment_file

__all__ = [
    "CHUNK_BYTES",
    "ROW_GROUP_ROWS",
    "TAIL_BYTES",
    "Origin",
    "chunk_checksum",
    "footer_bytes",
    "gap_text",
    "max_bytes",
    "origin_of",
    "same_rows",
    "segment_of",
    "write",
]

ROW_GROUP_ROWS: Final = 131_072
"""What a reader decodes at once, and what statistics are about."""
ROW_GROUP_BYTES: Final = 64 * 1024 * 1024
"""The same for rows of many kilobytes."""
CHUNK_BYTES: Final = 8
"""The size of the checksum of a column of a row group."""
_SMALL_BYTES: Final = 1 << 24
"""Footers and dictionaries: a file of few rows may be larger than they are."""
_KEY: Final = "weirpool"
_MAGIC: Final = b"PAR1"
TAIL_BYTES: Final = 8
"""The length of the metadata, and the magic."""
_NAMES: Final = pa.dictionary(pa.int32(), pa.string())
# Nearly always all rows of a log have one stream: Parquet would hash its name, and copy it back, for each of them.
_ENCODED: Final = SCHEMA.set(SCHEMA.get_field_index("stream"), pa.field("stream", _NAMES))
"""`SCHEMA` with the streams as Parquet stores them. Readers without this schema see `SCHEMA`."""


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """What a file says about its rows, in the entry ``weirpool`` of its metadata."""

    weirpool: int = FORMAT
    log: str
    """The UUID of the log."""
    first: int
    """The position of the first row."""
    end: int
    """The position after the last one."""
    head: str
    """The digest of the last batch of these rows in the log's chain."""
    gaps: str = ""
    """The losses just before or between these rows, in the format of ``_gaps``."""


def write(batches: Iterable[pa.RecordBatch], origin: Origin) -> tuple[pa.Buffer, list[pa.Table]]:
    """Return a Parquet file with these rows, and the rows of each row group, for `same_rows`."""
    sink = pa.BufferOutputStream()
    groups = []
    with pq.ParquetWriter(
        sink,
        _ENCODED,
        # It would tell readers that streams are dictionaries. Parquet's own types are exactly those of `SCHEMA`.
        store_schema=False,
        compression="zstd",
        # Higher levels cost a third more time, and save little.
        compression_level=1,
        use_dictionary=["stream", "time"],
        column_encoding={"position": "DELTA_BINARY_PACKED"},
        write_statistics=["position", "time"],
        write_page_checksum=True,
    ) as writer:
        for group in map(_encoded, _groups(batches)):
            writer.write_table(group, row_group_size=max(1, group.num_rows))
            groups.append(group)
        writer.add_key_value_metadata({_KEY: msgspec.json.encode(origin).decode()})
    return sink.getvalue(), groups


def _groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield the rows in tables of the size of a row group."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        for part in _parts(batch):
            if waiting and (rows + part.num_rows > ROW_GROUP_ROWS or size + part.nbytes > ROW_GROUP_BYTES):
                yield pa.Table.from_batches(waiting, SCHEMA)
                waiting, rows, size = [], 0, 0
            waiting.append(part)
            rows += part.num_rows
            size += part.nbytes
    if waiting:
        yield pa.Table.from_batches(waiting, SCHEMA)


def _encoded(group: pa.Table) -> pa.Table:
    """Return the rows of a row group with the type `_ENCODED`."""
    streams = group["stream"]
    # Compares the bytes of all names at once, which is ten times as fast as to hash them.
    if streams.null_count == 0 and streams.slice(1).equals(streams.slice(0, len(streams) - 1)):
        names = pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), len(streams)), streams[:1].chunk(0))
    else:
        names = streams.dictionary_encode()
    return group.set_column(group.schema.get_field_index("stream"), _ENCODED.field("stream"), names)


def _parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield a batch in parts that fit into a row group each."""
    pieces = max(-(-batch.num_rows // ROW_GROUP_ROWS), -(-batch.nbytes // ROW_GROUP_BYTES), 1)
    step = max(1, -(-batch.num_rows // pieces))
    for start in range(0, batch.num_rows, step):
        yield batch.slice(start, step)


def same_rows(file: pa.Buffer, groups: Iterable[pa.Table]) -> bool:
    """Return True if a file contains exactly these rows, group by group, as a reader decodes them."""
    with _opened(file, read_dictionary=["stream"]) as parquet:
        expected = list(groups)
        if parquet.num_row_groups != len(expected):
            return False
        return all(
            _equal(parquet.read_row_group(number, use_threads=False), group) for number, group in enumerate(expected)
        )


def _equal(found: pa.Table, expected: pa.Table) -> bool:
    # So many streams that Parquet has given up their dictionary are read with another one.
    return bool(found.equals(expected) or found.cast(SCHEMA).equals(expected.cast(SCHEMA)))


def _opened(file: pa.Buffer, **options: Any) -> pq.ParquetFile:
    return pq.ParquetFile(pa.BufferReader(file), **options)


def origin_of(file: pa.Buffer, name: str, raw_bytes: int) -> tuple[Origin, pa.Table]:
    """Return what a file says about its rows, and the rows.

    Args:
        file: The whole file.
        name: Its name.
        raw_bytes: The bytes of the Arrow segments that it replaces. It may not get much larger than they are.

    Raises:
        JournalCorrupt: It is not a sealed segment.

    """
    try:
        groups = _row_groups(file)
        if sum(group.raw_bytes for group in groups) > max_bytes(raw_bytes):
            raise ValueError(f"its rows are larger than {raw_bytes} bytes of Arrow segments")
        for chunk in (chunk for group in groups for chunk in group.chunks):
            check_pages(file.slice(chunk.start, chunk.size), chunk)
        with _opened(file) as parquet:
            metadata = parquet.metadata.metadata or {}
            origin = msgspec.json.decode(metadata.get(_KEY.encode(), b""), type=Origin)
            rows = parquet.read(use_threads=False)
        if not rows.schema.equals(SCHEMA):
            raise ValueError("it has other columns")
    except (pa.ArrowException, OSError, msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise JournalCorrupt(f"{name}: is not a sealed segment ({error}); move the file elsewhere") from None
    return origin, rows


def max_bytes(raw_bytes: int) -> int:
    """Return the size that a file, or its rows in memory, never have if it replaces so many bytes of Arrow segments."""
    return 2 * raw_bytes + _SMALL_BYTES


def chunk_checksum(data: Any) -> bytes:
    """Return the checksum of a column of a row group: XXH3 of 64 bits, with the highest byte first."""
    return xxhash.xxh3_64_digest(data)


def _chunks(file: pa.Buffer) -> bytes:
    """Return the checksums of all columns of all row groups, in order."""
    return b"".join(
        chunk_checksum(file.slice(chunk.start, chunk.size)) for group in _row_groups(file) for chunk in group.chunks
    )


def _row_groups(file: pa.Buffer) -> list[RowGroup]:
    """Return the row groups of a whole file; `ValueError` if its footer is damaged."""
    view = memoryview(file)
    size = footer_bytes(view)
    if view[-len(_MAGIC) :].tobytes() != _MAGIC or not TAIL_BYTES < size <= len(view):
        raise ValueError("it does not end like a Parquet file")
    start = len(view) - size
    return row_groups(view[start:-TAIL_BYTES], start)


def footer_bytes(file: Any) -> int:
    """Return the size of a Parquet file's footer."""
    view = memoryview(file)
    return int.from_bytes(view[-TAIL_BYTES : -len(_MAGIC)], "little") + TAIL_BYTES


def segment_of(file: pa.Buffer, origin: Origin, rows: pa.Table, raw_bytes: int) -> Segment:
    """Return the manifest's entry for a file."""
    footer = footer_bytes(file)
    # The clock may have been set back in between.
    times = pc.min_max(rows["time"].cast(pa.int64())) if rows.num_rows else None
    return Segment(
        first=origin.first,
        end=origin.end,
        name=segment_file(origin.first),
        rows=rows.num_rows,
        size=file.size,
        raw_bytes=raw_bytes,
        times=None if times is None else (times["min"].as_py(), times["max"].as_py()),
        head=origin.head,
        checksum=checksum(file),
        chunks=_chunks(file),
        footer_bytes=footer,
        footer=checksum(memoryview(file)[-footer:]),
    )


def gap_text(found: Iterable[Gap]) -> str:
    """Return gaps as a file's metadata contains them."""
    kept = list(found)
    return gaps.encode(kept).decode() if kept else ""
