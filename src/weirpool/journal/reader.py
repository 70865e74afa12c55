"""Reading a log: the same rows for the same positions, in any process."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import pairwise

import pyarrow as pa

from ..errors import DataLost, JournalCorrupt, JournalMismatch, LocalError
from .bounds import check_range, lost_rows
from .damage import Damage, Promise
from .gaps import Gap, merge
from .index import Index, Stored
from .layout import Extent, bytes_between
from .losses import is_accepted
from .mark import Mark
from .parts import cut, pack
from .rows import merge_small
from .storage import LogFolder
from .survey import link, missing_beginning, promised, seal

__all__ = ["JournalReader"]

_TRIES = 3
_NOTHING = pa.py_buffer(b"")
"""The content of a missing segment."""


class JournalReader:
    """A view of one log, which may be written to and trimmed meanwhile. Not thread-safe.

    It shows rows for which `append` has returned, as of the last `refresh`. Creating and refreshing a reader only reads
    the last segment.

    Args:
        path: The journal: a folder, or a URI that `pyarrow.fs.FileSystem.from_uri` supports.
        source: The log's name.

    Attributes:
        uuid: The log's UUID.

    Raises:
        JournalMissing: There is no such log, or it cannot be seen from this machine.
        JournalCorrupt: The end of the log is unknown.
        JournalError: The log cannot be reached.

    """

    def __init__(self, path: str | os.PathLike[str], source: str) -> None:
        self.source = source
        self._log = LogFolder.of(path, source)
        self._indexes: list[Index] = []
        self._sizes: dict[int, int] = {}
        # For a log without segments.
        self._start = 0
        self._trimmed = 0
        self.uuid = self._log.require().uuid
        self.refresh()

    @property
    def first(self) -> int:
        """The position of the first remaining row; increases when the log is trimmed."""
        return self._indexes[0].first if self._indexes else self._start

    @property
    def end(self) -> int:
        """The position after the last row."""
        return self._indexes[-1].end if self._indexes else self._start

    @property
    def state(self) -> bytes | None:
        """The state that the collector recorded with the last rows; None if there is none, or it is unreadable."""
        last = self._indexes[-1].last if self._indexes else None
        return None if last is None else last.note.state

    def refresh(self) -> None:
        """Read what was appended and trimmed since the last time; takes about 100 microseconds.

        Rows that are damaged or missing below the mark are counted as existing: reading them raises the error.

        Raises:
            JournalMissing: The log is gone.
            JournalMismatch: The log was deleted, and another one has its name.
            JournalCorrupt: The end of the log is unknown, or earlier than before.
            JournalError: The log cannot be reached.

        """
        before = self.end
        mark, segments = self._mark_and_segments()
        known = {index.first: index for index in self._indexes}
        indexes = [known.get(first) or self._index(first) for first, _ in segments]
        if indexes:
            indexes[-1] = self._extended(indexes[-1], segments[-1][1], mark)
        if mark is not None and mark.offset and (not indexes or indexes[-1].first < mark.segment):
            missing = self._index(mark.segment)
            missing.miss(promised(mark))
            indexes.append(missing)
            segments.append((mark.segment, 0))
        if mark is not None and indexes:
            beginning = self._beginning(indexes[0].first)
            indexes[:0] = beginning
            segments[:0] = [(index.first, 0) for index in beginning]
        start = mark.end if mark else 0
        end = indexes[-1].end if indexes else start
        if end < before or (indexes and indexes[-1].damage):
            self._same_log()
            self._log.require_complete()
        if end < before:
            raise JournalCorrupt(
                f"{self._log.path}: the log ended at position {before} and now ends at {end}: rows were removed; "
                "restore its files, or read it again from its beginning"
            )
        self._sizes, self._indexes, self._start = dict(segments), indexes, start

    def _beginning(self, first: int) -> list[Index]:
        """Return the index of the rows that are missing before the first segment and were not trimmed."""
        if first > self._trimmed:
            self._trimmed = self._log.trimmed(self.uuid)
        return missing_beginning(self._log, self.uuid, first, self._trimmed)

    def _mark_and_segments(self) -> tuple[Mark | None, list[tuple[int, int]]]:
        """Return the mark, and the segments up to it; later ones exist, but their first batch is not durable."""
        for _ in range(_TRIES):
            mark = self._log.mark()
            segments = self._log.segments()
            if mark is None:
                break
            segments = [(first, size) for first, size in segments if first <= mark.segment]
            # Meanwhile the writer may have started another segment, and a reader may have trimmed this one.
            if not mark.offset or (segments and segments[-1][0] == mark.segment):
                break
        return mark, segments

    def _same_log(self) -> None:
        """Check that this is still the same log."""
        uuid = self._log.require().uuid
        if uuid != self.uuid:
            raise JournalMismatch(
                f"{self._log.path}: the log with the UUID {self.uuid} was deleted, and another one, {uuid}, has its "
                "name; read that one from its beginning"
            )

    def _index(self, first: int) -> Index:
        return Index(self._log.name(first), first, self.uuid)

    def _extended(self, last: Index, size: int, mark: Mark | None) -> Index:
        """Return the index of the last segment, updated to its durable end."""
        durable = promised(mark) if mark is not None else Promise()
        if last.offset == (size if mark is None else mark.offset) and last.head == (durable.head or last.head):
            return last
        if last.sealed and mark is not None and mark.segment > last.first:
            return last
        content = self._log.content(last.first)
        if content is None:
            return last
        if mark is not None and mark.segment > last.first:
            # The next segment is about to be created.
            seal(self._log, last, content, mark.segment, None if mark.offset else mark.head)
            return last
        if mark is None and content.size < last.offset:
            last = self._index(last.first)
        last.extend(content, durable)
        for damage in last.damage:
            if damage.end is None and not self._accepts(damage):
                self._log.require_complete()
                raise damage.error(last.name)
        return last

    def _accepts(self, damage: Damage) -> bool:
        """Return True if the loss of these positions was accepted."""
        return is_accepted(damage, self._log.kept_gaps())

    def read(
        self, start: int, end: int, *, columns: Sequence[str] | None = None, skip_records: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """Return the rows from `start` to before `end`, in order, as record batches of `SCHEMA`.

        A large batch is returned as it is in the file, memory-mapped; consecutive small ones are copied into one. Each
        is checked the first time that this reader returns it. Positions whose loss was accepted by a gap are skipped.

        Args:
            start: The first position.
            end: The position after the last.
            columns: The columns to return, in this order; None: all of them.
            skip_records: Skip damaged records without rows, such as gaps; see `damage`.

        Raises:
            DataLost: Some of the rows are trimmed, or not in the log (yet); the message names them. It may occur in the
                middle, if the log is trimmed meanwhile.
            JournalCorrupt: Some of the rows are damaged or missing; the message names them.
            LocalError: `end` is less than `start`.

        """
        self._check(start, end)
        rows = self._read(start, end, skip_records)
        if columns is None:
            return merge_small(rows)
        names = list(columns)
        return merge_small((batch.select(names), size) for batch, size in rows)

    def head(self, end: int) -> str | None:
        """Return the digest of the last batch of the segment that ends at a position; None if it is damaged.

        Raises:
            DataLost: There is no such segment, or it is trimmed.

        """
        self._check(end - 1, end)
        for index in self._indexed(end - 1, end):
            if index.end == end:
                return index.head
        raise self._lost(end - 1, end)

    def stored(self, start: int, end: int, *, skip_records: bool = False) -> Iterator[Stored]:
        """Yield where the batches of a range are, in order. Their bodies are neither read nor checked.

        Arguments and errors are those of `read`.
        """
        self._check(start, end)
        for index, _, first, stop in self._spans(start, end):
            yield from index.stored(first, stop, self._row_accepted if skip_records else self._accepted)

    def locate(self, position: int) -> tuple[int, int]:
        """Return the first and the end position of the batch that contains a row.

        Raises:
            DataLost: The row is not in the log.

        """
        self._check(position, position + 1)
        for index in self._indexed(position, position + 1):
            if index.first <= position < index.end:
                return index.locate(position)
        raise self._lost(position, position + 1)

    def segments(self, *, timed: bool = False) -> list[Extent]:
        """Return the rows and bytes of each segment, in order, with their times where they were read before.

        With `timed` the headers of all segments are read, once. Only a segment without rows, or with damage, has no
        times then.
        """
        if timed:
            for _ in self._indexed(self.first, self.end, trimmed=True):
                pass
        extents = [
            Extent(index.first, following.first, self._sizes[index.first], index.times if index.sealed else None)
            for index, following in pairwise(self._indexes)
        ]
        return [*extents, *(Extent(last.first, last.end, last.offset, last.times) for last in self._indexes[-1:])]

    def bytes_between(self, start: int, end: int) -> int:
        """Estimate the bytes of the rows from `start` to before `end`, without reading them."""
        return bytes_between(self.segments(), start, end)

    def split(
        self, start: int, end: int, *, max_rows: int | None = None, max_bytes: int | None = None
    ) -> list[tuple[int, int]]:
        """Split a range into consecutive parts for workers, between batches unless a single batch is too large.

        Args:
            start: The first position.
            end: The position after the last.
            max_rows: Maximum rows of a part; None: no limit.
            max_bytes: Maximum bytes of a part, unless a single row is larger; None: no limit.

        Raises:
            DataLost: Some of the rows are not in the log.

        """
        self._check(start, end)
        rows_limit = end - start if max_rows is None else max_rows
        bytes_limit = 1 << 62 if max_bytes is None else max_bytes
        if start < end and (rows_limit < 1 or bytes_limit < 1):
            raise LocalError(f"max_rows is {max_rows} and max_bytes is {max_bytes}; both must be at least 1")
        parts = (part for index in self._indexed(start, end) for part in index.parts(start, end))
        return pack(cut(parts, rows_limit, bytes_limit), rows_limit, bytes_limit)

    def gaps(self, start: int | None = None, end: int | None = None) -> list[Gap]:
        """Return the losses just before the rows from `start` to before `end`.

        Consecutive ranges therefore report each loss once. Without `start`, those of trimmed segments are included;
        without `end`, those after the last row. This reads the headers of all segments of the range.
        """
        first = 0 if start is None else start
        stop = self.end + 1 if end is None else end
        # A loss just before the first row of a segment was recorded at the end of the previous one.
        # Gaps of a segment that is trimmed meanwhile are stored before it is deleted.
        found = [index.gaps for index in self._indexed(first - 1, stop, trimmed=True)]
        return [gap for gap in merge(self._log.kept_gaps(), *found) if first <= gap.position < stop]

    def damage(
        self, start: int | None = None, end: int | None = None, *, records: bool = False
    ) -> list[tuple[int, int]]:
        """Return the damaged or missing positions from `start` to before `end` whose loss was not accepted.

        This reads the headers of all segments of the range; damaged bodies are found when they are read.

        Args:
            start: The first position.
            end: The position after the last.
            records: Include damaged records without rows, as a range that ends where it begins. A record after the last
                row of the log belongs to that row.

        """
        first = self.first if start is None else start
        stop = self.end if end is None else end
        indexes = self._indexed(first, stop, trimmed=True)
        found = [each for index in indexes for each in index.damage if not self._accepts(each)]
        ends = [stop if each.end is None else min(each.end, stop) for each in found]
        ranges = [(max(each.first, first), to) for each, to in zip(found, ends, strict=True)]
        return [(at, to) for at, to in ranges if at < to or (records and at == to and (at < stop or at == self.end))]

    def _check(self, start: int, end: int) -> None:
        check_range(self, str(self._log.path), start, end)

    def _lost(self, start: int, end: int) -> DataLost:
        return lost_rows(self, str(self._log.path), start, end)

    def _read(self, start: int, end: int, skip_records: bool) -> Iterator[tuple[pa.RecordBatch, int]]:
        accepted = self._row_accepted if skip_records else self._accepted
        for index, content, first, stop in self._spans(start, end):
            yield from index.batches(content, first, stop, accepted)

    def _spans(self, start: int, end: int) -> Iterator[tuple[Index, pa.Buffer, int, int]]:
        """Yield the segments of a range, with the first and the end position to read in each."""
        at = start
        for index, content in self._contents(start, end):
            if index.first > at:
                raise self._lost(at, index.first)
            stop = min(end, index.end)
            yield index, content, at, stop
            at = max(at, stop)
        if at < end:
            raise self._lost(at, end)

    def _accepted(self, first: int, end: int) -> bool:
        return self._accepts(Damage(first, end, ""))

    def _row_accepted(self, first: int, end: int) -> bool:
        return first == end or self._accepted(first, end)

    def _contents(self, start: int, end: int) -> Iterator[tuple[Index, pa.Buffer]]:
        """Yield the segments with rows between two positions: each after the next one is known to follow it."""
        before: tuple[Index, pa.Buffer] | None = None
        for index, following in self._between(start, end):
            content = self._content(index, max(start, index.first), end, following)
            if before is not None:
                link(*before, index)
                yield before
            before = index, content
        if before is not None:
            yield before

    def _indexed(self, start: int, end: int, *, trimmed: bool = False) -> Iterator[Index]:
        """Yield the segments that may have rows between two positions, with their indexes.

        A segment that is trimmed meanwhile is omitted with `trimmed`; otherwise it is an error.
        """
        for index, following in self._between(start, end):
            if following is not None and not index.sealed:
                try:
                    self._content(index, max(start, index.first), end, following)
                except DataLost:
                    if not trimmed:
                        raise
                    continue
            yield index

    def _between(self, start: int, end: int) -> list[tuple[Index, int | None]]:
        """Return the segments that may have rows between two positions, each with the start of the next."""
        ends = [*(index.first for index in self._indexes[1:]), None]
        return [
            (index, following)
            for index, following in zip(self._indexes, ends, strict=False)
            if (index.first < end or (start < end == index.end and following is None))
            and (following is None or following > start)
        ]

    def _content(self, index: Index, start: int, end: int, following: int | None) -> pa.Buffer:
        """Return the content of a segment, read to its end; the last one only as far as `refresh` saw it."""
        if index.missing:
            return _NOTHING
        content = self._log.content(index.first)
        if content is not None and following is not None and not index.sealed:
            seal(self._log, index, content, following)
            if index.damage and not any(first == index.first for first, _ in self._log.segments()):
                # It was trimmed meanwhile, and so was the next one.
                content = None
        if content is None:
            self.refresh()
            stop = end if following is None else min(end, following)
            if index.first >= self.first:
                raise Damage(start, stop, "the file is missing").error(index.name)
            raise self._lost(start, stop)
        return content
