"""Writing a log: rows are on disk when `append` returns."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from ..errors import JournalError, LocalError
from .budget import Budget
from .disk import disk_errors, make_folder, sync_folder
from .durability import Replica, Staged
from .encoder import Encoded, Rows, encode, rows_in
from .format import NO_ITEMS, Note
from .identity import Identity, Request
from .layout import LOCK, Extent, log_folder
from .lock import Lock
from .recovery import Tail
from .reopening import complete_segments, identified, recovered
from .replay import Reliance, replay
from .tip import Tip

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
        source: str,
        budget_bytes: int,
        segment_bytes: int,
        segment_seconds: float,
        fsync: bool,
        clock: Callable[[], float],
        lock: Lock | None,
        replica: Replica | None,
    ) -> None:
        self.source = source
        self._folder = folder
        self._replica = replica
        self._budget = Budget(folder, budget_bytes)
        # Even a small budget is freed in steps.
        self._segment_bytes = min(segment_bytes, max(budget_bytes // 4, 1))
        self._segment_seconds = segment_seconds
        # Of a segment that exists already it is not known: then it is when this writer first appends.
        self._segment_begun: int | None = None
        self._fsync = fsync
        self._clock = clock
        self._position = 0
        self._state: bytes | None = None
        self._tip: Tip | None = None
        self._head = ""
        self._last_time: int | None = None
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
        segment_seconds: float = float("inf"),
        fsync: bool = True,
        clock: Callable[[], float] = time.time,
        lock: Lock | None = None,
        replica: Replica | None = None,
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
            segment_seconds: Start another file at the next append when the last one is older than this.
            fsync: Whether `append` waits for the disk. Without it, rows survive the death of the process, but not a
                power cut.
            clock: Returns the current time in seconds since 1970.
            lock: The log's lock, if the caller already holds it; the writer closes it.
            replica: Keeps the log elsewhere: rows are there when `append` returns, and this machine does not sync them.

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
        fsync = fsync and replica is None
        writer = cls(
            log_folder(path, source), source, budget_bytes, segment_bytes, segment_seconds, fsync, clock, lock, replica
        )
        try:
            writer._identity = identified(writer._folder, request, fsync=fsync)
            replay(writer._folder, writer.uuid)
            writer._continue(recovered(writer._folder, writer.uuid, clock(), accept_loss=accept_loss))
            if replica is not None:
                replica.adopt(writer)
                # All batches may be in sealed segments, and none on this machine.
                writer._state = replica.state(source) if writer._state is None else writer._state
        except BaseException:
            writer.close()
            raise
        return writer

    def _continue(self, tail: Tail) -> None:
        """Continue at the log's end as found by recovery, and update the disk accordingly."""
        self._position, self._state = tail.position, tail.state
        self._head, self._last_time = tail.head, tail.last_time
        self._budget.begin(complete_segments(self._folder, tail))
        self._tip = Tip(self._folder, self.uuid, tail, fsync=self._fsync)
        if tail.torn:
            _log.info("%s: cut %d bytes of an unfinished batch at %d", self._folder, tail.torn, tail.position)

    @property
    def folder(self) -> Path:
        """The log's folder."""
        return self._folder

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
        return self._budget.used(self._extent())

    @property
    def free_bytes(self) -> int:
        """Bytes left in the budget; never less than 0."""
        return self._budget.free(self._extent())

    def room(self) -> bool:
        """Return True if the budget is not used up. Otherwise request no more items, and call `refresh` regularly."""
        return self._budget.has_room(self._extent())

    def refresh(self) -> None:
        """Read the positions that readers have committed: rows below them no longer count, nor do rows in a store."""
        self._budget.refresh()

    def is_old(self) -> bool:
        """Return True if the last segment has rows, and the next append starts another one because of its age."""
        tip = self._opened()
        return tip.started and self._position > tip.first and self._segment_age(int(self._clock() * 1e6)) >= 0

    def append(self, batch: Rows, stream: str, state: bytes | None = None) -> int:
        """Append items as one batch. They are on disk when this returns; only then inform the publisher.

        Each call costs a write to disk, and readers a little per batch: collect several thousand items per call if they
        arrive that fast.

        Args:
            batch: Columns `data` and `metadata`, both binary; metadata is null for items without it. Or their buffers.
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
        self._write(batch, stream, self._note(rows_in(batch), now, state))
        return self._position

    def renew(self) -> None:
        """Record the state again: a batch without rows. It completes a segment that is old."""
        now = int(self._clock() * 1_000_000)
        self._write(NO_ITEMS, "", self._note(0, now, None))

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
        self._write(NO_ITEMS, "", self._note(0, now, state, reason[:MAX_REASON_CHARS]))
        return self._position

    def stage(self, batch: Rows, stream: str, state: bytes | None = None) -> Staged | None:
        """Write items as `append` does, but do not wait for the disk.

        Make the record of the result durable, then `publish` it; or `cancel` it. Nothing else may be appended before.

        Returns:
            The staged append. None if it is appended and durable, because it started a segment, or nothing is synced;
            a log with a replica is always staged.

        """
        now = int(self._clock() * 1_000_000)
        note = self._note(rows_in(batch), now, state)
        encoded = encode(batch, stream, note)
        if self._replica is None and (not self._fsync or self._rolls(self._opened(), encoded, now)):
            self._append(encoded, note)
            return None
        return self._staged(encoded, note)

    def _staged(self, encoded: Encoded, note: Note) -> Staged:
        tip = self._opened()
        if not self._rolls(tip, encoded, note.time):
            return Staged(self, tip.stage(encoded), encoded.digest, note, None)
        before = Extent(tip.first, self._position, tip.size)
        return Staged(self, tip.start(encoded, self._position), encoded.digest, note, before)

    def publish(self, staged: Staged) -> int:
        """Publish a staged append, whose record is durable, to readers; return the position after its last item.

        Raises:
            DiskFull: There is no space. Nothing was appended.
            JournalError: The disk failed. Nothing was appended.

        """
        self._opened().publish(staged.record, staged.digest, self._position + staged.note.rows)
        if staged.replaces is not None:
            self._started(staged.replaces, staged.note.time)
        self._appended(staged.digest, staged.note)
        return self._position

    def cancel(self, staged: Staged) -> None:
        """Remove a staged append that did not become durable."""
        self._opened().cancel(staged.record)

    def rely_on(self, reliance: Reliance) -> None:
        """Record, durably, that redo files will have appends of this log which its segment may lack."""
        self._opened().rely_on(reliance)

    def settle(self) -> None:
        """Make all appends durable in the segment, so that no redo file is needed."""
        if self._tip is not None:
            self._opened().settle()

    def sync(self) -> None:
        """Make all appends so far durable in the segment."""
        if self._tip is not None:
            self._opened().sync()

    def close(self) -> None:
        """Close the log for the next writer. May be called twice. A forked process leaves it to its parent."""
        try:
            if self._tip is not None and not self._lock.inherited:
                self._tip.close()
        finally:
            with disk_errors(self._folder, "be closed"):
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

    def _extent(self) -> Extent | None:
        """Return the last segment; None if the writer is closed."""
        return None if self._tip is None else Extent(self._tip.first, self._position, self._tip.size)

    def _opened(self) -> Tip:
        if self._tip is None:
            raise JournalError(f"{self._folder}: the writer is closed; open the log again")
        if self._lock.inherited:
            raise JournalError(
                f"{self._folder}: the writer belongs to the process that was forked; open another source in this one"
            )
        return self._tip

    def _write(self, batch: Rows, stream: str, note: Note) -> None:
        encoded = encode(batch, stream, note)
        if self._replica is None:
            self._append(encoded, note)
            return
        staged = self._staged(encoded, note)
        try:
            self._replica.write([staged])
        except BaseException:
            self.cancel(staged)
            raise
        self.publish(staged)

    def _rolls(self, tip: Tip, batch: Encoded, now: int) -> bool:
        """Return True if a batch starts another segment."""
        # A segment without rows is continued, because the next one would have the same name.
        full = self._segment_age(now) >= 0 or tip.size + batch.size > self._segment_bytes
        return (full and self._position > tip.first) or not tip.started

    def _segment_age(self, now: int) -> float:
        """Return the seconds since the last segment could be complete; negative before."""
        if self._segment_begun is None or now < self._segment_begun:
            # The clock may have gone back: the segment must not wait for that time to come again.
            self._segment_begun = now
        return (now - self._segment_begun) / 1e6 - self._segment_seconds

    def _append(self, batch: Encoded, note: Note) -> None:
        tip = self._opened()
        end = self._position + note.rows
        if self._rolls(tip, batch, note.time):
            before = Extent(tip.first, self._position, tip.size)
            tip.roll(batch, self._position, end)
            self._started(before, note.time)
        else:
            tip.append(batch, end)
        self._appended(batch.digest, note)

    def _started(self, before: Extent, now: int) -> None:
        """Count the segment that ends before one that was started now."""
        self._segment_begun = now
        if before.size:
            self._budget.add(before)

    def _appended(self, digest: str, note: Note) -> None:
        self._position += note.rows
        self._state = note.state
        self._head = digest
        if note.rows:
            self._last_time = note.time
