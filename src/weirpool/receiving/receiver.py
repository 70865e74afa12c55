"""A receiver: a service whose handlers append what they receive to the logs of a journal."""

from __future__ import annotations

import asyncio
import logging
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from types import TracebackType
from typing import Any, Final, ParamSpec, TypeVar

import msgspec
import pyarrow as pa

from ..aio.items import Items
from ..aio.service import Service
from ..aio.setup import current_connection
from ..aio.shares import Client, Shares, client_of, held
from ..aio.threads import in_thread
from ..errors import ApplicationError, DiskFull, Invalid, JournalError, JournalUnavailable, LocalError, Rejected
from ..journal.format import ITEMS
from ..journal.layout import check_name
from ..payload import Payload
from .log import ReceivedLog
from .messages import ABORT, COMMIT, STAGE, CommitRequest, StageRequest
from .pushes import Pushes
from .stages import DEFAULT_STAGE_BYTES, DEFAULT_STAGE_SECONDS, StageWriter

__all__ = ["Receiver"]

logger = logging.getLogger(__name__)

ROOM_SECONDS: Final = 0.5
"""Seconds between looks at a journal whose budget is used up."""
BINARY: Final = "application/octet-stream"
EXPIRE_SECONDS: Final = 60.0
FAILED: Final = 0x302
"""The error code if the journal cannot be written."""
MAX_UNFINISHED: Final = 1_024
"""Stages that are being sent: clients have shares. Each takes some 10 KiB, and a file while rows are written."""
DISK_TURNS: Final = 4
"""Stages that are written, and micro-batches that are committed, at once: clients have shares, and wait for turns."""

P = ParamSpec("P")
T = TypeVar("T")


class Receiver:
    """Appends what clients send to the logs of a journal, one for each route.

    Use it as a context manager around a server of its `service`::

        async with Receiver("data/in", ["delays"]) as receiver, weirpool.serve(receiver.service, url):
            ...

    * Clients send rows to a route by `channel`, `upload`, `call` or `fire`. All but the last are answered when the rows
      are on disk.
    * Spark's sink with ``delivery=transactional`` stages and commits micro-batches, each exactly once.

    Rows are not taken while the readers of the log have left more than its budget.

    Args:
        journal: The journal's folder.
        routes: The routes, each with the name of its log; a list uses the routes as names.
        service: The service that gets the handlers; a new one by default.
        stage_bytes: Maximum bytes of a log's staged rows; a query may use half of them, and a client no more than it
            leaves to others.
        stage_seconds: How long staged rows are kept if they are not committed, and how long a stage waits for more.
        options: Options of :meth:`weirpool.journal.writer.JournalWriter.open`, such as `budget_bytes`.

    Attributes:
        service: The service, with its handlers.
        dropped: Fired rows that were dropped, because the budget was used up or the disk was too slow.

    Raises:
        LocalError: There are no routes, or one cannot name a log.
        JournalError: When entered: a log is locked, damaged, or collects a stream.

    """

    def __init__(
        self,
        journal: str | os.PathLike[str],
        routes: Mapping[str, str] | Iterable[str],
        *,
        service: Service | None = None,
        stage_bytes: int = DEFAULT_STAGE_BYTES,
        stage_seconds: float = DEFAULT_STAGE_SECONDS,
        **options: Any,
    ) -> None:
        self.service = service or Service()
        self.dropped = 0
        self._journal = journal
        self._sources = dict(routes) if isinstance(routes, Mapping) else {route: route for route in routes}
        if not self._sources:
            raise LocalError("a receiver needs at least one route")
        for source in self._sources.values():
            check_name(source, "source")
        self._stages = {"limit": stage_bytes, "seconds": stage_seconds}
        self._idle_seconds = stage_seconds if math.isfinite(stage_seconds) else None
        self._unfinished = Shares("unfinished stages of this receiver", MAX_UNFINISHED)
        self._turns = Shares("turns at the disk", DISK_TURNS)
        self._options = options
        self._logs: dict[str, ReceivedLog] = {}
        self._pushes: dict[str, Pushes] = {}
        self._expiry: asyncio.Task[None] | None = None
        # By route, what waits until there is room in its log, and what finds out whether there is some.
        self._polling: dict[str, asyncio.Task[None]] = {}
        self._looking: dict[str, asyncio.Future[bool]] = {}
        self.service.upload(STAGE)(self._stage)
        self.service.call(COMMIT)(self._commit)
        self.service.call(ABORT)(self._abort)
        for route in self._sources:
            self._register(route)

    async def __aenter__(self) -> Receiver:
        try:
            for route, source in self._sources.items():
                log = await in_thread(
                    partial(ReceivedLog, self._journal, source, route, stages=self._stages, **self._options)
                )
                self._logs[route] = log
                self._pushes[route] = Pushes(log.append)
        except BaseException:
            await self._close()
            raise
        self._expiry = asyncio.create_task(self._expire())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._close()

    async def _close(self) -> None:
        waiting = [*self._polling.values(), *([] if self._expiry is None else [self._expiry])]
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, *self._looking.values(), return_exceptions=True)
        for pushes in self._pushes.values():
            await pushes.close()
        for log in self._logs.values():
            await in_thread(log.close)

    def _register(self, route: str) -> None:
        """Add the handlers of a route."""

        async def upload(request: Payload, items: Items) -> bytes:
            return await self._uploaded(route, items)

        async def call(request: Payload) -> bytes:
            await self._push(route, _batch_of(request))
            return b""

        async def fire(request: Payload) -> None:
            await self._fired(route, request)

        self.service.upload(route)(upload)
        self.service.call(route)(call)
        self.service.fire(route)(fire)

    async def _uploaded(self, route: str, items: Items) -> bytes:
        rows = 0
        async for batch in items.batches():
            await self._push(route, batch)
            rows += batch.num_rows
        return msgspec.json.encode({"rows": rows})

    async def _fired(self, route: str, request: Payload) -> None:
        """Append a row, unless there is no room for it: its sender cannot be slowed down."""
        log, client = self._logs[route], client_of(current_connection())
        if log.has_room or await self._look(route):
            if await self._pushes[route].push_now(client, _batch_of(request)):
                return
        self.dropped += 1
        # Powers of two: a flood of rows must not become a flood of lines.
        if self.dropped.bit_count() == 1:
            logger.warning(
                "%d fired rows were dropped: readers have left the journal's budget unread, or the disk is too slow "
                "for what a client sends; rows that are sent by upload wait instead",
                self.dropped,
            )

    async def _push(self, route: str, batch: pa.RecordBatch) -> None:
        connection = current_connection()
        with _told(), held(connection, batch.nbytes):
            await self._room(route)
            await self._pushes[route].push(client_of(connection), batch)

    async def _stage(self, request: Payload, items: Items) -> bytes:
        wanted = _decoded(request, StageRequest)
        log = self._log(wanted.route)
        _check_query(wanted.query)
        client = client_of(current_connection())
        with _told(), self._unfinished.taken(client):
            writer = log.stages.begin(wanted.query, wanted.batch, client)
            try:
                await self._write(wanted.route, writer, items)
                return msgspec.json.encode(await self._in_turn(client, writer.finish))
            finally:
                await in_thread(writer.discard)

    async def _write(self, route: str, writer: StageWriter, items: Items) -> None:
        """Write the items of a stage; `Rejected` if none arrives for too long."""
        connection, loop, seconds = current_connection(), asyncio.get_running_loop(), self._idle_seconds
        timeout = asyncio.timeout(seconds)
        try:
            async with timeout:
                async for batch in items.batches():
                    timeout.reschedule(None)
                    with held(connection, batch.nbytes):
                        await self._room(route)
                        await self._in_turn(client_of(connection), writer.append, batch)
                    timeout.reschedule(None if seconds is None else loop.time() + seconds)
        except TimeoutError:
            if not timeout.expired():
                raise
            raise Rejected(
                message=f"no row of this stage has arrived for stage_seconds ({seconds:g} s); run the micro-batch again"
            ) from None

    async def _commit(self, request: Payload) -> bytes:
        wanted = _decoded(request, CommitRequest)
        log = self._log(wanted.route)
        _check_query(wanted.query)
        client = client_of(current_connection())
        with _told():
            committed = await self._in_turn(
                client, log.commit, wanted.query, wanted.batch, wanted.stages, single=wanted.single
            )
        return msgspec.json.encode(committed)

    async def _abort(self, request: Payload) -> bytes:
        wanted = _decoded(request, CommitRequest)
        log = self._log(wanted.route)
        with _told():
            await self._in_turn(client_of(current_connection()), log.stages.drop, [stage.id for stage in wanted.stages])
        return b""

    async def _in_turn(self, client: Client, work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Return the result of work that waits for the disk, when it is the client's turn."""
        async with self._turns.turn(client):
            return await in_thread(work, *arguments, **named)

    def _log(self, route: str) -> ReceivedLog:
        log = self._logs.get(route)
        if log is None:
            raise Invalid(message=f"no rows are received for route {route!r}; the routes are {', '.join(self._logs)}")
        return log

    async def _room(self, route: str) -> None:
        """Wait until the readers have left less than the budget."""
        while not self._logs[route].has_room:
            polling = self._polling.get(route)
            if polling is None:
                polling = self._polling[route] = asyncio.create_task(self._poll(route))
            await asyncio.wait([polling])
            polling.result()

    async def _poll(self, route: str) -> None:
        """Look for room until there is some, for all who wait: readers are other processes."""
        try:
            while not await self._look(route):  # noqa: ASYNC110
                await asyncio.sleep(ROOM_SECONDS)
        finally:
            del self._polling[route]

    async def _look(self, route: str) -> bool:
        """Return True if readers have left less than the budget. Those that ask at the same time share a look."""
        looking = self._looking.get(route)
        if looking is None:
            looking = self._looking[route] = asyncio.ensure_future(in_thread(self._logs[route].room))
            looking.add_done_callback(lambda _: self._looking.pop(route))
        await asyncio.wait([looking])
        return looking.result()

    async def _expire(self) -> None:
        while True:
            await asyncio.sleep(EXPIRE_SECONDS)
            for log in self._logs.values():
                try:
                    await in_thread(log.stages.expire)
                except JournalError as error:
                    logger.warning("%s", error)


def _batch_of(request: Payload) -> pa.RecordBatch:
    columns = [pa.array([value], pa.binary()) for value in (request.data, _own_metadata(request))]
    return pa.RecordBatch.from_arrays(columns, schema=ITEMS)


def _own_metadata(request: Payload) -> bytes | None:
    """Return the metadata of a request without its route, which every row would repeat, and its credentials."""
    from .. import FrameError, Metadata

    try:
        entries = Metadata.decode(request.metadata).entries
    except FrameError:
        return None
    return next((entry.content for entry in entries if entry.mime == BINARY), None)


def _decoded(request: Payload, wanted: type[T]) -> T:
    try:
        return msgspec.json.decode(request.data, type=wanted)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise Invalid(message=f"this is not a request of Weirpool's sink: {error}") from None


def _check_query(query: str) -> None:
    """Refuse a query that cannot be a part of a file's name."""
    try:
        check_name(query, "query")
    except LocalError as error:
        raise Invalid(message=str(error)) from None


@contextmanager
def _told() -> Iterator[None]:
    """Tell the client whether it makes sense to try again; what has failed is in the receiver's log."""
    try:
        yield
    except JournalUnavailable as error:
        logger.warning("%s", error)
        what = "the receiver's disk is full" if isinstance(error, DiskFull) else "the receiver has too many open files"
        raise Rejected(message=f"{what}; try again later") from error
    except JournalError as error:
        logger.exception("a client's rows could not be stored")
        raise ApplicationError(FAILED, "the receiver's journal has failed; its log says why") from error
