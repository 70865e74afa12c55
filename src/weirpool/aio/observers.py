"""Installs acceptor, connection hook and taps on the connections of a server or a client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import cast

from ..connection import Connection
from ..errors import LocalError
from ..functions import is_async, yields
from ..session import Session
from ..settings import Settings
from ..tap import Refusal, Tap
from .admission import Admission, ended
from .connectors import Direct
from .driver import Driver
from .intercept import bound
from .peer import Peer
from .service import Service
from .setup import Acceptor, ConnectionHook, Verdict
from .tapping import TappedSession, Taps

__all__ = ["Observers"]


class Observers:
    """Creates the drivers of connections, with the acceptor, hook and taps of a server or a client."""

    def __init__(
        self, taps: Iterable[Tap] = (), hook: ConnectionHook | None = None, acceptor: Acceptor | None = None
    ) -> None:
        if hook is not None and (is_async(hook) or yields(hook)):
            raise LocalError(f"on_connection is {hook!r}, which needs the decorator contextlib.asynccontextmanager")
        self.taps = list(taps)
        self._all = Taps(self.taps)
        self._hook = hook
        self._acceptor = acceptor
        self._tasks: set[asyncio.Task[None]] = set()

    def driver(
        self,
        session: Session,
        settings: Settings,
        service: Service,
        connection: Connection,
        unlinked: Callable[[], None] | None = None,
        count: Callable[[Verdict], None] | None = None,
    ) -> Driver:
        """Return the driver of a new connection. See :class:`Driver`.

        `count` is called with each verdict of the acceptor that admits the client. It may raise to reject it.
        """
        service.begin(settings)
        taps = TappedSession(session, connection, self.taps) if self.taps else None
        driven = session if taps is None else cast(Session, taps)
        driver = Driver(driven, settings, bound(service, connection, settings), connection, unlinked)
        driver.taps = taps
        if taps is not None:
            # The acceptor may choose another service.
            taps.has_handler = lambda kind, route: driver.dispatch.service.handles(kind, route)
        driver.exchanges.queue.on_wait = None if taps is None else taps.queued
        connection.peer = Peer(Direct(driver))
        if self._hook is not None or not connection.is_client:
            driver.sink = driver.admission = Admission(driver, self._acceptor, self._hook, self._tasks, count)
        return driver

    def refused(self, address: str, reason: Refusal) -> None:
        """Report a link to the taps that was closed before it became a connection."""
        self._all.notify("refused", address, reason)

    async def exited(self) -> None:
        """Wait until the hooks of closed connections have exited."""
        if self._tasks:
            await ended(self._tasks)
