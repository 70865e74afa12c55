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

from ..errors import JournalCorrupt, JournalError, LocalError
from .disk import disk_errors, make_folder, open_private, sync_folder, write_at
from .format import NO_ITEMS, PREAMBLE, Note, encode, tabulate
from .identity import Identity, Request, create, load, without_identity
from .layout import (
    COMMITTED,
    DURABLE,
    LOCK,
    Extent,
    Mark,
    bytes_between,
    log_folder,
    segment_name,
)
from .lock import Lock
from .recovery import Tail, recover
from .retention import commits
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
        self._mark_fd = -1
        self._committed = 0
        self._identity: Identity
        with disk_errors(folder, "be made"):
            make_folder(folder)
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
            JournalCorrupt: Nobody can tell where the log ends, or what it is.
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
            writer._go_on(recover(writer._folder))
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

    def _go_on(self, tail: Tail | None) -> None:
        """Continue where recovery found the log's end, and make the disk agree with it."""
        if tail is not None:
            self._position, self._state, self._first = tail.position, tail.state, tail.first
        segments = LogFolder.local(self._folder).segments()
        self._sealed = [Extent(first, end, size) for (first, size), (end, _) in pairwise(segments)]
        self.refresh()
        if self._committed > self._position:
            raise JournalCorrupt(
                f"{self._folder}: a reader has committed position {self._committed}, but the log ends at "
                f"{self._position}; restore its files, or remove {COMMITTED} if readers may see positions again"
            )
        with disk_errors(self._folder, "be written to"):
            for leftover in self._folder.glob(f"*{TEMPORARY}"):
                leftover.unlink()
            if tail is not None:
                path = self._folder / segment_name(tail.first)
                self._segment = SegmentFile.reopen(path, tail.size, fsync=self._fsync)
            self._mark_fd = open_private(self._folder / DURABLE, os.O_WRONLY)
            self._publish(self._first, tail.size if tail else 0)
            if self._fsync:
                os.fsync(self._mark_fd)
                sync_folder(self._folder)
        if tail is not None and tail.missing:
            _log.warning("%s: %d bytes are missing at the end; it goes on at %d", path, tail.missing, tail.position)
        elif tail is not None and tail.torn:
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
        note = Note.blank(position=self._position, rows=rows.num_rows, time=now, state=self._next_state(state))
        self._write(rows, note)
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
        note = Note.blank(
            position=self._position, rows=0, time=now, state=self._next_state(state), gap=reason[:MAX_REASON_CHARS]
        )
        self._write(rows, note)
        return self._position

    def close(self) -> None:
        """Close the log, for the next writer. Twice is fine."""
        with disk_errors(self._folder, "be closed"):
            try:
                if self._mark_fd >= 0 and self._fsync:
                    os.fsync(self._mark_fd)
            finally:
                if self._mark_fd >= 0:
                    os.close(self._mark_fd)
                    self._mark_fd = -1
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

    def _next_state(self, state: bytes | None) -> bytes | None:
        if state is not None and len(state) > MAX_STATE_BYTES:
            raise LocalError(f"the collector's state is {len(state)} bytes long; {MAX_STATE_BYTES} are the most")
        return self._state if state is None else state

    def _extents(self) -> list[Extent]:
        return [*self._sealed, Extent(self._first, self._position, self._size)]

    def _write(self, rows: pa.RecordBatch, note: Note) -> None:
        if self._mark_fd < 0:
            raise JournalError(f"{self._folder}: the writer is closed; open the log again")
        header, body = encode(rows, note)
        chunks: list[bytes | memoryview] = [header, memoryview(body)]
        size = len(header) + body.size
        with disk_errors(self._folder, f"take a batch of {size} bytes"):
            # A segment without rows goes on: the next one would bear the same name.
            full = self._size + size > self._segment_bytes and self._position > self._first
            if self._segment is None or full:
                self._roll(chunks)
            else:
                self._extend(self._segment, chunks)
        self._position += note.rows
        self._state = note.state

    def _extend(self, segment: SegmentFile, chunks: list[bytes | memoryview]) -> None:
        before = segment.size
        segment.append(chunks)
        try:
            self._publish(self._first, segment.size)
        except BaseException:
            segment.cut(before)
            raise

    def _roll(self, chunks: list[bytes | memoryview]) -> None:
        path = self._folder / segment_name(self._position)
        segment = SegmentFile.create(path, [PREAMBLE, *chunks], fsync=self._fsync)
        try:
            self._publish(self._position, segment.size)
        except BaseException:
            segment.discard()
            raise
        if self._segment is not None:
            self._sealed.append(Extent(self._first, self._position, self._segment.size))
            self._segment.close()
        self._first = self._position
        self._segment = segment

    def _publish(self, first: int, size: int) -> None:
        """Let readers see what is durable by now."""
        write_at(self._mark_fd, [Mark(first, size).encode()], 0)
