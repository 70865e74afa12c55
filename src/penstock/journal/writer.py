"""Writing a log: what append returns for is on the disk."""

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
from .format import NO_ITEMS, Encoded, Note, encode, preamble, tabulate
from .identity import Identity, Request, create, load, without_identity
from .layout import (
    DURABLE,
    LOCK,
    Extent,
    bytes_between,
    log_folder,
    segment_name,
)
from .lock import Lock
from .losses import accept, examine, set_aside
from .mark import Mark, MarkFile
from .recovery import Tail
from .retention import commits, last_commit
from .segment import TEMPORARY, SegmentFile
from .storage import LogFolder

__all__ = ["DEFAULT_BUDGET_BYTES", "DEFAULT_SEGMENT_BYTES", "MAX_STATE_BYTES", "JournalWriter"]

_log = logging.getLogger(__name__)

MIB = 1024 * 1024
DEFAULT_BUDGET_BYTES = 256 * MIB
"""A minute of a stream of 4 MiB/s: as long as a reader may be away without slowing its publisher."""
DEFAULT_SEGMENT_BYTES = 64 * MIB
"""What trimming frees at once; small enough to go in steps, large enough that files are few."""
MAX_STATE_BYTES = 64 * 1024
"""Of the collector's state: a resume token, which RSocket limits to 65,535 bytes, is the most of it."""
MAX_REASON_CHARS = 1_000


class JournalWriter:
    """The one writer of a log. Not for several threads at once; `append` may run in any thread.

    The writer never refuses rows for the budget's sake, because they have been received: whoever feeds it asks
    `room` before it asks its publisher for more.
    """

    def __init__(
        self,
        folder: Path,
        *,
        budget_bytes: int,
        segment_bytes: int,
        fsync: bool,
        clock: Callable[[], float],
        lock: Lock | None = None,
    ) -> None:
        self._folder = folder
        self._budget = budget_bytes
        # So that even a small budget is freed in steps.
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
        with disk_errors(folder, "be made"):
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
        """Open a log for writing; it is made if need be. What a crash left half written is cut off.

        Args:
            path: The journal's folder, on a disk of this machine or one that is mounted.
            source: The log's name in it: one a collector.
            request: What the log collects. A new log records it; one that collects another request is refused.
                None opens any log.
            accept_loss: Open the log although it is damaged: a gap names the positions that are lost, and no
                other rows ever get them. Damaged bytes stay where they are, or in files named `*.damaged`.
            budget_bytes: Bytes of rows that readers have not committed, beyond which there is no `room`.
            segment_bytes: When to begin another file; at most a quarter of the budget.
            fsync: Whether `append` waits for the disk. Without it rows survive the death of the process,
                but not a power cut.
            clock: Says what time it is, in seconds since 1970.
            lock: The log's, if the caller holds it already; the writer closes it.

        Returns:
            The writer, which is also a context manager. Look at its `state` and `position`, then append.

        Raises:
            JournalLocked: Somebody else writes to this log.
            JournalMismatch: The log collects another request.
            JournalCorrupt: The log is damaged, as far as its headers tell.
            DiskFull: There is no room for an empty log.
            JournalError: The folder cannot be written to.

        """
        if budget_bytes < 1 or segment_bytes < 1:
            raise LocalError(
                f"budget_bytes is {budget_bytes} and segment_bytes is {segment_bytes}; both must be at least 1"
            )
        writer = cls(
            log_folder(path, source),
            budget_bytes=budget_bytes,
            segment_bytes=segment_bytes,
            fsync=fsync,
            clock=clock,
            lock=lock,
        )
        try:
            writer._identify(request)
            writer._go_on(writer._recovered(accept_loss))
        except BaseException:
            writer.close()
            raise
        return writer

    def _identify(self, request: Request | None) -> None:
        """Make sure that the log collects `request`; a new one is given its identity, before anything else."""
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
        """Return where the log ends. What is damaged is recorded as lost if that is accepted.

        Raises:
            JournalCorrupt: It is not.

        """
        condition = examine(LogFolder.local(self._folder), self.uuid, last_commit(self._folder, self.uuid))
        if condition.error is not None and not accept_loss:
            raise condition.error
        for gap in accept(self._folder, condition.lost, self._clock(), condition.tail):
            _log.warning("%s: a gap at position %d: %s", self._folder, gap.position, gap.reason)
        if condition.mark_is_damaged:
            set_aside(self._folder / DURABLE)
        return condition.tail

    def _go_on(self, tail: Tail) -> None:
        """Continue where recovery found the log's end, and make the disk agree with it."""
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
        """The log's: it is written once, when the log is created."""
        return self._identity.uuid

    @property
    def position(self) -> int:
        """Of the next row: what `append` returned last."""
        return self._position

    @property
    def state(self) -> bytes | None:
        """The state that was recorded last, in this process or before it; None if there was none."""
        return self._state

    @property
    def used_bytes(self) -> int:
        """Bytes of rows that the slowest reader has not committed, as of the last `refresh`; nearly exact.

        While there is no reader at all, these are all the rows.
        """
        return bytes_between(self._extents(), self._committed, self._position)

    @property
    def free_bytes(self) -> int:
        """Bytes that the budget has left; never less than 0."""
        return max(0, self._budget - self.used_bytes)

    def room(self) -> bool:
        """Return whether the budget has anything left. If not, ask for no more items, and `refresh` now and then."""
        return self.used_bytes < self._budget

    def refresh(self) -> None:
        """Look how far the readers have committed: what they need no more is free again."""
        self._committed = min(commits(self._folder).values(), default=0)
        self._sealed = [extent for extent in self._sealed if extent.end > self._committed]

    def append(self, batch: pa.RecordBatch, stream: str, state: bytes | None = None) -> int:
        """Append items as one batch. They are on the disk when this returns; only then tell the publisher.

        Every call costs a write to the disk, and readers a little for every batch: gather some thousand items
        for each, where they come that fast.

        Args:
            batch: Columns `data` and `metadata`, both binary; metadata is null where there is none.
            stream: Whence the items came; it becomes a column.
            state: Recorded with the items, to be found in `state` after a crash; None leaves it as it was.

        Returns:
            The position behind the last of the items.

        Raises:
            DiskFull: There is no room. Nothing was appended; call again when there is.
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
            reason: Why, for people; a thousand characters at most are kept.
            state: As for `append`.

        Returns:
            The position of the gap: that of the next row.

        Raises:
            DiskFull: There is no room. Nothing was recorded; call again when there is.
            JournalError: The disk failed. Nothing was recorded.

        """
        now = int(self._clock() * 1_000_000)
        rows = tabulate(NO_ITEMS, "", self._position, now)
        self._write(rows, self._note(0, now, state, reason[:MAX_REASON_CHARS]))
        return self._position

    def close(self) -> None:
        """Close the log, for the next writer. Twice is fine."""
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
            raise LocalError(f"the collector's state is {len(state)} bytes long; {MAX_STATE_BYTES} are the most")
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
        with disk_errors(self._folder, f"take a batch of {size} bytes"):
            # A segment without rows goes on: the next one would bear the same name.
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

    def _publish(self, mark: Mark, take_back: Callable[[], None]) -> None:
        """Let readers see what is durable by now; what they cannot be shown is taken back."""
        assert self._mark_file is not None
        try:
            self._mark_file.write(mark)
        except OSError:
            # Less than a slot was written, and so the other one counts.
            take_back()
            raise
        except BaseException:
            # The slot may be written. Until it is not, what it tells of must stay.
            self._mark_file.write(self._mark)
            take_back()
            raise
        self._mark = mark
