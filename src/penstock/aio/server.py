"""Serving: links that come in, the sessions that they belong to, and how all of it ends."""

from __future__ import annotations

import asyncio
import logging
import ssl as tls
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final

from .. import session as sessions
from .. import transports
from ..connection import Connection
from ..dialects import acceptors
from ..errors import LocalError, ProtocolError
from ..session import Kept, Session
from ..settings import DEFAULT_SETTINGS, Settings
from ..tap import Tap
from ..transports import Discard, Link, Listener
from ..urls import Url, parse_url
from .admission import Acceptor, Gate, certificate_of
from .background import Background
from .driver import Driver
from .peer import Peer
from .refusals import Refusals
from .service import Service
from .watching import ConnectionHook, WatchedDriver, Watchers

if TYPE_CHECKING:
    from ..store import SessionFolder

__all__ = ["Server", "serve"]

logger = logging.getLogger("penstock.aio")

LOOK_SECONDS: Final = 0.02
"""How often a server that is closing looks whether the streams of a session that it keeps have ended."""


def serve(
    service: Service,
    *urls: str,
    settings: Settings | None = None,
    ssl: tls.SSLContext | None = None,
    acceptor: Acceptor | None = None,
    taps: Iterable[Tap] = (),
    on_connection: ConnectionHook | None = None,
) -> Server:
    """Serve `service` at every one of `urls`: ``async with serve(service, url) as server``.

    Args:
        service: The handlers.
        urls: Where, and by which protocols: ``rsocket+tcp://:7878``. Port 0 lets the system choose one.
        settings: Limits and timeouts.
        ssl: For TLS; else the URL must name `cert` and `key`.
        acceptor: Looks at the :class:`Setup` of each client before anything of it is served: a function or a
            coroutine function. Raising :exc:`~penstock.SetupRejected` refuses the client; a service that it
            returns serves this client instead of `service`.
        taps: Told what happens on all connections; see :class:`~penstock.Tap`.
        on_connection: Called with each :class:`~penstock.Connection` once its client has said who it is;
            returns an async context manager that is entered before any request is answered, and left when the
            connection is closed. One that raises on entering refuses the connection; an
            :exc:`~penstock.ApplicationError` or :exc:`~penstock.SessionError` tells the client its text.

    Returns:
        What listens when it is entered or awaited. Leaving the block closes it: what is in flight may end
        within `Settings.close_grace`.

    Raises:
        UrlError: A URL names nothing that we know.
        ConnectError: Entered or awaited: a place cannot be bound.
        SessionStoreError: Entered or awaited: `Settings.resume_store` cannot be used.

    """
    if not urls:
        raise LocalError("serve() needs at least one URL, such as rsocket+tcp://:7878")
    # A service that the acceptor chooses may have interceptors.
    watchers = Watchers(taps, on_connection, always=acceptor is not None)
    return Server(service, [parse_url(url) for url in urls], settings or DEFAULT_SETTINGS, ssl, acceptor, watchers)


class Server:
    """A service, and where it is offered; see :func:`serve`."""

    def __init__(
        self,
        service: Service,
        urls: list[Url],
        settings: Settings,
        ssl: tls.SSLContext | None,
        acceptor: Acceptor | None,
        watchers: Watchers,
    ) -> None:
        self._service = service
        self._acceptor = acceptor
        self._wanted = urls
        self._settings = settings
        self._ssl = ssl
        self._watchers = watchers
        self._listeners: list[Listener] = []
        self._drivers: dict[Session, Driver] = {}
        self._addresses: Counter[str] = Counter()
        self._refusals = Refusals(settings.max_refusals_per_address)
        self._arrivals: set[_Arrival] = set()
        self._folder: SessionFolder | None = None
        self._background: Background | None = None
        self._expiry: asyncio.TimerHandle | None = None

    @property
    def urls(self) -> list[str]:
        """Where it listens, with the ports that were really bound."""
        return [str(listener.url) for listener in self._listeners]

    @property
    def tapped(self) -> bool:
        """Whether it has taps."""
        return bool(self._watchers.taps)

    @property
    def connections(self) -> int:
        """How many sessions there are, those that wait for their client to come back included."""
        return len(self._drivers)

    @property
    def peers(self) -> list[Peer]:
        """The clients of all sessions, to be asked for things where the protocol lets a server ask."""
        return [Peer(driver) for driver in self._drivers.values()]

    def __await__(self) -> Generator[None, None, Server]:
        return self._open().__await__()

    async def __aenter__(self) -> Server:
        return await self._open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def serve_forever(self) -> None:
        """Wait until the task is canceled."""
        await asyncio.get_running_loop().create_future()

    async def close(self, grace: float | None = None) -> None:
        """Take no more connections, and close those that there are.

        Sessions that `Settings.resume_store` keeps are not closed, but left to the server that comes after this one.

        Args:
            grace: How many seconds what is in flight may take to end; else `Settings.close_grace`.

        """
        for listener in self._listeners:
            await listener.close()
        for arrival in list(self._arrivals):
            arrival.refuse("the server is closing")
        # A session without a link waits for one, and from now on there is none.
        await asyncio.gather(*(self._part(session, driver, grace) for session, driver in self._drivers.items()))
        await self._watchers.left()
        if self._expiry is not None:
            self._expiry.cancel()
        if self._background is not None:
            await self._background.ended()
            self._background = None
        if self._folder is not None:
            self._folder.close()
            self._folder = None

    async def _part(self, session: Session, driver: Driver, grace: float | None) -> None:
        """Close a connection, or let go of it where its session is kept."""
        if driver.link is None:
            grace = 0
        if isinstance(session, Kept) and session.kept:
            await self._drained(session, driver, self._settings.close_grace if grace is None else grace)
            if session.kept:
                session.leave()
                driver.detach()
                grace = 0
        await driver.close(grace)

    async def _drained(self, session: Kept, driver: Driver, grace: float) -> None:
        """Wait until the streams of a session have ended and all of it is durable, for `grace` seconds at most."""
        deadline = driver.loop.time() + grace
        # Nothing tells when the last stream ends: looking now and then costs the connections that live nothing.
        while (driver.session.open_streams or not session.settled) and driver.loop.time() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(LOOK_SECONDS)
        driver.flush()

    async def _open(self) -> Server:
        if self._listeners:
            return self
        self._service.serving = True
        try:
            self._open_folder()
            for url in self._wanted:
                messages = transports.carries_messages(url)
                make = acceptors(url.protocol, self._settings, self._folder, messages=messages, options=url.options)
                listener = await transports.listen(url, self._accepting(make, url.protocol), self._settings, self._ssl)
                self._listeners.append(listener)
        except BaseException:
            await self.close(0)
            raise
        return self

    def _open_folder(self) -> None:
        """Take over the sessions that an earlier process has left, if they are kept at all."""
        settings = self._settings
        if settings.resume_store and settings.resume_timeout > 0:
            from ..store import SessionFolder

            self._background = Background()
            self._folder = folder = SessionFolder(Path(settings.resume_store), self._background.run)
            self._expiry = asyncio.get_running_loop().call_later(settings.resume_timeout, folder.expire)

    # Links.

    def _accepting(self, make: Callable[[], sessions.Acceptor], protocol: str) -> transports.Accept:
        """Return what takes the new links of one listener."""

        def accept(address: str) -> _Arrival | None:
            full = self._full(address)
            if full:
                logger.warning("%s refused: %s", address, full)
                self._watchers.refused(address, full)
                return None
            self._addresses[address] += 1
            arrival = _Arrival(self, make(), address, protocol)
            self._arrivals.add(arrival)
            return arrival

        return accept

    def _full(self, address: str) -> str:
        """Return why no more links are taken from `address`; empty when they are."""
        settings = self._settings
        if self._addresses.total() >= settings.max_connections:
            return f"max_connections ({settings.max_connections}) are open"
        if self._addresses[address] >= settings.max_connections_per_address:
            return f"max_connections_per_address ({settings.max_connections_per_address}) are open"
        if self._refusals.too_many(address, asyncio.get_running_loop().time()):
            return f"max_refusals_per_address ({settings.max_refusals_per_address}) were refused just now"
        return ""

    def arrived(self, arrival: _Arrival, session: Session, link: Link) -> None:
        """Hand the link of `arrival` to the session that it belongs to."""
        self._arrivals.discard(arrival)
        driver = self._drivers.get(session)
        if driver is None:
            connection = Connection(arrival.protocol, arrival.address, False)
            driver = self._watchers.driver(session, self._settings, self._service, connection)
            gate = Gate(driver, connection, self._acceptor)
            self._drivers[session] = driver
            if self._folder is not None and isinstance(session, Kept):
                session.watch(driver.disk_waits)
                driver.kept = session
            driver.over.add_done_callback(lambda _: self._ended(session, arrival.address))
        else:
            # The session that this link takes over counts already.
            self._left(arrival.address)
            gate = None
        link.receiver = driver
        if isinstance(driver, WatchedDriver):
            driver.arrived(arrival.read)
            driver.admission = driver.admission or gate
            gate = driver.admission
        if gate is not None:
            gate.certificate = certificate_of(link)
        driver.attach(link)

    def lost(self, arrival: _Arrival, reason: str) -> None:
        """Forget a link that was lost before anybody knew whose it is."""
        self._arrivals.discard(arrival)
        self._watchers.refused(arrival.address, reason)
        self._left(arrival.address)

    def guessed(self, address: str) -> None:
        """Count a link that began with what is nothing here, or with a token that nobody has."""
        self._refusals.note(address, asyncio.get_running_loop().time())

    def _ended(self, session: Session, address: str) -> None:
        self._drivers.pop(session, None)
        self._left(address)

    def _left(self, address: str) -> None:
        self._addresses[address] -= 1
        if self._addresses[address] <= 0:
            del self._addresses[address]


class _Arrival:
    """The receiver of a link of which nobody knows yet whose it is."""

    def __init__(self, server: Server, acceptor: sessions.Acceptor, address: str, protocol: str) -> None:
        self.address = address
        self.protocol = protocol
        # What the acceptor has read, for taps; it bounds how much that may be.
        self.read: list[bytes] = []
        self._server = server
        self._acceptor = acceptor
        self._link: Link | None = None
        self._timer: asyncio.TimerHandle | None = None

    def link_made(self, link: Link) -> None:
        """Give the peer some time to say who it is."""
        self._link = link
        loop = asyncio.get_running_loop()
        self._acceptor.identity = certificate_of(link) or b""
        self._acceptor.link_up(loop.time())
        due = self._acceptor.next_timer()
        if due is not None:
            self._timer = loop.call_at(due, self.refuse, "it did not say who it is in time")

    def received(self, data: bytes) -> None:
        """Look whether it is known now."""
        link = self._link
        if link is None:
            return
        if self._server.tapped:
            self.read.append(data)
        try:
            session = self._acceptor.receive(data, asyncio.get_running_loop().time())
        except ProtocolError as error:
            self._server.guessed(self.address)
            self.refuse(str(error))
            return
        if session is not None:
            self._stop()
            self._server.arrived(self, session, link)

    def writing_paused(self) -> None:
        """Nothing is written yet."""

    def writing_resumed(self) -> None:
        """Nothing is written yet."""

    def link_lost(self, error: Exception | None) -> None:
        """Forget it."""
        self._stop()
        self._server.lost(self, str(error or "it was closed before it said who it is"))

    def refuse(self, reason: str) -> None:
        """Close the link, with one line in the log."""
        logger.warning("%s refused: %s", self.address or "a peer", reason)
        self._stop()
        self._server.lost(self, reason)
        if self._link is not None:
            self._link.receiver = Discard()
            if self._acceptor.farewell:
                self._link.write(self._acceptor.farewell)
            self._link.close()
            self._link = None

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
