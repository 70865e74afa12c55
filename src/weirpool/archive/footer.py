"""The footer of a Parquet file, and its pages' headers, as far as they say where something is and how large it gets.

Files come from stores that others may write. pyarrow decodes a footer lazily, and what it finds wrong in a column's
part ends the whole process, because its accessors do not convert that error. So these parts are read here first.

The format is the compact protocol of Thrift: https://github.com/apache/thrift/blob/master/doc/specs/
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from ..journal.format import SCHEMA

__all__ = ["MAX_GROUP_BYTES", "Chunk", "RowGroup", "check_pages", "row_groups"]

MAX_GROUP_BYTES: Final = 1 << 30
"""Bytes of a row group in memory: sixteen times as many as are put into one, unless an item is larger."""
MAX_GROUP_ROWS: Final = 1 << 20
"""Rows of a row group: eight times as many."""
_MAX_DEPTH: Final = 16
_BOOLEANS: Final = (1, 2)
_INTEGERS: Final = (4, 5, 6)
_BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 3, 7, 8, 9, 10, 11, 12
_POSITION: Final = struct.Struct("<q")


@dataclass(frozen=True, slots=True)
class Chunk:
    """A column of a row group."""

    start: int
    """Its offset in the file."""
    size: int
    """Its bytes in the file."""
    raw_bytes: int
    """Its bytes after decompression."""
    lowest: bytes
    """The smallest value, as the statistics have it; empty if they do not."""
    highest: bytes


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group with positions as its first column."""

    rows: int
    chunks: tuple[Chunk, ...]

    @property
    def raw_bytes(self) -> int:
        """Its bytes after decompression."""
        return sum(chunk.raw_bytes for chunk in self.chunks)

    @property
    def positions(self) -> tuple[int, int]:
        """The first and the last position."""
        return _POSITION.unpack(self.chunks[0].lowest)[0], _POSITION.unpack(self.chunks[0].highest)[0]


def row_groups(footer: Any, limit: int) -> list[RowGroup]:
    """Return the row groups that a footer describes.

    Args:
        footer: The metadata of the file, without the length and the magic after it.
        limit: The offset before which all columns end.

    Raises:
        ValueError: It is damaged, or describes what no sealed segment contains.

    """
    found: list[RowGroup] = []
    reader = _Reader(footer)
    for field, kind in reader.fields():
        # parquet.thrift, FileMetaData: row_groups is field 4.
        if field == 4:
            found += [_row_group(reader, limit) for _ in reader.elements(kind, _STRUCT)]
        else:
            reader.skip(kind)
    return found


def _row_group(reader: _Reader, limit: int) -> RowGroup:
    rows, chunks = 0, []
    # RowGroup: columns is field 1, num_rows field 3.
    for field, kind in reader.fields():
        if field == 1:
            chunks += [_chunk(reader, limit) for _ in reader.elements(kind, _STRUCT)]
        elif field == 3:
            rows = reader.integer(kind)
        else:
            reader.skip(kind)
    group = RowGroup(rows, tuple(chunks))
    if len(chunks) != len(SCHEMA):
        raise ValueError(f"a row group has {len(chunks)} columns, not {len(SCHEMA)}")
    if not 0 <= rows <= MAX_GROUP_ROWS or group.raw_bytes > MAX_GROUP_BYTES:
        raise ValueError(f"a row group of {rows} rows and {group.raw_bytes} bytes is too large")
    if not len(chunks[0].lowest) == len(chunks[0].highest) == _POSITION.size:
        raise ValueError("it has no statistics of positions")
    return group


def _chunk(reader: _Reader, limit: int) -> Chunk:
    found = None
    # ColumnChunk: file_path is field 1, meta_data field 3, and what begins with field 4 is about other indices.
    for field, kind in reader.fields():
        if field == 1:
            raise ValueError("a column is in another file")
        if field == 3:
            found = _metadata(reader, kind, limit)
        else:
            reader.skip(kind)
    if found is None:
        raise ValueError("a column has no metadata")
    return found


def _metadata(reader: _Reader, kind: int, limit: int) -> Chunk:
    numbers, lowest, highest = {6: -1, 7: -1, 9: -1}, b"", b""
    if kind != _STRUCT:
        raise ValueError("a column has no metadata")
    # ColumnMetaData: total_uncompressed_size 6, total_compressed_size 7, data_page_offset 9, dictionary_page_offset 11,
    # statistics 12.
    for field, inner in reader.fields():
        if field in (6, 7, 9, 11):
            numbers[field] = reader.integer(inner)
        elif field == 12 and inner == _STRUCT:
            lowest, highest = _statistics(reader)
        else:
            reader.skip(inner)
    start = min(numbers[9], numbers.get(11, numbers[9]))
    if not 0 <= start <= start + numbers[7] <= limit or numbers[7] < 0 or numbers[6] < 0:
        raise ValueError("a column is outside of the file")
    return Chunk(start, numbers[7], numbers[6], lowest, highest)


def _statistics(reader: _Reader) -> tuple[bytes, bytes]:
    # Statistics: max_value is field 5, min_value field 6.
    values = {5: b"", 6: b""}
    for field, kind in reader.fields():
        if field in values:
            values[field] = reader.binary(kind)
        else:
            reader.skip(kind)
    return values[6], values[5]


def check_pages(content: Any, chunk: Chunk) -> None:
    """Check that the pages of a column are within it, and get no larger than its metadata says; `ValueError` if not."""
    data, at, size = memoryview(content).cast("B"), 0, 0
    while at < len(data):
        reader = _Reader(data, at)
        sizes = {2: -1, 3: -1}
        # PageHeader: uncompressed_page_size is field 2, compressed_page_size field 3.
        for field, kind in reader.fields():
            if field in sizes:
                sizes[field] = reader.integer(kind)
            else:
                reader.skip(kind)
        if min(sizes.values()) < 0:
            raise ValueError("a page has no size")
        size += reader.at - at + sizes[2]
        at = reader.at + sizes[3]
    if at != len(data) or size > chunk.raw_bytes:
        raise ValueError("its pages are larger than its metadata says")


class _Reader:
    """Reads structures of Thrift's compact protocol; `ValueError` if they are damaged. It keeps nothing."""

    def __init__(self, data: Any, at: int = 0) -> None:
        # Buffers of Arrow have signed bytes.
        self._data = memoryview(data).cast("B")
        self.at = at

    def fields(self) -> Iterator[tuple[int, int]]:
        """Yield number and type of each field of a structure. Read or skip its value before the next one."""
        number = 0
        while (head := self._byte()) != 0:
            number = number + (head >> 4) if head >> 4 else self._signed()
            yield number, head & 15

    def elements(self, kind: int, wanted: int) -> range:
        """Return as many numbers as a list of the wanted type has elements, which are to be read."""
        if kind != _LIST:
            raise ValueError("a list is expected")
        count, element = self._list()
        if element != wanted and count:
            raise ValueError("a list has elements of another type")
        return range(count)

    def integer(self, kind: int) -> int:
        """Return an integer."""
        if kind not in _INTEGERS:
            raise ValueError("a number is expected")
        return self._signed()

    def binary(self, kind: int) -> bytes:
        """Return a byte string."""
        if kind != _BINARY:
            raise ValueError("a byte string is expected")
        start = self._pass(self._varint())
        return bytes(self._data[start : self.at])

    def skip(self, kind: int, depth: int = 0) -> None:
        """Skip the value of a field."""
        if depth > _MAX_DEPTH:
            raise ValueError("it is nested too deeply")
        if kind in _INTEGERS:
            self._varint()
        elif kind == _BYTE:
            self._byte()
        elif kind == _DOUBLE:
            self._pass(8)
        elif kind == _BINARY:
            self._pass(self._varint())
        elif kind in (_LIST, _SET):
            count, element = self._list()
            for _ in range(count):
                self._skip_element(element, depth)
        elif kind == _MAP:
            self._skip_map(depth)
        elif kind == _STRUCT:
            for _, inner in self.fields():
                self.skip(inner, depth + 1)
        elif kind not in _BOOLEANS:
            raise ValueError(f"a value has the unknown type {kind}")

    def _skip_map(self, depth: int) -> None:
        count = self._counted(self._varint())
        kinds = self._byte() if count else 0
        for _ in range(count):
            self._skip_element(kinds >> 4, depth)
            self._skip_element(kinds & 15, depth)

    def _skip_element(self, kind: int, depth: int) -> None:
        # In lists and maps, booleans are bytes; as fields, their type is the value.
        self.skip(_BYTE if kind in _BOOLEANS else kind, depth + 1)

    def _list(self) -> tuple[int, int]:
        head = self._byte()
        count = head >> 4
        return self._counted(self._varint() if count == 15 else count), head & 15

    def _counted(self, count: int) -> int:
        # Each element has a byte at least.
        if count > len(self._data) - self.at:
            raise ValueError("a list is longer than the file")
        return count

    def _signed(self) -> int:
        number = self._varint()
        return (number >> 1) ^ -(number & 1)

    def _varint(self) -> int:
        number = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            number |= (byte & 127) << shift
            if byte < 128:
                return number
        raise ValueError("a number is too long")

    def _byte(self) -> int:
        return self._data[self._pass(1)]

    def _pass(self, size: int) -> int:
        """Move on by some bytes, and return the offset before."""
        start = self.at
        if size > len(self._data) - start:
            raise ValueError("it is cut off")
        self.at = start + size
        return start
