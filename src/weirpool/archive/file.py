"""One sealed segment, of which row groups are read.

The manifest has a checksum of the footer, which says where everything is, and of each column of each row group. A part
of a file is therefore trusted without reading all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import JournalCorrupt
from ..journal.format import SCHEMA
from ..objects import Store, open_store
from ..objects.folder import FolderStore
from .footer import check_pages, row_groups
from .manifest import Segment, checksum
from .parquet import CHUNK_BYTES, TAIL_BYTES, chunk_checksum
from .ranges import RangeFile

__all__ = ["SealedFile", "check_files"]

_MAX_FOOTER_BYTES: Final = 1 << 26
_CHECKS: Final = 32
"""Files to check at a time: nearly all of the time is spent waiting for a store."""


def check_files(uri: str, files: Iterable[tuple[str, Segment]]) -> None:
    """Check that files in the store at a URI are those that a manifest lists, given their names and entries.

    `JournalCorrupt` is raised if a file is not the one that was sealed.
    """
    store = open_store(uri)
    with ThreadPoolExecutor(_CHECKS) as pool:
        for _ in pool.map(lambda each: _checked_footer(store, *each), files):
            pass


def _checked_footer(store: Store, name: str, segment: Segment) -> bytes:
    """Return the footer of a file, by one request; `JournalCorrupt` if the file is not the one that was sealed.

    A footer tells where everything in a file is, and how many rows it has. So a missing, shorter or longer file, a
    neighbor and one with other rows are found, but not changed bytes before the footer: readers check those.
    """
    # One byte more than there is, so that the same request finds a longer file.
    footer = store.get(name, _footer_start(store, name, segment), segment.footer_bytes + 1)
    if footer is None:
        raise _error(store, name, "the file is missing")
    if len(footer) != segment.footer_bytes:
        raise _error(store, name, f"its size is not {segment.size} bytes, as in the manifest")
    _compare(store, name, segment, footer)
    return footer


def _footer_start(store: Store, name: str, segment: Segment) -> int:
    if not 0 < segment.footer_bytes <= min(segment.size, _MAX_FOOTER_BYTES):
        raise _error(store, name, f"its footer has {segment.footer_bytes} bytes")
    return segment.size - segment.footer_bytes


def _compare(store: Store, name: str, segment: Segment, footer: Any) -> None:
    if checksum(footer) != segment.footer:
        raise _error(store, name, "it is not the file that the manifest lists: its footer differs")


def _error(store: Store, name: str, why: str) -> JournalCorrupt:
    where = f"{store.uri.partition('?')[0]}/{name}"
    return JournalCorrupt(f"{where}: {why}; restore this file from a copy of the log")


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
        self._store = store
        self._name = name
        self._segment = segment
        self._source: _Source
        if isinstance(store, FolderStore):
            start = _footer_start(store, name, segment)
            content = self._mapped(store, name)
            footer = content.slice(start)
            _compare(store, name, segment, footer)
            self._source, reader = _Mapped(content), pa.BufferReader(content)
        else:
            footer = _checked_footer(store, name, segment)
            self._source = reader = RangeFile(store, name, segment.size, footer)
        with self._damage():
            # Before pyarrow reads it.
            self._groups = row_groups(memoryview(footer)[:-TAIL_BYTES], segment.size - segment.footer_bytes)
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
        positions = [group.positions for group in self._groups]
        return [number for number, (first, last) in enumerate(positions) if first < end and last >= start]

    def rows(self, group: int, columns: Sequence[str]) -> pa.Table:
        """Return some columns of a row group, after checking them."""
        wanted = [SCHEMA.get_field_index(name) for name in columns]
        chunks = [self._groups[group].chunks[each] for each in wanted]
        with self._damage():
            self._source.load([(chunk.start, chunk.size) for chunk in chunks])
            for column, chunk in zip(wanted, chunks, strict=True):
                at = CHUNK_BYTES * (group * len(SCHEMA) + column)
                content = self._source.part(chunk.start, chunk.size)
                if chunk_checksum(content) != self._segment.chunks[at : at + CHUNK_BYTES]:
                    raise ValueError(
                        f"the checksum of column {SCHEMA.names[column]!r} in row group {group} does not match"
                    )
                check_pages(content, chunk)
            rows = self._parquet.read_row_group(group, columns=list(columns), use_threads=False)
            if "stream" in columns:
                rows["stream"].validate(full=True)
        return rows

    def close(self) -> None:
        """Close the file."""
        self._parquet.close(force=True)

    def error(self, why: str) -> JournalCorrupt:
        """Return the error for a problem of this file."""
        return _error(self._store, self._name, why)

    def _check_schema(self) -> None:
        metadata = self._parquet.metadata
        if not self._parquet.schema_arrow.equals(SCHEMA) or metadata.num_rows != self._segment.rows:
            raise ValueError("its columns or rows differ from the manifest's")
        if len(self._segment.chunks) != CHUNK_BYTES * len(SCHEMA) * len(self._groups):
            raise ValueError("the manifest has another number of checksums")
        if metadata.num_row_groups != len(self._groups) or metadata.num_rows != sum(g.rows for g in self._groups):
            raise ValueError("its row groups contradict each other")

    @contextmanager
    def _damage(self) -> Iterator[None]:
        """Convert what pyarrow raises about a damaged file."""
        try:
            yield
        except (pa.ArrowException, OSError, ValueError) as error:
            raise self.error(f"the file is damaged ({error})") from error
