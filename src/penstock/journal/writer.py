"""Writing a log: rows are on disk when `append` returns."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import TracebackType

import pyarrow as pa

from ..errors import JournalError, LocalError
from .disk import disk_errors, make_folder, sync_folder
from .format import NO_ITEMS, Encoded, Note, encode, preamble
from .identity import Identity, Request, create, load, without_identity
from .layout import DURABLE, LOCK, Extent, bytes_between, log_folder, segment_name
from .lock import Lock
from .losses import accept, examine, set_aside
from .mark import Mark, MarkFile
from .recovery import Tail
from .retention import commits, last_commit
from .rows import tabulate
from .segment import TEMPORARY, SegmentFile
from .storage import LogFolder

__all__ = ["DEFAULT_BUDGET_BYTES", "DEFAULT_SEGMENT_BYTES", "MAX_STATE_BYTES", "JournalWriter"]

_log = logging.getLogger(__name__)

MIB = 1024 * 1024
DEFAULT_BUDGET_BYTES = 256 * MIB
"""A minute of a stream of 4 MiB/s: a reader may be away for that long without slowing down its publisher."""
DEFAULT_SEGMENT_BYTES = 64 * MIB
"""The unit of trimming: small enough to free space in steps, and large enough for few files."""
MAX_STATE_BYTES = 64 * 1024
"""The size of the collector's state, mostly a resume token, which RSocket limits to 65,535 bytes."""
MAX_REASON_CHARS = 1_000


class JournalWriter:
    """The only writer of a log. Not thread-safe; `append` may run in any thread.

    The writer never refuses rows because of the budget, since they have been received already. Check `room` before
    requesting more from the publisher.
    """

    def __init__(
        self,
        folder: Path,
        budget_bytes: int,
        segment_bytes: int,
        fsync: bool,
        clock: Callable[[], float],
        lock: Lock | None,
    ) -> None:
        self._folder = folder
        self._budget = budget_bytes
        # Even a small budget is freed in steps.
        self._segment_bytes = min(segment_bytes, max(budget_bytes // 4, 1))
        self._fsync = fsync
        self._clock = clock
        self._position = 0
        self._state: bytes | None = None
        self._sealed: list[Extent] = []
        self._first = 0
        self._segment: SegmentFile | None = None
        self._mark = Mark(0, 0, 0, "")
        self._mark_file: MarkFile | None = None
        self._head = ""
        self._last_time: int | None = None
        self._committed = 0
        self._identity: Identity
        with disk_errors(folder, "be created"):
            make_folder(folder, fsync=fsync)
            if fsync:
                sync_folder(folder.parent)
        self._lock = lock or Lock(folder / LOCK)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        source: str,
        *,
        request: Request | None = None,
        accept_loss: bool = False,
        budget_bytes: int = DEFAULT_BUDGET_BYTES,
        segment_bytes: int = DEFAULT_SEGMENT_BYTES,
        fsync: bool = True,
        clock: Callable[[], float] = time.time,
        lock: Lock | None = None,
    ) -> JournalWriter:
        """Open or create a log for writing. An incomplete batch left by a crash is cut off.

        Args:
            path: The journal's folder, on a local or mounted disk.
            source: The log's name in it: one per collector.
            request: The request that the log collects. A new log records it; a log that collects another request is
                refused. With None, any log is opened.
            accept_loss: Open the log even if it is damaged: a gap records the lost positions, which are not used again.
                Damaged bytes stay in place, or in files named `*.damaged`.
            budget_bytes: Bytes of rows that readers have not committed; beyond it, `room` is false.
            segment_bytes: When to start another file; at most a quarter of the budget.
            fsync: Whether `append` waits for the disk. Without it, rows survive the death of the process, but not a
                power cut.
            clock: Returns the current time in seconds since 1970.
            lock: The log's lock, if the caller already holds it; the writer closes it.

        Returns:
            The writer, which is also a context manager. Read its `state` and `position`, then append.

        Raises:
            JournalLocked: Another process writes to this log.
            JournalMismatch: The log collects another request.
            JournalCorrupt: The log is damaged, according to its headers.
            DiskFull: There is no space for an empty log.
            JournalError: The folder cannot be written to.

        """
        if budget_bytes < 1 or segment_bytes < 1:
            raise LocalError(
                f"budget_bytes is {budget_bytes} and segment_bytes is {segment_bytes}; both must be at least 1"
            )
        writer = cls(log_folder(path, source), budget_bytes, segment_bytes, fsync, clock, lock)
        try:
            writer._identify(request)
            writer._continue(writer._recovered(accept_loss))
        except BaseException:
            writer.close()
            raise
        return writer

    def _identify(self, request: Request | None) -> None:
        """Check that the log collects `request`; write the identity of a new log before anything else."""
        identity = load(self._folder)
        if identity is not None:
            if request is not None:
                request.check(identity, self._folder)
        elif LogFolder.local(self._folder).segments():
            raise without_identity(self._folder)
        else:
            identity = create(self._folder, request, fsync=self._fsync)
        self._identity = identity

    def _recovered(self, accept_loss: bool) -> Tail:
        """Return the end of the log. Damage is recorded as lost if that is accepted, and raised if not."""
        condition = examine(LogFolder.local(self._folder), self.uuid, last_commit(self._folder, self.uuid))
        if condition.error is not None and not accept_loss:
            raise condition.error
        for gap in accept(self._folder, condition.lost, self._clock(), condition.tail):
            _log.warning("%s: a gap at position %d: %s", self._folder, gap.position, gap.reason)
        if condition.mark_is_damaged:
            set_aside(self._folder / DURABLE)
        return condition.tail

    def _continue(self, tail: Tail) -> None:
        """Continue at the log's end as found by recovery, and update the disk accordingly."""
        self._position, self._state, self._first = tail.position, tail.state, tail.first
        self._head, self._last_time = tail.head, tail.last_time
        with disk_errors(self._folder, "be written to"):
            for leftover in self._folder.glob(f"*{TEMPORARY}"):
                leftover.unlink()
            for first in tail.leftovers if tail.size else [*tail.leftovers, tail.first]:
                set_aside(self._folder / segment_name(first))
            segments = LogFolder.local(self._folder).segments()
            ends = segments if tail.size else [*segments, (tail.first, 0)]
            self._sealed = [Extent(first, end, size) for (first, size), (end, _) in pairwise(ends)]
            self.refresh()
            if tail.size:
                path = self._folder / segment_name(tail.first)
                self._segment = SegmentFile.reopen(path, tail.size, fsync=self._fsync)
            self._mark = Mark(tail.first, tail.size, tail.position, tail.head)
            self._mark_file = MarkFile(self._folder / DURABLE, self._mark, fsync=self._fsync)
            if self._fsync:
                sync_folder(self._folder)
        if tail.torn:
            _log.info("%s: cut %d bytes of an unfinished batch at %d", path, tail.torn, tail.position)

    @property
    def _size(self) -> int:
        return self._segment.size if self._segment else 0

    @property
    def uuid(self) -> str:
        """The log's UUID, which is written once, when the log is created."""
        return self._identity.uuid

    @property
    def position(self) -> int:
        """The position of the next row, as last returned by `append`."""
        return self._position

    @property
    def state(self) -> bytes | None:
        """The last recorded state, of this process or an earlier one; None if there was none."""
        return self._state

    @property
    def used_bytes(self) -> int:
        """Bytes of rows that the slowest reader has not committed, as of the last `refresh`; nearly exact.

        Without a reader, all rows count.
        """
        return bytes_between(self._extents(), self._committed, self._position)

    @property
    def free_bytes(self) -> int:
        """Bytes left in the budget; never less than 0."""
        return max(0, self._budget - self.used_bytes)

    def room(self) -> bool:
        """Return True if the budget is not used up. Otherwise request no more items, and call `refresh` regularly."""
        return self.used_bytes < self._budget

    def refresh(self) -> None:
        """Read the positions that readers have committed: rows below them no longer count."""
        self._committed = min(commits(self._folder).values(), default=0)
        self._sealed = [extent for extent in self._sealed if extent.end > self._committed]

    def append(self, batch: pa.RecordBatch, stream: str, state: bytes | None = None) -> int:
        """Append items as one batch. They are on disk when this returns; only then inform the publisher.

        Each call costs a write to disk, and readers a little per batch: collect several thousand items per call if they
        arrive that fast.

        Args:
            batch: Columns `data` and `metadata`, both binary; metadata is null for items without it.
            stream: The source of the items; it becomes a column.
            state: Recorded with the items, and restored in `state` after a crash; None keeps the last one.

        Returns:
            The position after the last item.

        Raises:
            DiskFull: There is no space. Nothing was appended; call again when there is.
            JournalError: The disk failed. Nothing was appended.
            LocalError: `batch` has other columns, or the state is too long.

        """
        now = int(self._clock() * 1_000_000)
        rows = tabulate(batch, stream, self._position, now)
        self._write(rows, self._note(rows.num_rows, now, state))
        return self._position

    def append_gap(self, reason: str, state: bytes | None = None) -> int:
        """Record that items were lost between the last row and the next one.

        Args:
            reason: The reason, for people; at most a thousand characters are kept.
            state: As for `append`.

        Returns:
            The position of the gap: that of the next row.

        Raises:
            DiskFull: There is no space. Nothing was recorded; call again when there is.
            JournalError: The disk failed. Nothing was recorded.

        """
        now = int(self._clock() * 1_000_000)
        rows = tabulate(NO_ITEMS, "", self._position, now)
        self._write(rows, self._note(0, now, state, reason[:MAX_REASON_CHARS]))
        return self._position

    def close(self) -> None:
        """Close the log for the next writer. May be called twice."""
        with disk_errors(self._folder, "be closed"):
            try:
                if self._mark_file is not None:
                    self._mark_file.close()
            finally:
                self._mark_file = None
                if self._segment is not None:
                    self._segment.close()
                    self._segment = None
                self._lock.close()

    def __enter__(self) -> JournalWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _note(self, rows: int, now: int, state: bytes | None, gap: str | None = None) -> Note:
        if state is not None and len(state) > MAX_STATE_BYTES:
            raise LocalError(f"the collector's state is {len(state)} bytes long; the limit is {MAX_STATE_BYTES}")
        return Note.blank(
            prev=self._head,
            position=self._position,
            rows=rows,
            time=now,
            state=self._state if state is None else state,
            gap=gap,
            previous=None if rows else self._last_time,
        )

    def _extents(self) -> list[Extent]:
        return [*self._sealed, Extent(self._first, self._position, self._size)]

    def _write(self, rows: pa.RecordBatch, note: Note) -> None:
        if self._mark_file is None:
            raise JournalError(f"{self._folder}: the writer is closed; open the log again")
        batch = encode(rows, note)
        size = len(batch.header) + batch.body.size
        with disk_errors(self._folder, f"store a batch of {size} bytes"):
            # A segment without rows is continued, because the next one would have the same name.
            full = self._size + size > self._segment_bytes and self._position > self._first
            if self._segment is None or full:
                self._roll(batch, note.rows)
            else:
                self._extend(self._segment, batch, note.rows)
        self._position += note.rows
        self._state = note.state
        self._head = batch.digest
        if note.rows:
            self._last_time = note.time

    def _extend(self, segment: SegmentFile, batch: Encoded, rows: int) -> None:
        before = segment.size
        segment.append([batch.header, memoryview(batch.body)])
        mark = Mark(self._first, segment.size, self._position + rows, batch.digest)
        self._publish(mark, lambda: segment.cut(before))

    def _roll(self, batch: Encoded, rows: int) -> None:
        path = self._folder / segment_name(self._position)
        chunks: list[bytes | memoryview] = [preamble(self.uuid), batch.header, memoryview(batch.body)]
        segment = SegmentFile.create(path, chunks, fsync=self._fsync)
        self._publish(Mark(self._position, segment.size, self._position + rows, batch.digest), segment.discard)
        if self._segment is not None:
            self._sealed.append(Extent(self._first, self._position, self._segment.size))
            self._segment.close()
        self._first = self._position
        self._segment = segment

    def _publish(self, mark: Mark, undo: Callable[[], None]) -> None:
        """Publish the durable end to readers; undo the append if that fails."""
        assert self._mark_file is not None
        try:
            self._mark_file.write(mark)
        except OSError:
            # Less than a slot was written, so the other one is valid.
            undo()
            raise
        except BaseException:
            # The slot may have been written. Until another one is, the data that it describes must stay.
            self._mark_file.write(self._mark)
            undo()
            raise
        self._mark = mark
