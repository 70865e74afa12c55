"""The routes of a service that serve a journal: to Spark's workers that do not see its folder, and to other readers."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import ExitStack, aclosing
from enum import StrEnum
from functools import partial
from typing import Any, Final, TypeVar

import msgspec

from ..aio.service import Service
from ..aio.setup import current_connection
from ..aio.shares import Client, client_of
from ..connection import Connection
from ..errors import Invalid, JournalError, JournalLocked, JournalUnavailable, LocalError, Rejected
from ..functions import check_plain
from ..journal.asks import POLL, Ask
from ..journal.coordinator import FolderCoordinator
from ..journal.format import SCHEMA
from ..journal.journal import Journal
from ..journal.layout import Extent
from ..journal.ports import LogReader
from ..journal.reader import JournalReader
from ..journal.retention import Committed
from ..payload import Payload
from .capacity import Capacity
from .files import content_of, files_of
from .messages import (
    NOT_ALLOWED,
    PREFIX,
    Commit,
    Delete,
    Describe,
    Description,
    File,
    Hold,
    Named,
    Read,
    Record,
    check_owner,
    decode,
    failure,
)
from .paced import Paced
from .ranges import Part, Place, chunks
from .readers import Readers
from .reading import RangeReading
from .watch import Watch, states

__all__ = ["Action", "Authorize", "Routes", "read_and_commit", "serve_journal"]

MAX_PARTS: Final = 100_000
"""Parts of a range in one answer."""

T = TypeVar("T")


class Action(StrEnum):
    """What a client wants to do with a journal."""

    READ = "read"
    """Read rows, positions and gaps."""
    COMMIT = "commit"
    """Commit a reader's position, which trims the journal, and record rows that were skipped."""
    FORGET = "forget"
    """Remove a reader of somebody else, so that it holds nothing back."""
    SEEK = "seek"
    """Set the position of a reader that belongs to no query."""
    DELETE = "delete"
    """Delete rows, although readers may need them."""


Authorize = Callable[[Connection, Action], bool]
"""Returns whether the client of a connection may do something. It must not block."""


def read_and_commit(connection: Connection, action: Action) -> bool:
    """Allow everything that a Spark query needs: to read and to commit. The default of `serve_journal`."""
    return action in (Action.READ, Action.COMMIT)


def serve_journal(service: Service, path: str | os.PathLike[str], *, authorize: Authorize = read_and_commit) -> None:
    """Add the routes ``weirpool.journal.*`` to a service: whoever it admits can read the journal from elsewhere.

    Args:
        service: The service. Its acceptor decides who may connect at all.
        path: The folder of the journal, which need not exist yet.
        authorize: Decides what a client may do.

    Raises:
        LocalError: The journal is not a folder of this machine, or the service serves one already.

    """
    Routes(path, authorize, Capacity()).register(service)


class Routes:
    """The handlers of one journal; see `serve_journal`."""

    def __init__(self, path: str | os.PathLike[str], authorize: Authorize, capacity: Capacity) -> None:
        if "://" in os.fspath(path):
            raise LocalError(f"{path} is not a folder of this machine; serve the journal where it is written")
        # A coroutine would be true, and allow everything.
        check_plain(authorize, "authorize")
        self._journal = journal = Journal(path)
        self._authorize = authorize
        self._coordinator = FolderCoordinator(journal.path)
        self._coordinator.sweep()
        self._readers = Readers(journal.reader)
        self._hot = Readers(partial(JournalReader, journal.path))
        self._capacity = capacity
        self._watch = Watch(journal, capacity.threads)

    def register(self, service: Service) -> None:
        """Add the routes to a service."""
        self._call(service, "list", None, Action.READ, lambda _: states(self._journal))
        self._call(service, "describe", Describe, Action.READ, self._describe)
        desk = self._coordinator
        self._call(service, "readers", Named, Action.READ, lambda asked: desk.cursors(asked.source))
        self._call(service, "cursors", Named, Action.READ, lambda asked: desk.cursors_of(asked.source, asked.reader))
        self._call(service, "losses", Named, Action.READ, lambda asked: desk.recorded(asked.source))
        self._call(service, "holder", str, Action.READ, desk.holder)
        self._call(service, "deletable", Delete, Action.READ, lambda each: desk.deletable(each.source, each.position))
        self._call(service, "files", Named, Action.READ, lambda asked: files_of(self._journal.path, asked.source))
        self._change(service, "commit", Commit, Action.COMMIT, _commit)
        self._change(service, "drop", Named, Action.COMMIT, lambda desk, asked: desk.drop(asked.source, asked.named))
        self._call(service, "record", Record, Action.COMMIT, lambda asked: desk.record(asked.source, asked.losses))
        self._change(service, "seek", Commit, Action.SEEK, _seek)
        self._change(service, "forget", Named, Action.FORGET, _forget)
        self._call(service, "delete", Delete, Action.DELETE, self._delete)
        service.stream(f"{PREFIX}read")(self.read)
        service.stream(f"{PREFIX}file")(self.file)
        service.stream(f"{PREFIX}follow")(self.follow)
        service.stream(f"{PREFIX}hold")(self.hold)

    def _call(self, service: Service, name: str, kind: Any, action: Action, answer: Callable[[Any], Any]) -> None:
        async def handle(request: Payload) -> bytes:
            self._check(action)
            asked = None if kind is None else decode(request.data, kind)
            return msgspec.json.encode(await self._in_thread(lambda: answer(asked)))

        service.call(f"{PREFIX}{name}")(handle)

    def _change(
        self, service: Service, name: str, kind: Any, action: Action, change: Callable[[FolderCoordinator, Any], Any]
    ) -> None:
        """Add a call that changes what readers have recorded; no thread waits for the store of a group."""

        async def handle(request: Payload) -> bytes:
            self._check(action)
            asked = decode(request.data, kind)
            open_asks: list[Ask] = []
            desk = FolderCoordinator(self._journal.path, wait=open_asks.append)
            answer = await self._in_thread(lambda: change(desk, asked))
            for ask in open_asks:
                await self._answered(ask)
            return msgspec.json.encode(answer)

        service.call(f"{PREFIX}{name}")(handle)

    async def _answered(self, ask: Ask) -> None:
        while True:
            if await self._in_thread(ask.is_answered):
                return
            await asyncio.sleep(POLL)

    def read(self, request: Payload) -> Paced:
        """Return the frames of a range, which are read as the client's credit allows."""
        self._check(Action.READ)
        asked = decode(request.data, Read)
        unknown = set(asked.columns or ()) - set(SCHEMA.names)
        if unknown or asked.columns == []:
            raise Invalid(message=f"the columns of a journal are {', '.join(SCHEMA.names)}")
        reading = RangeReading(asked.first, partial(self._parts, asked), self._in_thread)
        return Paced(reading, self._capacity.reads, current_connection())

    def file(self, request: Payload) -> Paced:
        """Return the bytes of a file of a log, which are read as the client's credit allows."""
        self._check(Action.READ)
        asked = decode(request.data, File)
        content = partial(content_of, self._journal.path, asked.source, asked.name, asked.limit)
        return Paced(RangeReading(0, content, self._in_thread), self._capacity.reads, current_connection())

    def _parts(self, asked: Read, place: Place) -> Generator[Part, None, None]:
        with self._hot.lend(asked.source, asked.uuid) as hot:
            whole = partial(self._journal.reader, asked.source)
            yield from chunks(hot, whole, place, asked.end, columns=asked.columns, skip_records=asked.skip_records)

    async def follow(self, request: Payload) -> AsyncIterator[bytes]:
        """Yield the states of all logs, then their changes."""
        self._check(Action.READ)
        with self._capacity.follows.taken(client_of(current_connection())):
            async with aclosing(self._watch.changes()) as changes:
                async for changed in changes:
                    yield msgspec.json.encode(changed)

    async def hold(self, request: Payload) -> AsyncIterator[bytes]:
        """Hold a reader's name for a client until it cancels, or is gone. The first item says that it is held."""
        self._check(Action.COMMIT)
        asked = decode(request.data, Hold)
        check_owner(asked.owner)
        # The client may be gone before the thread has the lock.
        with self._capacity.hold(client_of(current_connection())), ExitStack() as locks:
            if not await self._in_thread(lambda: self._take(asked, locks)):
                raise failure(JournalLocked(f"another process reads as {asked.name!r}"))
            yield b"held"
            await asyncio.get_running_loop().create_future()

    def _take(self, asked: Hold, locks: ExitStack) -> bool:
        lock = self._coordinator.hold(asked.name, asked.owner)
        if lock is not None:
            locks.callback(lock.close)
        return lock is not None

    def _check(self, action: Action) -> None:
        connection = current_connection()
        if not self._authorize(connection, action):
            raise Rejected(message=f"{action} {NOT_ALLOWED}; ask who runs the collector, or show the operator's token")

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Return the result of work that may wait for the disk; errors of the journal are sent to the client."""
        client: Client = client_of(current_connection())
        try:
            return await self._capacity.in_thread(client, work)
        except JournalUnavailable as error:
            raise Rejected(message=f"{error}; try again later") from error
        except JournalError as error:
            raise failure(error) from error
        except LocalError as error:
            raise Invalid(message=str(error)) from error

    def _describe(self, asked: Describe) -> Description:
        with self._readers.lend(asked.source, asked.uuid) as reader:
            if asked.split is not None:
                _check_parts(reader, *asked.split)
            return Description(
                uuid=reader.uuid,
                first=reader.first,
                end=reader.end,
                segments=None
                if asked.segments is None
                else [
                    (each.first, each.end, each.size, each.times)
                    for each in reader.segments(timed=asked.timed)
                    if each.end > asked.segments
                ],
                gaps=None if asked.gaps is None else reader.gaps(*asked.gaps),
                damage=None if asked.damage is None else reader.damage(*asked.damage[:2], records=asked.damage[2]),
                batch=None if asked.locate is None else reader.locate(asked.locate),
                parts=None
                if asked.split is None
                else reader.split(*asked.split[:2], max_rows=asked.split[2], max_bytes=asked.split[3]),
            )

    def _delete(self, asked: Delete) -> list[Extent]:
        return self._coordinator.delete(asked.source, asked.position, force=asked.force)


def _commit(desk: FolderCoordinator, asked: Commit) -> int:
    source, cursor, position = asked.source, asked.cursor, asked.position
    if asked.retain_bytes is None:
        return desk.commit(source, cursor, position, query=asked.query)
    return desk.trim(source, cursor, position, query=asked.query, retain_bytes=asked.retain_bytes)


def _seek(desk: FolderCoordinator, asked: Commit) -> int:
    return desk.seek(asked.source, asked.cursor, asked.position)


def _forget(desk: FolderCoordinator, asked: Named) -> dict[str, Committed | None]:
    return desk.forget(asked.source, asked.named)


def _check_parts(reader: LogReader, first: int, end: int, max_rows: int | None, max_bytes: int | None) -> None:
    """Refuse to split a range into more parts than an answer should have."""
    by_rows = 0 if max_rows is None else (end - first) // max(max_rows, 1)
    by_bytes = 0 if max_bytes is None else reader.bytes_between(first, end) // max(max_bytes, 1)
    if max(by_rows, min(by_bytes, end - first)) > MAX_PARTS:
        raise LocalError(f"a range is split into at most {MAX_PARTS:,} parts; ask for a shorter one")
