"""The journals that one server serves, by name. They may change while it runs."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from ..aio.service import Service
from ..aio.setup import Admitted
from ..aio.shares import Client
from ..connection import Connection
from ..errors import ApplicationError, LocalError, SetupRejected
from ..journal.layout import check_name
from .access import JOURNAL, Selection
from .capacity import Capacity
from .messages import STANDBY
from .service import Action, Authorize, Routes, read_and_commit

__all__ = ["ServedJournals", "journal_names"]

OPERATOR: Final = "operator"
"""The principal of clients that have shown the operator's token."""

P = TypeVar("P")
T = TypeVar("T")

logger = logging.getLogger("weirpool.serving")


def by_role(connection: Connection, action: Action) -> bool:
    """Allow everything to operators, and to others what a Spark query needs."""
    return connection.principal == OPERATOR or read_and_commit(connection, action)


@dataclass(eq=False)
class _Served:
    """A journal that is served."""

    name: str
    folder: str
    service: Service
    connections: set[Connection] = field(default_factory=set)


class ServedJournals:
    """The services of some journals. A client names one of them in its set-up, so it cannot reach another one.

    If there is one journal at first, clients that name none get it, also after others are added.

    Args:
        folders: The folder of each journal, by name.
        authorize: Decides what a client may do; by default operators may do everything, and others read and commit.

    Raises:
        LocalError: A journal is not a folder of this machine.

    """

    def __init__(self, folders: Mapping[str, str], *, authorize: Authorize = by_role) -> None:
        self._authorize = authorize
        self._capacity = Capacity()
        self._journals = {name: self._served(name, folder) for name, folder in folders.items()}
        self._unnamed = next(iter(folders)) if len(folders) == 1 else None
        self._standby = ""
        self._leaving: set[asyncio.Task[None]] = set()

    @property
    def folders(self) -> dict[str, str]:
        """The folder of each journal, by name."""
        return {name: served.folder for name, served in self._journals.items()}

    def connections(self, name: str) -> int:
        """Return the number of clients of a journal."""
        return len(self._journals[name].connections)

    async def in_thread(self, client: Client, function: Callable[[P], T], argument: P) -> T:
        """Return the result of a function that waits for the disk, when it is the client's turn."""
        return await self._capacity.in_thread(client, lambda: function(argument))

    async def replace(self, folders: Mapping[str, str]) -> None:
        """Serve these journals from now on. Clients of those that stay notice nothing; the others are disconnected."""
        before = self._journals
        if len(before) == 1 and len(folders) > 1 and self._unnamed in folders:
            logger.warning(
                "readers that name no journal read %r until the next start; add ?%s=%s to their URLs",
                self._unnamed, JOURNAL, self._unnamed,
            )  # fmt: skip
        self._journals = {
            name: before[name] if name in before and before[name].folder == folder else self._served(name, folder)
            for name, folder in folders.items()
        }
        gone = [served for name, served in before.items() if self._journals.get(name) is not served]
        closing = [connection.peer.close(0) for served in gone for connection in served.connections]
        await asyncio.gather(*closing, return_exceptions=True)

    def stand_by(self, reason: str) -> None:
        """Disconnect all clients, and admit none while there is a reason: another collector continues the logs."""
        self._standby = reason
        if reason:
            for connection in [each for served in self._journals.values() for each in served.connections]:
                task = asyncio.ensure_future(connection.peer.close(0))
                self._leaving.add(task)
                task.add_done_callback(self._leaving.discard)

    def admit(self, data: bytes, *, operator: bool = False) -> Admitted:
        """Return the service of the journal that a client's set-up names; `SetupRejected` if there is none.

        An `operator` may do everything.
        """
        self._check_standby()
        name = self._named(data)
        served = self._journals.get(name or "")
        if served is not None:
            return Admitted(served, served.service, OPERATOR if operator else "")
        what = f"the journal {name!r} is not served here" if name else "the URL names no journal"
        raise SetupRejected(
            f"JournalMissing: {what}; those that are: {', '.join(sorted(self._journals)) or 'none'}; the option "
            f"?{JOURNAL}=NAME of the URL names one"
        )

    @asynccontextmanager
    async def connected(self, connection: Connection) -> AsyncIterator[None]:
        """Keep account of a client while it is connected: the connection hook of the server."""
        served = connection.identity
        assert isinstance(served, _Served)
        self._check_standby()
        if self._journals.get(served.name) is not served:
            raise ApplicationError(f"JournalMissing: the journal {served.name!r} is not served here any more")
        served.connections.add(connection)
        try:
            yield
        finally:
            served.connections.discard(connection)

    def _check_standby(self) -> None:
        if self._standby:
            raise SetupRejected(f"{STANDBY}: {self._standby}")

    def _named(self, data: bytes) -> str | None:
        if not data:
            return self._unnamed
        try:
            return msgspec.json.decode(data, type=Selection).journal
        except (msgspec.MsgspecError, ValueError, RecursionError):
            raise SetupRejected('the set-up is not one of a reader: its data is empty, or {"journal": NAME}') from None

    def _served(self, name: str, folder: str) -> _Served:
        service = Service()
        Routes(folder, self._authorize, self._capacity).register(service)
        return _Served(name, folder, service)


def journal_names(folders: Iterable[str], given: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the folders of journals by the names under which they are served.

    Args:
        folders: The folders.
        given: The folders of some of them, by name. The others have the name of their folder.

    Raises:
        LocalError: Two journals would have the same name, a name is not valid, or it is given to another folder.

    """
    paths = dict.fromkeys(map(os.path.abspath, folders))
    chosen = {name: os.path.abspath(folder) for name, folder in (given or {}).items()}
    for name, path in chosen.items():
        if path not in paths:
            raise LocalError(f"{name!r} is the name of {path}, which is not the journal of a feed; correct its path")
        if (other := next(each for each in chosen if chosen[each] == path)) != name:
            raise LocalError(f"{path} has two names, {other!r} and {name!r}; choose one of them")
    found = {check_name(name, "journal"): path for name, path in chosen.items()}
    for path in paths:
        if path in chosen.values():
            continue
        name = Path(path).name
        if name in found:
            raise LocalError(
                f"{found[name]} and {path} would both be served as {name!r}; give one of them another name"
            )
        try:
            found[check_name(name, "journal")] = path
        except LocalError as error:
            raise LocalError(f"the journal {path}: {error}; give it a name") from None
    return found
