"""Reading a log whose oldest rows are sealed: one sequence of positions over Parquet and Arrow."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa

from ..errors import DataLost, JournalCorrupt, JournalMismatch, JournalMissing, LocalError
from ..journal.bounds import check_range, lost_rows
from ..journal.gaps import Gap, merge
from ..journal.layout import Extent, bytes_between, log_folder
from ..journal.parts import cut, pack
from ..journal.reader import JournalReader
from ..journal.sealed import load_sealed

if TYPE_CHECKING:
    # Imported where a log is sealed: few are, and Parquet takes longer to import than everything else here.
    from .manifest import Manifest, Segment
    from .sealedlog import SealedLog

__all__ = ["ArchiveReader"]


class ArchiveReader:
    """A view of one log, which may be written to, sealed and trimmed meanwhile. Not thread-safe.

    Rows that are in Arrow segments are read from there; the ones before them are read from sealed segments, as far as
    the manifest lists them. The manifest is read when rows are needed that are no longer in Arrow segments, so
    `refresh` costs as little as that of `JournalReader`.

    Args:
        path: The journal: a folder, or the URI of a store with sealed segments.
        source: The log's name.

    Attributes:
        source: The log's name.
        uuid: The log's UUID.

    Raises:
        JournalMissing: There is no such log, or it cannot be seen from this machine.
        JournalMismatch: The sealed segments are those of another log.
        JournalCorrupt: The end of the log is unknown, or its manifest is damaged.
        JournalError: The log cannot be reached.

    """

    def __init__(self, path: str | os.PathLike[str], source: str) -> None:
        self.source = source
        self._path = os.fspath(path)
        self._cold: SealedLog | None = None
        self._hot: JournalReader | None = None
        # The first Arrow row when sealed segments were looked for: they are the ones before it.
        self._known = 0
        if "://" in self._path and not self._path.startswith("file://"):
            from ..objects.places import parse_place
            from .sealedlog import SealedLog

            self._cold = SealedLog.found(self._path, source)
            place = parse_place(self._path)
            if self._cold is None and (place.options or place.scheme == "memory"):
                # Other file systems, with Arrow segments, do not know these options.
                raise JournalMissing(f"{self._where}: there are no sealed segments of this log; check URI and source")
        if self._cold is None:
            self._hot = JournalReader(path, source)
        self.uuid = self._hot.uuid if self._hot is not None else self._manifest().uuid
        self._find_cold()

    @property
    def first(self) -> int:
        """The position of the first remaining row, sealed or not."""
        hot = self._hot
        if self._cold is None:
            assert hot is not None
            return hot.first
        # Without sealed rows, its first position is where sealing has begun.
        return min(self._manifest().first, hot.first) if hot is not None else self._manifest().first

    @property
    def end(self) -> int:
        """The position after the last row."""
        return self._manifest().end if self._hot is None else self._hot.end

    @property
    def state(self) -> bytes | None:
        """The state that the collector recorded with the last rows; None if there is none, or in a store."""
        return None if self._hot is None else self._hot.state

    def refresh(self) -> None:
        """Read what was appended, sealed and trimmed since the last time; errors as for `JournalReader.refresh`."""
        if self._hot is None:
            assert self._cold is not None
            self._cold.refresh()
            return
        self._hot.refresh()
        self._find_cold()

    def read(
        self, start: int, end: int, *, columns: Sequence[str] | None = None, skip_records: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """Return the rows from `start` to before `end`, in order; see `JournalReader.read`.

        Of sealed segments, only the row groups and columns that are needed are read.
        """
        self._check(start, end)
        wanted = None if columns is None else [*dict.fromkeys([*columns, "position"])]
        rows = self._read(start, end, wanted, skip_records)
        return rows if wanted is None or wanted == list(columns or ()) else (each.select(columns) for each in rows)

    def _read(self, start: int, end: int, columns: list[str] | None, skip: bool) -> Iterator[pa.RecordBatch]:
        at = start
        while at < end:
            hot = self._hot
            if hot is None or at < hot.first:
                stop = end if hot is None else min(end, hot.first)
                yield from self._sealed_rows(at, stop, columns)
                at = stop
                continue
            try:
                for batch in hot.read(at, end, columns=columns, skip_records=skip):
                    yield batch
                    at = batch["position"][-1].as_py() + 1
                return
            except DataLost:
                # They may have been sealed meanwhile. What this reader has not returned is read from there.
                self.refresh()
                if hot.first <= at or self._cold is None:
                    raise

    def _sealed_rows(self, start: int, end: int, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
        """Yield sealed rows. Files that were replaced or removed meanwhile are looked up again, once."""
        cold = self._require_cold(start, end)
        for segment in self._sealed_segments(cold, start, end):
            at = max(start, segment.first)
            try:
                for batch in cold.read(segment, at, min(end, segment.end), columns):
                    yield batch
                    at = batch["position"][-1].as_py() + 1
            except JournalCorrupt:
                before = cold.manifest.first
                cold.refresh()
                if cold.manifest.first > max(before, at):
                    raise self._lost(at, min(end, cold.manifest.first)) from None
                raise

    def locate(self, position: int) -> tuple[int, int]:
        """Return the first and the end position of the batch or row group that contains a row."""
        self._check(position, position + 1)
        if self._hot is not None and position >= self._hot.first:
            return self._hot.locate(position)
        for first, end, _ in self._sealed_parts(position, position + 1):
            return first, end
        raise self._lost(position, position + 1)

    def segments(self, *, timed: bool = False) -> list[Extent]:
        """Return the rows of each segment, and the bytes that they have, or had, as Arrow segments, in order.

        The times of sealed segments are known; for those of others see `JournalReader.segments`.
        """
        hot = [] if self._hot is None else self._hot.segments(timed=timed)
        if timed:
            # Some may have been sealed while they were read.
            self._find_cold()
        if self._cold is None:
            return hot
        below = hot[0].first if hot else self.end
        return [*_below(self._cold.segments(0, below), below), *hot]

    def bytes_between(self, start: int, end: int) -> int:
        """Estimate the bytes of the rows from `start` to before `end`, as Arrow, without reading them."""
        if self._hot is not None and start >= self._hot.first:
            return self._hot.bytes_between(start, end)
        return bytes_between(self.segments(), start, end)

    def split(
        self, start: int, end: int, *, max_rows: int | None = None, max_bytes: int | None = None
    ) -> list[tuple[int, int]]:
        """Split a range into consecutive parts for workers, at row groups or batches; see `JournalReader.split`."""
        self._check(start, end)
        hot = self._hot
        below = end if hot is None else max(start, min(end, hot.first))
        rows_limit = max(end - start, 1) if max_rows is None else max_rows
        bytes_limit = 1 << 62 if max_bytes is None else max_bytes
        if start < end and (rows_limit < 1 or bytes_limit < 1):
            raise LocalError(f"max_rows is {max_rows} and max_bytes is {max_bytes}; both must be at least 1")
        parts = self._sealed_parts(start, below, clip=True)
        found = pack(cut(parts, rows_limit, bytes_limit), rows_limit, bytes_limit)
        if hot is not None and below < end:
            found += hot.split(below, end, max_rows=max_rows, max_bytes=max_bytes)
        return found

    def gaps(self, start: int | None = None, end: int | None = None) -> list[Gap]:
        """Return the losses just before the rows from `start` to before `end`; see `JournalReader.gaps`."""
        first = 0 if start is None else start
        hot = [] if self._hot is None else self._hot.gaps(start, end)
        if self._cold is None or (self._hot is not None and first > self._hot.first):
            return hot
        stop = self.end + 1 if end is None else end
        sealed = (gap for gap in self._cold.gaps() if first <= gap.position < stop)
        return merge(hot, sealed)

    def damage(
        self, start: int | None = None, end: int | None = None, *, records: bool = False
    ) -> list[tuple[int, int]]:
        """Return the damaged positions; see `JournalReader.damage`. Sealed segments were sound when they were sealed.

        Damage to the files of sealed segments is found when they are read.
        """
        if self._hot is None:
            return []
        first = max(self._hot.first, 0 if start is None else start)
        stop = self._hot.end if end is None else end
        return self._hot.damage(first, stop, records=records) if first <= stop else []

    def sealed_files(self) -> tuple[str, list[tuple[str, Segment]]]:
        """Return the URI of the store, and the names and entries of all files of the newest manifest, in order."""
        if self._cold is None:
            self._known = -1
            self._find_cold()
        else:
            self._cold.refresh()
        return ("", []) if self._cold is None else self._cold.files()

    def _find_cold(self) -> None:
        """Look for sealed segments, if this log has them."""
        hot = self._hot
        if hot is None or hot.first <= self._known:
            return
        if self._cold is None:
            self._cold = self._sealed_log()
        elif hot.first > self._cold.manifest.end:
            self._cold.refresh()
        self._known = hot.first
        if self._cold is not None and self._cold.manifest.uuid != self.uuid:
            raise JournalMismatch(
                f"{self._cold.where}: the sealed segments there are those of log {self._cold.manifest.uuid}, and this "
                f"is log {self.uuid}; seal this log into another store, or move those files elsewhere"
            )

    def _sealed_log(self) -> SealedLog | None:
        """Return the sealed segments of a log in a folder; None if it has none."""
        state = load_sealed(log_folder(self._path, self.source), self.uuid)
        if state is None:
            return None
        from .sealedlog import SealedLog

        return SealedLog.of_folder(self._path, self.source, state)

    def _require_cold(self, start: int, end: int) -> SealedLog:
        if self._cold is None or start < self._cold.manifest.first:
            raise self._lost(start, end if self._cold is None else min(end, self._cold.manifest.first))
        if end > self._cold.manifest.end:
            self._cold.refresh()
        if end > self._cold.manifest.end:
            raise self._lost(max(start, self._cold.manifest.end), end)
        return self._cold

    def _sealed_segments(self, cold: SealedLog, start: int, end: int) -> list[Segment]:
        found = cold.segments(start, end)
        # The manifest may be a newer one now.
        if start < cold.manifest.first:
            raise self._lost(start, min(end, cold.manifest.first))
        return found

    def _sealed_parts(self, start: int, end: int, *, clip: bool = False) -> Iterator[tuple[int, int, int]]:
        """Yield first position, end and bytes of the row groups between two positions, or of what lies between."""
        if start >= end:
            return
        cold = self._require_cold(start, end)
        for part in chain.from_iterable(map(cold.parts, self._sealed_segments(cold, start, end))):
            first, stop, size = part
            if first < end and stop > start:
                at, to = (max(first, start), min(stop, end)) if clip else (first, stop)
                yield at, to, size * (to - at) // (stop - first)

    def _manifest(self) -> Manifest:
        assert self._cold is not None
        return self._cold.manifest

    def _check(self, start: int, end: int) -> None:
        check_range(self, self._where, start, end)

    def _lost(self, start: int, end: int) -> DataLost:
        return lost_rows(self, self._where, start, end)

    @property
    def _where(self) -> str:
        return f"{self._path}/source={self.source}"


def _below(segments: list[Segment], end: int) -> Iterator[Extent]:
    """Yield the extents of sealed segments, the last one cut where the first Arrow segment begins."""
    for each in segments:
        extent = Extent(each.first, each.end, each.raw_bytes, each.times)
        if each.end <= end:
            yield extent
        elif each.first < end:
            yield Extent(each.first, end, extent.bytes_between(each.first, end), each.times)
