"""Sealing: the oldest Arrow segments of a log become one Parquet file, and then they go.

Every step can be interrupted and repeated by anybody. The file is created under a name that only these rows can have.
The manifest that lists it is created too, and whoever comes second starts again with what it finds. Arrow segments are
removed only when the newest manifest lists their rows.
"""

from __future__ import annotations

import logging
import os
import time
import uuid as uuids
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from ..errors import DataLost, JournalCorrupt, JournalMismatch, StoreError
from ..journal.disk import disk_errors
from ..journal.format import SCHEMA
from ..journal.layout import Extent, log_folder, segment_name
from ..journal.reader import JournalReader
from ..journal.sealed import SealedState, check_store, load_sealed, record_sealed, record_store
from ..journal.trimming import delete_free
from ..objects.probe import probe_once
from .catalog import Catalog
from .manifest import GapFile, Manifest, Segment
from .options import SealOptions
from .parquet import Origin, gap_text, max_bytes, origin_of, same_rows, segment_of, write
from .stores import is_elsewhere, journal_store

__all__ = ["Sealed", "due", "seal"]

logger = logging.getLogger("weirpool.archive")

_TRIES: Final = 5


@dataclass(frozen=True, slots=True)
class Sealed:
    """What a call of `seal` has done."""

    source: str
    first: int
    """The position of the first row that was sealed."""
    end: int
    """The position after the last one."""
    size: int
    """The size of the file."""
    raw_bytes: int
    """The bytes of the Arrow segments that it replaces."""


def seal(
    journal: str | os.PathLike[str],
    source: str,
    options: SealOptions | None = None,
    *,
    force: bool = False,
    clock: Callable[[], float] = time.time,
) -> Sealed | None:
    """Seal the oldest complete segments of a log, as one file; call again until there are no more.

    The last segment is never sealed, because it is written to, or defines the end of the log. Any process may seal at
    any time, also while the log is written, read, or sealed by another one.

    Args:
        journal: The journal's folder.
        source: The log's name.
        options: Where to, and how much; see `SealOptions`.
        force: Seal what is complete even if it is small and recent.
        clock: Returns the current time in seconds since 1970.

    Returns:
        What was sealed; None if nothing was due.

    Raises:
        JournalMissing: There is no such log.
        JournalCorrupt: Rows to be sealed are damaged, or the manifest is. Nothing was removed.
        JournalMismatch: The store holds another log's sealed segments under this name.
        ConditionIgnored: The store does not decide between two processes that seal.
        StoreError: The store cannot be reached. Call again later.
        DiskFull: There is no space. Call again later.

    """
    options = options or SealOptions()
    log = _Log(journal, source, options)
    if log.is_idle(clock(), force=force):
        return None
    if log.stored_elsewhere:
        # Of two processes that seal these rows, one must lose.
        probe_once(log.catalog.store)
    for _ in range(_TRIES):
        manifest = log.newest()
        try:
            log.settle(manifest)
            due = log.due(manifest, clock(), force=force)
            if due is None:
                return None
            segment, gaps = log.stored(manifest, due)
        except (JournalCorrupt, DataLost):
            if log.catalog.newest(manifest) == manifest:
                raise
            # Another process has sealed these rows meanwhile, and removed them.
            continue
        following = manifest.successor(segments=[*manifest.segments, segment], gaps=gaps)
        if log.catalog.publish(following):
            log.settle(following)
            return Sealed(source, segment.first, segment.end, segment.size, segment.raw_bytes)
    raise StoreError(f"{log.catalog.store.uri}: log {source!r} is being sealed by another process; it will go on there")


def due(
    journal: str | os.PathLike[str],
    source: str,
    options: SealOptions | None = None,
    *,
    force: bool = False,
    clock: Callable[[], float] = time.time,
) -> list[Extent]:
    """Return the rows that `seal` would seal now, and their bytes as Arrow; each is one file. Nothing is changed.

    Arguments and errors are those of `seal`.
    """
    log = _Log(journal, source, options or SealOptions())
    now = clock()
    found = []
    span = log.due(log.newest(), now, force=force)
    while span is not None:
        found.append(Extent(*span, log.reader.bytes_between(*span)))
        span = log.due_after(span[1], now, force=force)
    return found


class _Log:
    """A log with its Arrow segments in a folder, and its sealed ones in a store."""

    def __init__(self, journal: str | os.PathLike[str], source: str, options: SealOptions) -> None:
        self.folder = log_folder(journal, source)
        self.reader = JournalReader(journal, source)
        store = journal_store(journal, options.store)
        self.stored_elsewhere = is_elsewhere(store, self.folder.parent)
        self._options = options
        if self.stored_elsewhere:
            check_store(self.folder.parent, store.uri)
        self.catalog = Catalog(store, source)

    def newest(self) -> Manifest:
        """Return the newest manifest; for a log without one, what precedes its first version."""
        # First, because another process publishes before it records.
        known = self._recorded()
        manifest = self.catalog.newest()
        uuid = self.reader.uuid
        if known is not None and known.end > (known.first if manifest is None else manifest.end):
            raise JournalMismatch(
                f"{self.catalog.store.uri}/{self.catalog.folder}: has no manifest of all rows up to {known.end}, where "
                "this log is sealed to; check the store, or copy the sealed segments and the manifest there first"
            )
        if manifest is None:
            # Until there is one, readers must know that nothing is trimmed any more.
            manifest = Manifest(uuid=uuid, version=0, writer=uuids.uuid4().hex, first=self.reader.first)
        if manifest.uuid != uuid:
            raise JournalMismatch(
                f"{self.catalog.store.uri}/{self.catalog.folder}: the sealed segments there are those of log "
                f"{manifest.uuid}, and this is log {uuid}; choose another store, or move those files elsewhere"
            )
        return manifest

    def _recorded(self) -> SealedState | None:
        """Return how far this log is sealed, as its folder says; None if that is unknown."""
        try:
            return load_sealed(self.folder, self.reader.uuid)
        except JournalCorrupt as error:
            logger.warning("%s; it is written again", error)
            return None

    def settle(self, manifest: Manifest) -> None:
        """Record what is sealed, and remove the Arrow segments of these rows."""
        state = SealedState(self.reader.uuid, manifest.first, manifest.end, manifest.raw_bytes, self.stored_elsewhere)
        if self.stored_elsewhere:
            record_store(self.folder.parent, self.catalog.store.uri)
        record_sealed(self.folder, state)
        if manifest.version:
            # A gap at the end of a segment has the position of the next one's first row.
            delete_free(
                self.folder,
                manifest.end,
                0,
                self._options.local_bytes,
                lambda first, end: self.reader.gaps(first, end + 1),
            )
        self.reader.refresh()

    def is_idle(self, now: float, *, force: bool) -> bool:
        """Return True if nothing is due according to this folder, so that the store need not be asked."""
        try:
            state = load_sealed(self.folder, self.reader.uuid)
        except JournalCorrupt:
            return False
        if state is None:
            return False
        settled = self.reader.segments()[0].end > state.end if self.reader.segments() else True
        return (settled or self._options.local_bytes > 0) and self.due_after(state.end, now, force=force) is None

    def due(self, manifest: Manifest, now: float, *, force: bool) -> tuple[int, int] | None:
        """Return the positions to be sealed next; None if it is not time yet."""
        if manifest.version and self.reader.first > manifest.end:
            raise JournalCorrupt(
                f"{self.folder}: rows {manifest.end} to {self.reader.first - 1} were trimmed and not sealed; seal this "
                "log into another store, which begins after them"
            )
        return self.due_after(manifest.end if manifest.version else self.reader.first, now, force=force)

    def due_after(self, first: int, now: float, *, force: bool) -> tuple[int, int] | None:
        """Return the positions to be sealed next if the rows before `first` are sealed; None if it is not time yet."""
        extents = [each for each in self.reader.segments()[:-1] if each.end > first]
        size = 0
        for each in extents:
            size += each.bytes_between(first, each.end)
            if size >= self._options.target_bytes:
                return first, each.end
        if extents and (force or self._is_old(extents[0], now)):
            return first, extents[-1].end
        return None

    def _is_old(self, extent: Extent, now: float) -> bool:
        with disk_errors(self.folder, "be read"):
            try:
                changed = os.stat(self.folder / segment_name(extent.first)).st_mtime
            except FileNotFoundError:
                return False
        return now - changed >= self._options.max_age

    def stored(self, manifest: Manifest, due: tuple[int, int]) -> tuple[Segment, GapFile | None]:
        """Return the entry of a file with the rows that are due, which is in the store, and the file of gaps."""
        first, end = due
        name = self.catalog.file(first)
        found = self._found(name, first)
        if found is None:
            file, segment = self._file(first, end)
            if not self.catalog.store.create(name, memoryview(file)):
                found = self._found(name, first)
                if found is None:
                    raise StoreError(f"{self.catalog.store.uri}/{name}: the file was written and removed; call again")
        if found is not None:
            segment = self._adopted(name, pa.py_buffer(found), first)
        return segment, self.catalog.keep_gaps(manifest, self.reader.gaps(0, segment.end + 1))

    def _found(self, name: str, first: int) -> bytes | None:
        """Return a file that is stored already, and may be another one's; None if there is none."""
        limit = max_bytes(self.reader.bytes_between(first, self.reader.end))
        found = self.catalog.store.get(name, 0, limit + 1)
        if found is not None and len(found) > limit:
            raise self._foreign(name, first)
        return found

    def _foreign(self, name: str, first: int) -> JournalMismatch:
        return JournalMismatch(
            f"{self.catalog.store.uri.partition('?')[0]}/{name}: contains other rows than this log has from position "
            f"{first} on; move the file elsewhere"
        )

    def _file(self, first: int, end: int) -> tuple[pa.Buffer, Segment]:
        """Return the rows between two positions as a file that was checked, and its entry."""
        origin = self._origin(first, end)
        file, groups = write(self.reader.read(first, end), origin)
        if not same_rows(file, groups):
            raise JournalCorrupt(
                f"{self.folder}: positions {first} to {end - 1} differ after they were written as Parquet; nothing is "
                "sealed; check this machine's memory and the version of pyarrow"
            )
        rows = pa.concat_tables(groups) if groups else SCHEMA.empty_table()
        return file, segment_of(file, origin, rows, self.reader.bytes_between(first, end))

    def _adopted(self, name: str, file: pa.Buffer, first: int) -> Segment:
        """Return the entry of a file that was stored before, but not listed: by a process that died, or competes."""
        where = f"{self.catalog.store.uri.partition('?')[0]}/{name}"
        origin, rows = origin_of(file, where, self.reader.bytes_between(first, self.reader.end))
        fits = origin.log == self.reader.uuid and origin.first == first and first < origin.end <= self.reader.end
        if not fits or not self._same(origin, rows):
            raise self._foreign(name, first)
        return segment_of(file, origin, rows, self.reader.bytes_between(first, origin.end))

    def _same(self, origin: Origin, rows: pa.Table) -> bool:
        mine = pa.Table.from_batches(self.reader.read(origin.first, origin.end), SCHEMA)
        return bool(mine.equals(rows)) and origin.head == self.reader.head(origin.end)

    def _origin(self, first: int, end: int) -> Origin:
        head = self.reader.head(end)
        if head is None:
            raise JournalCorrupt(
                f"{self.folder}: the end of the segment before position {end} is damaged; see what `weirpool journal "
                "repair` can do"
            )
        return Origin(
            log=self.reader.uuid, first=first, end=end, head=head, gaps=gap_text(self.reader.gaps(first, end))
        )
