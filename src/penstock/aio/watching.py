"""Watching connections: the driver of one that somebody watches, and the choice of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, Final, TypeAlias, cast

from ..connection import Connection
from ..errors import ApplicationError, LocalError, SessionClosed, SessionError
from ..events import Closed, Draining, Established, Event, Unlinked
from ..session import Session
from ..settings import Settings
from ..tap import Tap
from ..transports import Link
from .admission import Gate
from .current import CURRENT
from .driver import Driver
from .exchanges import without_requests
from .intercept import bound
from .peer import Peer
from .service import Service
from .tapping import TappedSession, Taps

__all__ = ["ConnectionHook", "WatchedDriver", "Watchers", "entered"]

logger = logging.getLogger("penstock.aio")

ConnectionHook: TypeAlias = Callable[[Connection], AbstractAsyncContextManager[Any]]
"""Returns what is entered when a connection is established, and left when it is closed."""

ENTERING: Final = 8
"""Why nothing is read from a link: its hook is being entered. See the reasons in `flow`."""

LEAVING: Final = 1.0
"""Seconds that a hook may take to be left while somebody waits for that."""


class Watchers:
    """What watches the connections of one server, or of one client.

    Args:
        taps: Told of all of them.
        hook: Entered and left for each of them.
        always: Watch them even without any of these.

    """

    def __init__(self, taps: Iterable[Tap] = (), hook: ConnectionHook | None = None, always: bool = False) -> None:
        self.taps = list(taps)
        self._all = Taps(self.taps)
        self._hook = hook
        self._always = always
        self._tasks: set[asyncio.Task[None]] = set()

    def driver(
        self,
        session: Session,
        settings: Settings,
        service: Service,
        connection: Connection,
        unlinked: Callable[[], None] | None = None,
    ) -> Driver:
        """Return the driver of a new connection: the plain one, unless somebody watches. See :class:`Driver`."""
        service.serving = True
        if not (self.taps or self._hook or self._always or service.interceptors or service.typed):
            return Driver(session, settings, service, connection.address, unlinked)
        if self.taps:
            session = cast(Session, TappedSession(session, connection, self.taps))
        return WatchedDriver(session, settings, service, connection, unlinked, self._hook, self._tasks)

    def refused(self, address: str, reason: str) -> None:
        """Tell the taps of a link of which no connection came."""
        self._all.tell("refused", address, reason)

    async def left(self) -> None:
        """Wait until the hooks of connections that are closed were left."""
        if self._tasks:
            await _ended(self._tasks)


async def entered(driver: Driver) -> None:
    """Wait until the hook of a connection is entered, where it has one. See :meth:`WatchedDriver.entered`."""
    if isinstance(driver, WatchedDriver):
        await driver.entered()


class WatchedDriver(Driver):
    """A driver whose connection is known, and may have a hook.

    Until the hook is entered no request is answered, and a server takes in no more than one read. A hook that
    raises refuses the connection. One that takes longer than the keepalive's lifetime loses it.

    Args:
        session: See :class:`Driver`.
        settings: See :class:`Driver`.
        service: See :class:`Driver`.
        connection: What is known of it.
        unlinked: See :class:`Driver`.
        hook: Entered when it is established, and left when it is closed.
        tasks: Where the task that does so is kept while it runs.

    Attributes:
        connection: As above.
        admission: On a server, what asks the acceptor about each set-up, the first one and those that follow.

    """

    def __init__(
        self,
        session: Session,
        settings: Settings,
        service: Service,
        connection: Connection,
        unlinked: Callable[[], None] | None,
        hook: ConnectionHook | None,
        tasks: set[asyncio.Task[None]],
    ) -> None:
        super().__init__(session, settings, bound(service, connection), connection.address, unlinked)
        self.connection = connection
        connection.peer = Peer(self)
        self.admission: Gate | None = None
        self._renewals: list[asyncio.Future[None]] = []
        connection.renew = self._renew
        self._hook = hook
        self._tasks = tasks
        self._task: asyncio.Task[None] | None = None
        self._admitted = hook is None
        self._refusal: Exception | None = None
        # What happened on streams before the hook was entered.
        self._held: list[Event] = []
        self._entered: asyncio.Future[None] = self.loop.create_future()
        self._closed: asyncio.Future[None] = self.loop.create_future()

    async def entered(self) -> None:
        """Wait until the hook is entered. Raises what it raised; then the connection is closed."""
        try:
            if not self._admitted:
                await self._entered
        except asyncio.CancelledError:
            await self.close(0)
            raise
        if self._refusal is not None:
            await self.close(0)
            raise self._refusal

    def arrived(self, read: list[bytes]) -> None:
        """Learn what a new link had brought before it was known whose it is; the session has it already."""
        if isinstance(self.session, TappedSession):
            for data in read:
                self.session.arrived(data)

    # What the driver below tells.

    def serve(self, service: Service) -> None:
        """Answer the peer's requests by `service` from now on."""
        super().serve(bound(service, self.connection))

    def attach(self, link: Link) -> None:
        """Go on over `link`."""
        self.connection.certificate = link.get_extra_info("peercert") or None
        if isinstance(self.session, TappedSession):
            self.session.attached()
        if self.admission is not None and self.gate is None:
            # A client that comes back may say anew who it is; nothing is written before that is accepted.
            self.dispatch(self.session.take_events())
        super().attach(link)
        if self.gate is not None and self.admission is not None and self.admission.waits:
            self.hold(True)
        if self.connection.is_client:
            self._enter()
        elif not self._admitted:
            # Nobody knows yet whether this peer is welcome: what it sends may wait in the network.
            self._stop_reading(ENTERING)

    def writing_resumed(self) -> None:
        """Let whoever sends go on."""
        token = CURRENT.set(self.connection)
        try:
            super().writing_resumed()
        finally:
            CURRENT.reset(token)

    def dispatch(self, happened: list[Event]) -> None:
        """Hand events to those whom they concern, once the hook is entered."""
        token = CURRENT.set(self.connection)
        try:
            self._dispatch(self._accepted(happened))
        finally:
            CURRENT.reset(token)

    def _accepted(self, happened: list[Event]) -> list[Event]:
        """Return what is accepted of events: behind a new set-up nothing is, until the acceptor was asked."""
        admission = self.admission
        if admission is None or self.gate is not None:
            return happened
        for event in happened:
            if isinstance(event, Established) and event is not admission.asked:
                admission.shut()
                return admission.pass_through(happened)
        return happened

    def _dispatch(self, happened: list[Event]) -> None:
        if self._admitted:
            super().dispatch(happened)
            return
        if self._refusal is not None:
            # Nobody begins requests any more; what the hook itself has opened ends.
            super().dispatch(without_requests(happened))
            return
        for event in happened:
            if isinstance(event, Established | Closed | Unlinked | Draining):
                self.session_event(event)
            else:
                self._held.append(event)
        if len(self._held) >= self.settings.max_streams:
            self._stop_reading(ENTERING)

    def session_event(self, event: Event) -> None:
        """Take an event that concerns no stream."""
        connection = self.connection
        if isinstance(event, Established) and not connection.is_client:
            connection.setup = event.payload
            connection.metadata_mime, connection.data_mime = event.metadata_mime, event.data_mime
            self._enter()
            self._renewed()
        super().session_event(event)
        if isinstance(event, Closed):
            connection.error = event.error
            self._renewed()
            self._leave()

    def withholds(self) -> bool:
        """Return whether events are held back that have happened: until the hook is entered, too."""
        return not self._admitted or super().withholds()

    def detach(self) -> None:
        """Let go of the session without a word."""
        if isinstance(self.session, TappedSession):
            self.session.detached()
        super().detach()
        self._leave()

    async def close(self, grace: float | None = None) -> None:
        """End the session, and wait until the hook was left. See :meth:`Driver.close`."""
        await super().close(grace)
        if self._task is not None and self._task is not asyncio.current_task():
            await _ended({self._task})

    async def _renew(self) -> None:
        """Ask the client who it is, and wait until what it says is accepted. See :func:`penstock.rehandshake`."""
        if not self.closed:
            self.session.rehandshake(self.loop.time())
            renewal: asyncio.Future[None] = self.loop.create_future()
            self._renewals.append(renewal)
            self.wake()
            await renewal
        if self.closed:
            raise SessionClosed("the session has ended, and with it the rehandshake") from self.error

    def _renewed(self) -> None:
        renewals, self._renewals = self._renewals, []
        for renewal in renewals:
            if not renewal.done():
                renewal.set_result(None)

    # The hook.

    def _enter(self) -> None:
        if self._hook is not None and self._task is None:
            self._task = self.loop.create_task(self._run(self._hook))
            self._tasks.add(self._task)
            self._task.add_done_callback(self._tasks.discard)

    async def _run(self, hook: ConnectionHook) -> None:
        try:
            async with AsyncExitStack() as stack:
                try:
                    await stack.enter_async_context(hook(self.connection))
                except (Exception, asyncio.CancelledError) as error:
                    self._refuse(error)
                    return
                self._admit()
                await self._closed
        except Exception:
            logger.exception("%r: its hook failed when it was left", self.connection)

    def _admit(self) -> None:
        self._admitted = True
        held, self._held = self._held, []
        self._entered.set_result(None)
        if self.closed:
            self.dispatch(without_requests(held))
        else:
            self._resume_reading(ENTERING)
            self.dispatch(held)
            self.flush()

    def _refuse(self, error: BaseException) -> None:
        """Close the connection because its hook raised. Only our own errors tell the peer their text."""
        if isinstance(error, Exception):
            self._refusal = error
        else:
            self._refusal = self.error or SessionClosed("the connection was closed while its hook was being entered")
        held, self._held = self._held, []
        self.dispatch(held)
        if not self._entered.done():
            self._entered.set_result(None)
        if self.closed:
            return
        if isinstance(error, ApplicationError):
            reason = SessionError(error.message)
        elif isinstance(error, SessionError) and not isinstance(error, LocalError):
            reason = error
        else:
            # A client's own error is raised where it connects.
            if not self.connection.is_client:
                logger.error("%r: its hook failed", self.connection, exc_info=error)
            reason = SessionError("this side refused the connection")
        self.session.close(self.loop.time(), reason)
        self.flush()

    def _leave(self) -> None:
        if not self._closed.done():
            self._closed.set_result(None)
        if not self._admitted and self._task is not None:
            self._task.cancel()


async def _ended(tasks: set[asyncio.Task[None]]) -> None:
    """Wait for hooks that are being left, but for ever for none of them."""
    _, stubborn = await asyncio.wait(tasks, timeout=LEAVING)
    for task in stubborn:
        logger.warning("a hook takes longer than %g s to be left, and is canceled", LEAVING)
        task.cancel()
