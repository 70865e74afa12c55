"""One sealed segment, of which row groups are read.

The manifest has a checksum of the footer, which says where everything is, and of each column of each row group. A part
of a file is therefore trusted without reading all of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import JournalCorrupt
from ..journal.format import SCHEMA
from ..objects import Store
from ..objects.folder import FolderStore
from .manifest import Segment, checksum
from .parquet import CHUNK_BYTES, chunk_checksum, chunk_range
from .ranges import RangeFile

__all__ = ["SealedFile"]

_MAX_FOOTER_BYTES: Final = 1 << 26
_POSITION: Final = "position"


class _Source(Protocol):
    """The content of a file."""

    def load(self, ranges: Sequence[tuple[int, int]]) -> None: ...

    def part(self, start: int, size: int) -> Any: ...


class _Mapped:
    """A local file in memory: what is not used is not read."""

    def __init__(self, content: pa.Buffer) -> None:
        self._content = content

    def load(self, ranges: Sequence[tuple[int, int]]) -> None:
        pass

    def part(self, start: int, size: int) -> pa.Buffer:
        if start + size > self._content.size:
            raise OSError("the file is cut off")
        return self._content.slice(start, size)


class SealedFile:
    """A sealed segment in a store; `JournalCorrupt` if it is not what the manifest says. Not thread-safe.

    Args:
        store: The store.
        name: The file's name in it.
        segment: The manifest's entry.

    """

    def __init__(self, store: Store, name: str, segment: Segment) -> None:
        self._where = f"{store.uri.partition('?')[0]}/{name}"
        self._segment = segment
        if not 0 < segment.footer_bytes <= _MAX_FOOTER_BYTES:
            raise self.error(f"its footer has {segment.footer_bytes} bytes")
        self._source: _Source
        if isinstance(store, FolderStore):
            content = self._mapped(store, name)
            self._source, reader = _Mapped(content), pa.BufferReader(content)
        else:
            tail = store.get(name, segment.size - segment.footer_bytes, segment.footer_bytes)
            if tail is None or len(tail) != segment.footer_bytes:
                raise self.error("the file is missing or cut off")
            self._source = reader = RangeFile(store, name, segment.size, tail)
        with self._damage():
            footer = self._source.part(segment.size - segment.footer_bytes, segment.footer_bytes)
            if checksum(footer) != segment.footer:
                raise ValueError("the checksum of its footer does not match")
            # Otherwise it would read more than the footer to find that.
            metadata = pq.read_metadata(pa.BufferReader(footer))
            self._parquet = pq.ParquetFile(reader, metadata=metadata)
            self._check_schema()

    def _mapped(self, store: FolderStore, name: str) -> pa.Buffer:
        try:
            with pa.memory_map(str(store.local_path(name))) as file:
                content = file.read_buffer()
        except (OSError, pa.ArrowException):
            raise self.error("the file is missing") from None
        if content.size != self._segment.size:
            raise self.error(f"it has {content.size} bytes, not {self._segment.size}")
        return content

    def groups(self, start: int, end: int) -> list[int]:
        """Return the row groups that may have rows between two positions, by their statistics."""
        metadata = self._parquet.metadata
        found = []
        for number in range(metadata.num_row_groups):
            statistics = metadata.row_group(number).column(0).statistics
            if statistics.min < end and statistics.max >= start:
                found.append(number)
        return found

    def rows(self, group: int, columns: Sequence[str]) -> pa.Table:
        """Return some columns of a row group, after checking them."""
        wanted = [SCHEMA.get_field_index(name) for name in columns]
        chunks = self._parquet.metadata.row_group(group)
        ranges = [chunk_range(chunks.column(each)) for each in wanted]
        with self._damage():
            self._source.load(ranges)
            for column, (start, size) in zip(wanted, ranges, strict=True):
                at = CHUNK_BYTES * (group * len(SCHEMA) + column)
                if chunk_checksum(self._source.part(start, size)) != self._segment.chunks[at : at + CHUNK_BYTES]:
                    raise ValueError(
                        f"the checksum of column {SCHEMA.names[column]!r} in row group {group} does not match"
                    )
            rows = self._parquet.read_row_group(group, columns=list(columns), use_threads=False)
            if "stream" in columns:
                rows["stream"].validate(full=True)
        return rows

    def close(self) -> None:
        """Close the file."""
        self._parquet.close(force=True)

    def error(self, why: str) -> JournalCorrupt:
        """Return the error for a problem of this file."""
        return JournalCorrupt(f"{self._where}: {why}; restore this file from a copy of the log")

    def _check_schema(self) -> None:
        metadata = self._parquet.metadata
        if not self._parquet.schema_arrow.equals(SCHEMA) or metadata.num_rows != self._segment.rows:
            raise ValueError("its columns or rows differ from the manifest's")
        if len(self._segment.chunks) != CHUNK_BYTES * len(SCHEMA) * metadata.num_row_groups:
            raise ValueError("the manifest has another number of checksums")
        for number in range(metadata.num_row_groups):
            statistics = metadata.row_group(number).column(0).statistics
            if statistics is None or not statistics.has_min_max:
                raise ValueError("it has no statistics of positions")
            for column in range(metadata.num_columns):
                start, size = chunk_range(metadata.row_group(number).column(column))
                if not 0 <= start <= start + size <= self._segment.size - self._segment.footer_bytes:
                    raise ValueError("a column is outside of the file")

    @contextmanager
    def _damage(self) -> Iterator[None]:
        """Convert what pyarrow raises about a damaged file."""
        try:
            yield
        except (pa.ArrowException, OSError, ValueError) as error:
            raise self.error(f"the file is damaged ({error})") from error
