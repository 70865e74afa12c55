"""Staged rows: files beside a log, which nobody reads before they are committed."""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa

from ..aio.shares import Client, Shares
from ..errors import ApplicationError, Rejected
from ..journal.disk import disk_errors, make_folder, open_private, sync_folder, write_at
from ..journal.format import ITEMS
from .digest import RowDigest
from .messages import Stage

__all__ = ["DEFAULT_STAGE_BYTES", "DEFAULT_STAGE_SECONDS", "GONE", "StageFolder", "StageWriter"]

DEFAULT_STAGE_BYTES: Final = 4 * 1024**3
"""Rows that were staged and not committed: half of them may be of one query, and clients have shares."""
DEFAULT_STAGE_SECONDS: Final = 3600.0
"""Longer than any micro-batch takes, or any task between two of its rows."""
MAX_STAGES: Final = 100_000
"""Stages at once; half of them may be of one query, and clients have shares."""
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
    client: Client
    """Who has sent it. Of a stage of an earlier process that is not known any more."""
    since: float
    """When it was begun; when it is complete, since when this process knows that."""
    size: int = 0
    complete: bool = False
    pinned: bool = False
    """A commit has begun: the rows are needed until it has ended."""


class StageFolder:
    """The stages of one log. Thread-safe.

    Args:
        log: The log's folder.
        limit: Maximum bytes of all stages; a query may use half of them, and a client no more than it leaves to others.
        seconds: How long a stage is kept. One that an earlier process has left is kept so long from now on.
        fsync: Whether a stage is on disk when it is complete.
        clock: Returns the time in seconds. It must be monotonic: nothing else tells how old a stage is, because the
            clock of this machine may jump, and a network file system has another one.

    """

    def __init__(
        self,
        log: Path,
        *,
        limit: int = DEFAULT_STAGE_BYTES,
        seconds: float = DEFAULT_STAGE_SECONDS,
        fsync: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = log / FOLDER
        self._seconds = seconds
        self._fsync = fsync
        self._clock = clock
        self._lock = threading.Lock()
        self._stages: dict[str, Staged] = {}
        # The stages of each query, and their bytes; and the shares of clients in both.
        self._counts: Counter[str] = Counter()
        self._sizes: Counter[str] = Counter()
        self._places = Shares("stages of this log", MAX_STAGES)
        self._bytes = Shares("bytes of the stages of this log", limit)
        with disk_errors(self._folder, "be listed"):
            make_folder(self._folder, fsync=fsync)
            for path in self._folder.iterdir():
                self._find(path)

    @property
    def used_bytes(self) -> int:
        """Bytes of all stages."""
        with self._lock:
            return self._bytes.used

    def begin(self, query: str, batch: int, client: Client) -> StageWriter:
        """Return a writer for another stage of a client.

        Raises:
            Rejected: There are too many.

        """
        name = uuid.uuid4().hex
        staged = Staged(self._folder / f"{query}~{batch}~{name}{SUFFIX}", query, batch, client, self._clock())
        with self._lock:
            if self._counts[query] >= MAX_STAGES // 2 or not self._places.take(client):
                raise Rejected(
                    message=f"{self._counts[query]} stages of query {query!r} and {len(self._stages)} of all queries "
                    f"are here; the limit is {MAX_STAGES}, half of it for a query, and no more for a client than it "
                    "leaves to others: use fewer partitions"
                )
            self._counts[query] += 1
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
        self._remove(lambda: [name for name in wanted if name in self._stages and not self._stages[name].pinned])

    def drop_until(self, query: str, batch: int) -> None:
        """Remove the complete stages of a query up to a micro-batch, which has been committed."""
        self._remove_complete(lambda staged: staged.query == query and staged.batch <= batch)

    def expire(self) -> None:
        """Remove complete stages that are too old. Those that are being written end with their uploads."""
        oldest = self._clock() - self._seconds
        self._remove_complete(lambda staged: staged.since < oldest and not staged.pinned)

    def _remove_complete(self, condition: Callable[[Staged], bool]) -> None:
        self._remove(lambda: [name for name, each in self._stages.items() if each.complete and condition(each)])

    def _remove(self, chosen: Callable[[], list[str]]) -> None:
        """Remove the stages whose names `chosen` returns while nobody else changes the table."""
        with self._lock:
            found = {name: self._stages.pop(name) for name in chosen()}
        try:
            for name in list(found):
                with disk_errors(found[name].path, "be removed"):
                    found[name].path.unlink(missing_ok=True)
                staged = found.pop(name)
                with self._lock:
                    self._forget(staged)
        finally:
            # What could not be removed still counts, and is tried again.
            with self._lock:
                self._stages |= found

    def _forget(self, staged: Staged) -> None:
        """Uncount a stage that is gone."""
        self._places.give_back(staged.client)
        self._bytes.give_back(staged.client, staged.size)
        for counter, size in ((self._counts, 1), (self._sizes, staged.size)):
            counter[staged.query] -= size
            if not counter[staged.query]:
                del counter[staged.query]

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
            own, limit = self._sizes[staged.query], self._bytes.limit
            if own + size > limit // 2 or not self._bytes.take(staged.client, size):
                raise Rejected(
                    message=f"{own} bytes of query {staged.query!r} and {self._bytes.used} of all queries are staged "
                    f"here; the limit is {limit}, half of it for a query, and no more for a client than it leaves to "
                    "others: use smaller micro-batches, or raise the limit"
                )
            staged.size += size
            self._sizes[staged.query] += size

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
            size = path.stat().st_size
            self._stages[name] = Staged(path, query, int(batch), "", self._clock(), size, complete=True)
            self._counts[query] += 1
            self._sizes[query] += size
            self._places.add("")
            self._bytes.add("", size)
        elif path.suffix == PART:
            path.unlink()


def _gone(stage: Stage) -> ApplicationError:
    return ApplicationError(GONE, f"stage {stage.id} is gone or has expired; run the micro-batch again")


class _File:
    """A file that is written from its beginning, for Arrow. It is open only while something is written.

    A client may begin many stages and go on with none of them: they must not take up the descriptors of the process.
    """

    def __init__(self, path: Path) -> None:
        self.closed = False
        self._path = path
        self._descriptor = -1
        self._end = 0

    @contextmanager
    def opened(self) -> Iterator[int]:
        """Open the file while a block writes to it, and yield its descriptor. The first time, the file is created."""
        flags = os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW
        self._descriptor = os.open(self._path, flags) if self._end else open_private(self._path, flags | os.O_EXCL)
        try:
            yield self._descriptor
        finally:
            os.close(self._descriptor)
            self._descriptor = -1

    def write(self, data: bytes | memoryview) -> int:
        """Write all of `data`, while the file is open."""
        begin = self._end
        self._end = write_at(self._descriptor, [data], begin)
        return self._end - begin

    def flush(self) -> None:
        """Do nothing: there is no buffer."""


class StageWriter:
    """Writes one stage. Call :meth:`finish`, or :meth:`discard` if that is not possible."""

    def __init__(self, folder: StageFolder, name: str, staged: Staged) -> None:
        self._folder = folder
        self._name = name
        self._staged = staged
        self._digest = RowDigest()
        self._part = staged.path.with_suffix(PART)
        self._file = _File(self._part)
        self._stream: pa.ipc.RecordBatchStreamWriter | None = None

    def append(self, batch: pa.RecordBatch) -> None:
        """Write rows.

        Raises:
            Rejected: There is no room for them now.
            JournalUnavailable: There is no space, or no descriptor.
            JournalError: The disk failed.

        """
        self._folder.reserve(self._staged, batch)
        with disk_errors(self._part, f"store {batch.nbytes} bytes"), self._file.opened():
            self._begun().write_batch(batch)
        self._digest.update(batch)

    def finish(self) -> Stage:
        """Complete the stage. It is on disk when this returns."""
        with disk_errors(self._part, "be stored"), self._file.opened() as descriptor:
            self._begun().close()
            if self._folder.fsync:
                os.fsync(descriptor)
        self._folder.publish(self._staged)
        return Stage(self._name, self._digest.rows, self._digest.hexdigest())

    def discard(self) -> None:
        """Remove what was written; does nothing after :meth:`finish`."""
        if self._staged.complete:
            return
        try:
            with disk_errors(self._part, "be removed"):
                self._part.unlink(missing_ok=True)
        finally:
            self._folder.drop([self._name])

    def _begun(self) -> pa.ipc.RecordBatchStreamWriter:
        if self._stream is None:
            self._stream = pa.ipc.new_stream(self._file, ITEMS)
        return self._stream
