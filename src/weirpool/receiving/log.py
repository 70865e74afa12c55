"""A log that receives rows: from publishers that push them, and from micro-batches that are committed.

A micro-batch is in the log exactly once, wherever the process dies:

1. *Its stages are checked.* Nothing has happened yet.
2. *A plan is written*, if the rows do not fit into one batch of the log: the stages, and the positions that their rows
   will have. Until the log's state names it, it means nothing.
3. *Rows are appended.* The state that is stored with them, in the same batch, names the micro-batch and says whether
   these are its last rows. A process that finds an unfinished one continues it, by its plan, before anything else.
4. *The ledger is written*, before another state replaces this one.
5. *The plan and the stages are removed.*
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
import pyarrow as pa

from ..errors import ApplicationError, Invalid, JournalCorrupt
from ..journal.disk import disk_errors, read_file, replace_file
from ..journal.format import NO_ITEMS
from ..journal.identity import Request
from ..journal.layout import log_folder
from ..journal.writer import JournalWriter
from .ledger import Entry, Ledger
from .messages import Committed, Stage
from .stages import StageFolder

__all__ = ["ReceivedLog"]

logger = logging.getLogger(__name__)

RECEIVED: Final = b"received"
"""The metadata of the request that a received log is said to collect: a collector refuses the log."""
BATCH_BYTES: Final = 16 * 1024 * 1024
"""Bytes of rows in one batch of the log."""
PLAN: Final = "_commit"
MAX_PLAN_BYTES: Final = 64 * 1024 * 1024


class State(msgspec.Struct, array_like=True, frozen=True):
    """What the log stores with the rows of a micro-batch."""

    query: str
    batch: int
    first: int
    """The position of its first row."""
    end: int
    """The position after its last row, when it is complete."""
    done: bool
    single: bool = False
    """The query is a batch write."""


class Plan(msgspec.Struct, frozen=True):
    """A micro-batch that needs several batches of the log."""

    state: State
    stages: list[Stage]


class ReceivedLog:
    """A log that receives rows. Its methods wait for the disk; they may be called from several threads.

    Args:
        journal: The journal's folder.
        source: The log's name.
        route: The route that its rows are sent to.
        stages: Options of :class:`StageFolder`.
        fsync: Whether rows are on disk when a method returns.
        options: Options of :meth:`JournalWriter.open`.

    Attributes:
        stages: The rows that were staged.

    Raises:
        JournalLocked: Another process writes to this log.
        JournalMismatch: The log collects a stream, or receives another route.
        JournalCorrupt: The log, or what it received, is damaged.

    """

    def __init__(
        self,
        journal: str | os.PathLike[str],
        source: str,
        route: str,
        *,
        stages: dict[str, Any] | None = None,
        fsync: bool = True,
        **options: Any,
    ) -> None:
        self._route = route
        self._fsync = fsync
        self._lock = threading.Lock()
        folder = log_folder(journal, source)
        self._plan = folder / PLAN
        request = Request(route, metadata=RECEIVED)
        self._writer = JournalWriter.open(journal, source, request=request, fsync=fsync, **options)
        try:
            self.stages = StageFolder(folder, fsync=fsync, **(stages or {}))
            self._ledger = Ledger(folder, fsync=fsync)
            self._settle()
        except BaseException:
            self._writer.close()
            raise

    @property
    def position(self) -> int:
        """The position of the next row."""
        return self._writer.position

    @property
    def has_room(self) -> bool:
        """True if there was room when the readers were last asked; since then they can only have left less."""
        return self._writer.room()

    def room(self) -> bool:
        """Return True if readers have left less than the budget, as of now."""
        with self._lock:
            self._writer.refresh()
            return self._writer.room()

    def append(self, batch: pa.RecordBatch) -> int:
        """Append rows that a publisher has pushed, and return the position after them."""
        with self._lock:
            self._settle()
            return self._writer.append(batch, self._route)

    def committed(self, query: str, batch: int) -> Committed | None:
        """Return the positions of a micro-batch; None if it was not committed."""
        with self._lock:
            self._settle()
            return self._known(query, batch)

    def commit(self, query: str, batch: int, stages: Sequence[Stage], *, single: bool = False) -> Committed:
        """Append the rows of a micro-batch, in this order; do nothing if that has been done.

        Args:
            query: The query.
            batch: The number of the micro-batch.
            stages: Its rows.
            single: Whether the query is a batch write, which has no other micro-batch.

        Raises:
            ApplicationError: A stage is gone or damaged, or named twice.
            DiskFull: There is no space. Call again when there is.
            JournalError: The disk failed.

        """
        with self._lock:
            self._settle()
            known = self._known(query, batch)
            if known is None:
                known = self._commit(query, batch, stages, single)
            else:
                self._compare(known, query, batch, stages)
            self.stages.drop_until(query, batch)
            return known

    def close(self) -> None:
        """Close the log for the next process. May be called twice."""
        with self._lock:
            self._writer.close()

    def _compare(self, known: Committed, query: str, batch: int, stages: Sequence[Stage]) -> None:
        """Report rows that are dropped, although they cannot be those that were committed."""
        rows = sum(stage.rows for stage in stages)
        if known.rows != rows:
            logger.warning(
                "%s: query %s has committed micro-batch %d again; it has %s rows here, and %d others were dropped: are "
                "there two queries with copies of one checkpoint?",
                self._plan.parent, query, batch, "unknown" if known.rows is None else known.rows, rows,
            )  # fmt: skip

    def _known(self, query: str, batch: int) -> Committed | None:
        last = self._ledger.last(query)
        if last is None or batch > last.batch:
            return None
        return Committed(last.first, last.end, True) if batch == last.batch else Committed(None, None, True)

    def _commit(self, query: str, batch: int, stages: Sequence[Stage], single: bool) -> Committed:
        if len({stage.id for stage in stages}) < len(stages):
            raise Invalid(message=f"the commit of micro-batch {batch} names a stage twice")
        rows = sum(stage.rows for stage in stages)
        first = self._writer.position
        state = State(query, batch, first, first + rows, True, single)
        try:
            size = sum(self.stages.check(query, batch, stage) for stage in stages)
            if size > BATCH_BYTES:
                self._write_plan(Plan(state, list(stages)))
            self._roll(state, stages)
        except BaseException:
            if self._writer.position == first:
                # Nothing has begun, and the query may never come back.
                self.stages.release(stages)
            raise
        self._finish(state)
        return Committed(state.first, state.end)

    def _roll(self, state: State, stages: Sequence[Stage]) -> None:
        """Append the rows that the log does not have yet."""
        missing = _after(self._rows(stages), self._writer.position - state.first)
        for batch in _joined(missing, BATCH_BYTES):
            done = self._writer.position + batch.num_rows == state.end
            self._write(batch, msgspec.structs.replace(state, done=done))
        if state.first == state.end:
            self._write(NO_ITEMS, state)

    def _rows(self, stages: Sequence[Stage]) -> Iterator[pa.RecordBatch]:
        for stage in stages:
            yield from self.stages.batches(stage)

    def _write(self, batch: pa.RecordBatch, state: State) -> None:
        self._writer.append(batch, self._route, msgspec.msgpack.encode(state))

    def _settle(self) -> None:
        """Complete what an earlier call, or an earlier process, has begun."""
        if self._writer.state is None:
            return
        state = self._decoded(self._writer.state)
        if not state.done:
            plan = self._read_plan()
            if plan is None or plan.state != msgspec.structs.replace(state, done=True):
                raise JournalCorrupt(
                    f"{self._plan} does not have the rest of micro-batch {state.batch} of query {state.query}, which "
                    "this log has in part; restore it from a copy"
                )
            try:
                self._roll(plan.state, plan.stages)
            except ApplicationError as error:
                raise JournalCorrupt(
                    f"{self._plan.parent}: the rest of micro-batch {state.batch} of query {state.query} is lost "
                    f"({error.message}); restore the folder from a copy"
                ) from error
            state = plan.state
        self._finish(state)

    def _finish(self, state: State) -> None:
        entry = Entry(state.batch, state.first, state.end, state.single)
        if self._ledger.last(state.query) != entry:
            self._ledger.enter(state.query, entry)
            with disk_errors(self._plan, "be removed"):
                self._plan.unlink(missing_ok=True)
            self.stages.drop_until(state.query, state.batch)

    def _decoded(self, state: bytes) -> State:
        try:
            return msgspec.msgpack.decode(state, type=State)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise JournalCorrupt(
                f"{self._plan.parent}: the state of this log was not written by a receiver ({error}); choose another "
                "name for the log"
            ) from None

    def _write_plan(self, plan: Plan) -> None:
        with disk_errors(self._plan, "be written"):
            replace_file(self._plan, msgspec.json.encode(plan), fsync=self._fsync)

    def _read_plan(self) -> Plan | None:
        data = read_file(self._plan, MAX_PLAN_BYTES)
        try:
            return None if data is None else msgspec.json.decode(data, type=Plan)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None


def _after(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows after the first ones."""
    for batch in batches:
        skipped = min(rows, batch.num_rows)
        rows -= skipped
        if skipped < batch.num_rows:
            yield batch.slice(skipped)


def _joined(batches: Iterator[pa.RecordBatch], limit: int) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in batches of about `limit` bytes."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if held and size + batch.nbytes > limit:
            yield pa.concat_batches(held)
            held, size = [], 0
        held.append(batch)
        size += batch.nbytes
    if held:
        yield pa.concat_batches(held)
