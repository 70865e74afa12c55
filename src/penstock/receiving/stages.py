"""Staged rows: files beside a log, which nobody reads before they are committed."""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa

from ..errors import ApplicationError, Rejected
from ..journal.disk import disk_errors, make_folder, open_private, sync_folder, write_at
from ..journal.format import ITEMS
from .digest import RowDigest
from .messages import Stage

__all__ = ["DEFAULT_STAGE_BYTES", "DEFAULT_STAGE_SECONDS", "GONE", "StageFolder", "StageWriter"]

DEFAULT_STAGE_BYTES: Final = 4 * 1024**3
"""Rows that were staged and not committed: half of them may be of one query."""
DEFAULT_STAGE_SECONDS: Final = 3600.0
"""Longer than any micro-batch takes."""
MAX_STAGES: Final = 100_000
"""Stages at once; half of them may be of one query."""
RUN_BYTES: Final = 512
"""What a stage takes besides each batch of rows."""
GONE: Final = 0x301
"""The error code of a commit whose rows are not there."""
FOLDER: Final = "_stages"
SUFFIX: Final = ".stage"
PART: Final = ".part"


@dataclass(slots=True)
class Staged:
    """A stage, complete or being written."""

    path: Path
    query: str
    batch: int
    since: float
    """When it was begun; when it is complete, since when that is so."""
    size: int = 0
    complete: bool = False
    pinned: bool = False
    """A commit has begun: the rows are needed until it has ended."""


class StageFolder:
    """The stages of one log. Thread-safe.

    Args:
        log: The log's folder.
        limit: Maximum bytes of all stages; a query may use half of them.
        seconds: How long a stage is kept.
        fsync: Whether a stage is on disk when it is complete.
        clock: Returns the current time in seconds since 1970.

    """

    def __init__(
        self,
        log: Path,
        *,
        limit: int = DEFAULT_STAGE_BYTES,
        seconds: float = DEFAULT_STAGE_SECONDS,
        fsync: bool = True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._folder = log / FOLDER
        self._limit = limit
        self._seconds = seconds
        self._fsync = fsync
        self._clock = clock
        self._lock = threading.Lock()
        self._stages: dict[str, Staged] = {}
        self._used: Counter[str] = Counter()
        with disk_errors(self._folder, "be listed"):
            make_folder(self._folder, fsync=fsync)
            for path in self._folder.iterdir():
                self._find(path)

    @property
    def used_bytes(self) -> int:
        """Bytes of all stages."""
        with self._lock:
            return self._used.total()

    def begin(self, query: str, batch: int) -> StageWriter:
        """Return a writer for another stage.

        Raises:
            Rejected: There are too many.

        """
        name = uuid.uuid4().hex
        staged = Staged(self._folder / f"{query}~{batch}~{name}{SUFFIX}", query, batch, self._clock())
        with self._lock:
            own = sum(each.query == query for each in self._stages.values())
            if len(self._stages) >= MAX_STAGES or own >= MAX_STAGES // 2:
                raise Rejected(
                    message=f"{own} stages of query {query!r} and {len(self._stages)} of all queries are here; the "
                    f"limit is {MAX_STAGES}, half of it for a query: use fewer partitions"
                )
            self._stages[name] = staged
        return StageWriter(self, name, staged)

    def check(self, query: str, batch: int, stage: Stage) -> int:
        """Return the bytes of a stage's rows. From now on only :meth:`drop_until` removes it, unless it is released.

        Raises:
            ApplicationError: It is not there, or does not have these rows: the micro-batch must be staged again.

        """
        self._pin(query, batch, stage)
        digest, size = RowDigest(), 0
        for rows in self.batches(stage):
            digest.update(rows)
            size += rows.nbytes
        if (digest.rows, digest.hexdigest()) != (stage.rows, stage.digest):
            raise ApplicationError(
                GONE, f"stage {stage.id} does not have the {stage.rows} rows of the commit; run the micro-batch again"
            )
        return size

    def batches(self, stage: Stage) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a stage, which are not checked.

        Raises:
            ApplicationError: It is not there, or cannot be read.

        """
        with self._lock:
            staged = self._stages.get(stage.id)
        if staged is None:
            raise _gone(stage)
        with disk_errors(staged.path, "be read"):
            try:
                with pa.memory_map(str(staged.path)) as file, pa.ipc.open_stream(file) as reader:
                    yield from reader
            except pa.ArrowInvalid as error:
                raise ApplicationError(GONE, f"stage {stage.id} is damaged; run the micro-batch again") from error

    def release(self, stages: Iterable[Stage]) -> None:
        """Let stages of a commit that has come to nothing expire, or be dropped."""
        with self._lock:
            for stage in stages:
                if (staged := self._stages.get(stage.id)) is not None:
                    staged.pinned = False

    def drop(self, names: Iterable[str]) -> None:
        """Remove stages, unless they are being committed. Those that are not there are fine."""
        wanted = set(names)
        self._remove(lambda name, staged: name in wanted and not staged.pinned)

    def drop_until(self, query: str, batch: int) -> None:
        """Remove the complete stages of a query up to a micro-batch, which has been committed."""
        self._remove(lambda _, staged: staged.complete and staged.query == query and staged.batch <= batch)

    def expire(self) -> None:
        """Remove complete stages that are too old."""
        oldest = self._clock() - self._seconds
        self._remove(lambda _, staged: staged.complete and staged.since < oldest and not staged.pinned)

    def _remove(self, condition: Callable[[str, Staged], bool]) -> None:
        with self._lock:
            names = [name for name, staged in self._stages.items() if condition(name, staged)]
            found = {name: self._stages.pop(name) for name in names}
        try:
            for name in names:
                with disk_errors(found[name].path, "be removed"):
                    found[name].path.unlink(missing_ok=True)
                staged = found.pop(name)
                with self._lock:
                    self._count(staged.query, -staged.size)
        finally:
            # What could not be removed still counts, and is tried again.
            with self._lock:
                self._stages |= found

    def _count(self, query: str, size: int) -> None:
        self._used[query] += size
        if not self._used[query]:
            del self._used[query]

    def _pin(self, query: str, batch: int, stage: Stage) -> None:
        with self._lock:
            staged = self._stages.get(stage.id)
            if staged is None or not staged.complete or (staged.query, staged.batch) != (query, batch):
                raise _gone(stage)
            staged.pinned = True

    def reserve(self, staged: Staged, rows: pa.RecordBatch) -> None:
        """Count rows that are about to be written.

        Raises:
            Rejected: There is no room for them now.

        """
        size = rows.nbytes + RUN_BYTES
        with self._lock:
            total, own = self._used.total(), self._used[staged.query]
            if total + size > self._limit or own + size > self._limit // 2:
                raise Rejected(
                    message=f"{own} bytes of query {staged.query!r} and {total} of all queries are staged here; the "
                    f"limit is {self._limit}, half of it for a query: use smaller micro-batches, or raise the limit"
                )
            staged.size += size
            self._count(staged.query, size)

    def publish(self, staged: Staged) -> None:
        """Give a stage that was written its name."""
        with disk_errors(staged.path, "be stored"):
            os.replace(staged.path.with_suffix(PART), staged.path)
            if self._fsync:
                sync_folder(self._folder)
        with self._lock:
            staged.complete = True
            staged.since = self._clock()

    @property
    def fsync(self) -> bool:
        """Whether stages are synced."""
        return self._fsync

    def _find(self, path: Path) -> None:
        """Take over a stage of an earlier process; what it had not completed is removed."""
        query, _, rest = path.stem.partition("~")
        batch, _, name = rest.partition("~")
        if path.suffix == SUFFIX and batch.isdecimal() and name:
            status = path.stat()
            self._used[query] += status.st_size
            self._stages[name] = Staged(path, query, int(batch), status.st_mtime, status.st_size, complete=True)
        elif path.suffix == PART:
            path.unlink()


def _gone(stage: Stage) -> ApplicationError:
    return ApplicationError(GONE, f"stage {stage.id} is gone or has expired; run the micro-batch again")


class _File:
    """A file that is written from its beginning, for Arrow."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.closed = False
        self._end = 0

    def write(self, data: bytes | memoryview) -> int:
        """Write all of `data`."""
        begin = self._end
        self._end = write_at(self.descriptor, [data], begin)
        return self._end - begin

    def flush(self) -> None:
        """Do nothing: there is no buffer."""

    def close(self) -> None:
        """Close the file; it may be closed already."""
        if not self.closed:
            self.closed = True
            os.close(self.descriptor)


class StageWriter:
    """Writes one stage. Call :meth:`finish`, or :meth:`discard` if that is not possible."""

    def __init__(self, folder: StageFolder, name: str, staged: Staged) -> None:
        self._folder = folder
        self._name = name
        self._staged = staged
        self._digest = RowDigest()
        self._part = staged.path.with_suffix(PART)
        self._opened: tuple[_File, pa.ipc.RecordBatchStreamWriter] | None = None

    def append(self, batch: pa.RecordBatch) -> None:
        """Write rows.

        Raises:
            Rejected: There is no room for them now.
            DiskFull: There is no space.
            JournalError: The disk failed.

        """
        self._folder.reserve(self._staged, batch)
        with disk_errors(self._part, f"store {batch.nbytes} bytes"):
            self._open()[1].write_batch(batch)
        self._digest.update(batch)

    def finish(self) -> Stage:
        """Complete the stage. It is on disk when this returns."""
        with disk_errors(self._part, "be stored"):
            file, stream = self._open()
            stream.close()
            if self._folder.fsync:
                os.fsync(file.descriptor)
            file.close()
        self._folder.publish(self._staged)
        return Stage(self._name, self._digest.rows, self._digest.hexdigest())

    def discard(self) -> None:
        """Remove what was written; does nothing after :meth:`finish`."""
        if self._staged.complete:
            return
        if self._opened is not None:
            self._opened[0].close()
        try:
            with disk_errors(self._part, "be removed"):
                self._part.unlink(missing_ok=True)
        finally:
            self._folder.drop([self._name])

    def _open(self) -> tuple[_File, pa.ipc.RecordBatchStreamWriter]:
        if self._opened is None:
            file = _File(open_private(self._part, os.O_WRONLY | os.O_EXCL))
            self._opened = (file, pa.ipc.new_stream(file, ITEMS))
        return self._opened
