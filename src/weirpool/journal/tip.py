"""The end of a log on disk: the segment that grows, and the mark.

A batch is appended in one step, and is then durable in its segment. Or it is staged: written without a sync. It becomes
durable elsewhere, in a redo file or on another machine, together with batches of other logs, and is then published.
Until the segment is synced, the file `_unsynced` in the log's folder names the redo files, so that the next writer
completes the segment from them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import RLock
from types import TracebackType

from ..errors import JournalError
from .disk import converted, disk_errors, replace_file, sync_folder
from .encoder import Encoded
from .format import preamble
from .layout import DURABLE, UNSYNCED, segment_name
from .mark import Mark, MarkFile
from .records import Record
from .recovery import Tail
from .replay import Reliance
from .segment import SegmentFile

__all__ = ["Tip"]


class _Guard:
    """A block that works on the files of a tip."""

    # A generator would take longer than the write inside the block.
    __slots__ = ("_action", "_lock", "_tip")

    def __init__(self, tip: Tip, action: str, lock: RLock) -> None:
        self._tip = tip
        self._action = action
        self._lock = lock

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if error is not None and (failure := self._tip.failed(error, self._action)) is not error:
                raise failure from error
        finally:
            self._lock.release()


class Tip:
    """The end of a log on disk, for its writer.

    Opening it cuts a torn tail. Its methods raise `JournalError`. Any thread may `sync` or `settle` it at any time.

    Attributes:
        first: The position of the first row of the segment.

    """

    def __init__(self, folder: Path, uuid: str, tail: Tail, *, fsync: bool) -> None:
        self._folder = folder
        self._uuid = uuid
        self._fsync = fsync
        self._lock = RLock()
        self._segment: SegmentFile | None = None
        # A segment that a staged batch starts.
        self._next: SegmentFile | None = None
        self._mark_file: MarkFile | None = None
        # The redo files that `_unsynced` names.
        self._redo = ""
        self.first = tail.first
        self._mark = Mark(tail.first, tail.size, tail.position, tail.head)
        try:
            with disk_errors(folder, "be written to"):
                if tail.size:
                    path = folder / segment_name(tail.first)
                    self._segment = SegmentFile.reopen(path, tail.size, fsync=fsync)
                self._mark_file = MarkFile(folder / DURABLE, self._mark, fsync=fsync)
                if fsync:
                    sync_folder(folder)
        except BaseException:
            self._abandon()
            raise

    @property
    def size(self) -> int:
        """Bytes of the segment."""
        return self._segment.size if self._segment else 0

    @property
    def started(self) -> bool:
        """True if the segment exists."""
        return self._segment is not None

    def append(self, batch: Encoded, end: int) -> None:
        """Append a batch, which ends before position `end`, durably, and publish it. On an error it is not there."""
        segment = self._started()
        before = segment.size
        with self._errors(f"store a batch of {batch.size} bytes"):
            segment.append(batch.chunks)
            self._publish(Mark(self.first, segment.size, end, batch.digest), lambda: segment.cut(before))

    def roll(self, batch: Encoded, position: int, end: int) -> None:
        """Start another segment with a batch, which begins at `position`; otherwise like `append`."""
        self.publish(self.start(batch, position), batch.digest, end)

    def start(self, batch: Encoded, position: int) -> Record:
        """Stage a batch as the first one of another segment, which begins at `position`. This segment is synced."""
        self._open()
        start = preamble(self._uuid)
        with self._errors(f"store a batch of {batch.size} bytes"):
            if self._segment is not None and self._segment.unsynced:
                self._segment.sync()
            path = self._folder / segment_name(position)
            self._next = SegmentFile.create(path, [start, *batch.chunks], fsync=self._fsync)
        return Record(self._uuid, position, len(start), batch.chunks)

    def stage(self, batch: Encoded) -> Record:
        """Write a batch to the segment without a sync, and return it as a record. `publish` or `cancel` it next."""
        segment = self._started()
        offset = segment.size
        with self._errors(f"store a batch of {batch.size} bytes"):
            segment.append(batch.chunks, sync=False)
        return Record(self._uuid, self.first, offset, batch.chunks)

    def publish(self, record: Record, digest: str, end: int) -> None:
        """Publish a staged batch after it became durable elsewhere. On an error it is not there."""
        with self._errors("publish a batch"):
            mark = Mark(record.segment, record.offset + record.size, end, digest)
            self._publish(mark, lambda: self.cancel(record))
            if self._next is not None:
                if self._segment is not None:
                    self._segment.close()
                self.first, self._segment, self._next = record.segment, self._next, None

    def cancel(self, record: Record) -> None:
        """Remove a staged batch. Redo files may have it: no later batch may rely on them, so the segment is settled."""
        with self._lock:
            if self._next is not None:
                self._next.discard()
                self._next = None
            elif self._segment is not None:
                self._segment.cut(record.offset)
                with suppress(JournalError):
                    self.settle()

    def rely_on(self, reliance: Reliance) -> None:
        """Record, durably, that the segment may be incomplete after a power cut without these redo files."""
        if reliance.redo != self._redo:
            self.settle()
            with self._errors("be written to"):
                replace_file(self._folder / UNSYNCED, reliance.encode())
            self._redo = reliance.redo

    def sync(self) -> None:
        """Make all batches durable in the segment."""
        with self._errors("be synced"):
            if self._segment is None and self._redo:
                raise JournalError(f"{self._folder}: its last writer could not sync it; open the log again")
            if self._segment is not None and self._segment.unsynced:
                self._segment.sync()

    def settle(self) -> None:
        """Make all batches durable in the segment, and rely on redo files no more.

        If that fails, nothing more can be appended: the next writer completes the segment from the redo files.
        """
        with self._lock:
            try:
                self.sync()
                if self._redo:
                    with self._errors("be written to"):
                        (self._folder / UNSYNCED).unlink(missing_ok=True)
                        sync_folder(self._folder)
                    self._redo = ""
            except BaseException:
                self._abandon()
                raise

    def close(self) -> None:
        """Settle and close the files. May be called twice."""
        with self._lock:
            if self._mark_file is None:
                return
            try:
                self.settle()
            finally:
                with disk_errors(self._folder, "be closed"):
                    self._release()

    def _open(self) -> None:
        if self._mark_file is None:
            raise JournalError(f"{self._folder}: the writer is closed; open the log again")

    def _started(self) -> SegmentFile:
        self._open()
        assert self._segment is not None
        return self._segment

    def _errors(self, action: str) -> _Guard:
        """Hold the lock in a block, and convert errors of the disk; see `failed`."""
        return _Guard(self, action, self._lock)

    def failed(self, error: BaseException, action: str) -> BaseException:
        """Return what to raise for an error of the disk.

        If bytes that only a redo file has may be gone, the rest is left to recovery.
        """
        if self._segment is not None and self._segment.failed:
            self._abandon()
        return converted(error, self._folder, action) if isinstance(error, OSError) else error

    def _abandon(self) -> None:
        """Close the files as they are."""
        with suppress(OSError):
            self._release()

    def _release(self) -> None:
        mark_file, self._mark_file = self._mark_file, None
        segments, self._segment, self._next = (self._segment, self._next), None, None
        try:
            if mark_file is not None:
                mark_file.close()
        finally:
            for segment in segments:
                if segment is not None:
                    segment.close()

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
