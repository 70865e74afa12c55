"""The server: accepts links, finds their sessions, and closes them."""

from __future__ import annotations

import asyncio
import logging
import ssl as tls
from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final

from .. import session as sessions
from .. import transports
from ..connection import Connection
from ..errors import LimitExceeded, LocalError, ProtocolError, SetupRejected
from ..ledger import LEDGER, LedgerSnapshot
from ..protocols import EXAMPLE_URL, detectors
from ..session import Durable, Session
from ..settings import DEFAULT_SETTINGS, Settings
from ..tap import Tap
from ..transports import MAX_REFUSED_LINKS, Discard, Link, Listener, Refused
from ..urls import Url, parse_url
from .background import Background
from .connectors import Direct
from .driver import Driver
from .limits import Limits
from .observers import Observers
from .peer import Peer
from .service import Service
from .setup import REJECTED, Acceptor, ConnectionHook, certificate_of

if TYPE_CHECKING:
    from ..store import SessionFolder

__all__ = ["Server", "serve"]

logger = logging.getLogger("penstock.aio")

POLL_SECONDS: Final = 0.02
"""The interval, in seconds, at which a closing server checks whether the streams of a stored session have ended."""


def serve(
    service: Service,
    *urls: str,
    settings: Settings | None = None,
    ssl: tls.SSLContext | None = None,
    acceptor: Acceptor | None = None,
    taps: Iterable[Tap] = (),
    on_connection: ConnectionHook | None = None,
) -> Server:
    """Serve `service` at `urls`: ``async with serve(service, url) as server``.

    Args:
        service: The handlers.
        urls: The protocols, transports and addresses to listen on: ``rsocket+tcp://:7878``. Port 0 lets the system
            choose one.
        settings: Limits and timeouts.
        ssl: The TLS context. Without it, a TLS URL must have `cert` and `key`.
        acceptor: A function or coroutine function that checks the :class:`~penstock.Setup` of each client before its
            requests are served. It raises :exc:`~penstock.SetupRejected` to reject the client. It may return a service
            to use instead of `service` for this client, or an :class:`~penstock.Admitted` with the client's identity.
        taps: Observers of all connections; see :class:`~penstock.Tap`.
        on_connection: Called with each :class:`~penstock.Connection` after its set-up was accepted. The async context
            manager that it returns is entered before any request is answered, and exited when the connection is
            closed. If entering raises, the connection is refused; the text of an :exc:`~penstock.ApplicationError` or
            :exc:`~penstock.SessionError` is sent to the client.

    Returns:
        A server that listens when it is entered or awaited. Exiting the block closes it, as :meth:`Server.close` does.

    Raises:
        LocalError: There is no URL.
        UrlError: A URL has an unknown protocol, transport or address.
        ConnectError: When entered or awaited: an address cannot be bound.
        SessionStoreError: When entered or awaited: `Settings.resume_store` cannot be used.

    """
    if not urls:
        raise LocalError(f"serve() needs at least one URL, such as {EXAMPLE_URL}")
    observers = Observers(taps, on_connection, acceptor)
    return Server(service, [parse_url(url) for url in urls], settings or DEFAULT_SETTINGS, ssl, observers)


class Server:
    """Listens for clients of a service; see :func:`penstock.serve`. After an await, call :meth:`close`."""

    def __init__(
        self,
        service: Service,
        urls: list[Url],
        settings: Settings,
        ssl: tls.SSLContext | None,
        observers: Observers,
    ) -> None:
        self._service = service
        self._urls = urls
        self._settings = settings
        self._ssl = ssl
        self._observers = observers
        self._listeners: list[Listener] = []
        self._drivers: dict[Session, Driver] = {}
        self._limits = Limits(settings)
        self._arrivals: set[_PendingLink] = set()
        self._folder: SessionFolder | None = None
        self._background: Background | None = None
        self._expiry: asyncio.TimerHandle | None = None

    @property
    def urls(self) -> list[str]:
        """The URLs that it listens on, with the actual ports."""
        return [str(listener.url) for listener in self._listeners]

    @property
    def tapped(self) -> bool:
        """True if it has taps."""
        return bool(self._observers.taps)

    @property
    def connections(self) -> int:
        """The number of sessions, including those that wait for their client to reconnect."""
        return len(self._drivers)

    @property
    def peers(self) -> list[Peer]:
        """The clients of all sessions, for requests from the server if the protocol supports them."""
        return [Peer(Direct(driver)) for driver in self._drivers.values()]

    def metrics(self) -> LedgerSnapshot:
        """Return how many bytes the process holds for its peers: those of all its servers and clients."""
        return LEDGER.snapshot()

    def __await__(self) -> Generator[None, None, Server]:
        return self._open().__await__()

    async def __aenter__(self) -> Server:
        return await self._open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def serve_forever(self) -> None:
        """Wait until the calling task is canceled."""
        await asyncio.get_running_loop().create_future()

    async def close(self, grace: float | None = None) -> None:
        """Stop listening, and close all connections after their open streams have ended.

        Sessions stored in `Settings.resume_store` are not closed: the next server continues them.

        Args:
            grace: Seconds after which open streams fail; `Settings.close_grace` by default; 0 fails them at once.

        """
        for listener in self._listeners:
            await listener.close()
        for arrival in list(self._arrivals):
            arrival.refuse("the server is closing")
        # Sessions without a link are closed, too: no more links are accepted.
        await asyncio.gather(*(self._finish(session, driver, grace) for session, driver in self._drivers.items()))
        await self._observers.exited()
        if self._expiry is not None:
            self._expiry.cancel()
        if self._background is not None:
            await self._background.ended()
            self._background = None
        if self._folder is not None:
            self._folder.close()
            self._folder = None

    async def _finish(self, session: Session, driver: Driver, grace: float | None) -> None:
        """Close a connection, or detach it if its session is stored."""
        if driver.link is None:
            grace = 0
        durable = session.durable
        if durable is not None and durable.kept:
            await self._drained(durable, driver, self._settings.close_grace if grace is None else grace)
            if durable.kept:
                durable.detach()
                driver.detach()
                grace = 0
        await driver.close(grace)

    async def _drained(self, durable: Durable, driver: Driver, grace: float) -> None:
        """Wait up to `grace` seconds until the streams of a session have ended and its state is durable."""
        deadline = driver.loop.time() + grace
        # Polling keeps the cost of reporting the last stream's end off live connections.
        while (driver.session.open_streams or not durable.settled) and driver.loop.time() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(POLL_SECONDS)
        driver.flush()

    async def _open(self) -> Server:
        if self._listeners:
            return self
        self._service.serving = True
        try:
            self._open_folder()
            for url in self._urls:
                messages = transports.carries_messages(url)
                make = detectors(url.protocol, self._settings, self._folder, messages=messages, options=url.options)
                listener = await transports.listen(url, self._accepting(make, url.protocol), self._settings, self._ssl)
                self._listeners.append(listener)
        except BaseException:
            await self.close(0)
            raise
        return self

    def _open_folder(self) -> None:
        """Open the folder of stored sessions, if there is one, for clients of an earlier process to resume."""
        settings = self._settings
        if settings.resume_store and settings.resume_timeout > 0:
            from ..store import SessionFolder

            self._background = Background()
            self._folder = folder = SessionFolder(Path(settings.resume_store), self._background.run)
            self._expiry = asyncio.get_running_loop().call_later(settings.resume_timeout, folder.expire)

    # Links.

    def _accepting(self, make: Callable[[], sessions.Detector], protocol: str) -> transports.Accept:
        """Return the callback for new links of one listener."""

        def accept(address: str) -> _PendingLink | Refused:
            reason = self._limits.refuses(address)
            if reason:
                self._note_refusal(address, reason)
                return Refused(SetupRejected.full(reason).message, lambda: self._explainer(make, address, reason))
            self._limits.arrived(address)
            arrival = _PendingLink(self, make(), address, protocol)
            self._arrivals.add(arrival)
            return arrival

        return accept

    def _explainer(self, make: Callable[[], sessions.Detector], address: str, reason: str) -> _PendingLink | None:
        """Return a receiver that reads a refused set-up to reject it; None if there are too many."""
        if sum(bool(arrival.refusal) for arrival in self._arrivals) >= MAX_REFUSED_LINKS:
            return None
        arrival = _PendingLink(self, make(), address, "", reason)
        self._arrivals.add(arrival)
        return arrival

    def _note_refusal(self, address: str, reason: str) -> None:
        logged = self._limits.refused(address, asyncio.get_running_loop().time())
        logger.log(logging.WARNING if logged else logging.DEBUG, "%s refused: %s", address or "a peer", reason)
        self._observers.refused(address, reason)

    def arrived(self, arrival: _PendingLink, session: Session, link: Link) -> None:
        """Attach the link of `arrival` to its session."""
        self._remove(arrival)
        if arrival.refusal:
            self._refuse(session, link, arrival.refusal)
            return
        driver = self._drivers.get(session)
        if driver is None:
            # A session that an earlier process stored is not a new one.
            durable = session.durable
            reason = "" if durable is not None and durable.kept else self._limits.full(arrival.address)
            if reason:
                self._note_refusal(arrival.address, reason)
                self._refuse(session, link, reason)
                return
            driver = self._begin(arrival, session)
        principal = driver.connection.principal
        self._limits.linked(session, driver.connection.counted_as if principal else arrival.address)
        link.receiver = driver
        if driver.taps is not None:
            for data in arrival.read:
                driver.taps.arrived(data)
        driver.attach(link)

    def _begin(self, arrival: _PendingLink, session: Session) -> Driver:
        """Return the driver of a new session."""
        connection = Connection(arrival.protocol, arrival.address, False)
        driver = self._observers.driver(
            session,
            self._settings,
            self._service,
            connection,
            lambda: self._unlinked(session),
            lambda verdict: self._limits.admitted(session, connection, verdict),
        )
        self._drivers[session] = driver
        driver.over.add_done_callback(lambda _: self._ended(session))
        return driver

    def _refuse(self, session: Session, link: Link, reason: str) -> None:
        """Reject a new session because its address, or the server, is at a limit, which the client is told."""
        # The client would take the session's pending output for acceptance.
        session.take_output()
        session.close(asyncio.get_running_loop().time(), SetupRejected.full(reason, REJECTED))
        for chunk in session.take_output():
            link.write(chunk)
        link.receiver = Discard()
        link.close()

    def lost(self, arrival: _PendingLink, reason: str) -> None:
        """Remove a link that was lost before its session was known."""
        self._remove(arrival)
        if not arrival.refusal:
            self._observers.refused(arrival.address, reason)

    def _remove(self, arrival: _PendingLink) -> None:
        """Remove a link from those whose first message has not been read."""
        if arrival in self._arrivals and not arrival.refusal:
            self._limits.identified(arrival.address)
        self._arrivals.discard(arrival)

    def _unlinked(self, session: Session) -> None:
        """Let a session wait for another link; if too many wait, end the one that has waited longest."""
        oldest = self._limits.unlinked(session)
        if oldest is None:
            return
        driver = self._drivers[oldest]
        limit = self._settings.max_sessions
        error = LimitExceeded(
            f"more than max_sessions ({limit}) sessions were without a link, this one for the longest time"
        )
        logger.warning("%s: session ended: %s", driver.flow.name, error)
        driver.session.close(driver.loop.time(), error)
        driver.flush()

    def _ended(self, session: Session) -> None:
        self._drivers.pop(session, None)
        self._limits.ended(session)


class _PendingLink:
    """The receiver of a link whose session is not known yet."""

    def __init__(
        self, server: Server, detector: sessions.Detector, address: str, protocol: str, refusal: str = ""
    ) -> None:
        self.address = address
        self.protocol = protocol
        # Why a new session is rejected.
        self.refusal = refusal
        # The data that the detector has read, for taps. The detector limits its size.
        self.read: list[bytes] = []
        self._server = server
        self._detector = detector
        self._link: Link | None = None
        self._timer: asyncio.TimerHandle | None = None

    def link_made(self, link: Link) -> None:
        """Start the timer for the peer's first message."""
        self._link = link
        loop = asyncio.get_running_loop()
        self._detector.identity = certificate_of(link) or b""
        self._detector.link_up(loop.time())
        due = self._detector.next_timer()
        if due is not None:
            self._timer = loop.call_at(due, self.refuse, "no complete first message arrived in time")

    def received(self, data: bytes) -> None:
        """Pass data to the detector until the session is known."""
        link = self._link
        if link is None:
            return
        if self._server.tapped:
            self.read.append(data)
        # A refused link must not take a session from another one.
        now = asyncio.get_running_loop().time()
        limits = self._server._limits
        self._detector.locked_out = self.refusal or limits.locked_out(self.address, now)
        try:
            session = self._detector.receive(data, now)
        except ProtocolError as error:
            logged = limits.unrecognized(self.address, self._detector.guessed, now)
            self.refuse(str(error), logging.WARNING if logged else logging.DEBUG)
            return
        if session is not None:
            self._stop()
            self._server.arrived(self, session, link)

    def writing_paused(self) -> None:
        """Nothing is written yet."""

    def writing_resumed(self) -> None:
        """Nothing is written yet."""

    def link_lost(self, error: Exception | None) -> None:
        """Remove the link."""
        self._stop()
        self._server.lost(self, str(error or "the link was closed before its first message was complete"))

    def refuse(self, reason: str, level: int = logging.WARNING) -> None:
        """Close the link, and log `reason`."""
        logger.log(level, "%s refused: %s", self.address or "a peer", reason)
        self._stop()
        self._server.lost(self, reason)
        if self._link is not None:
            self._link.receiver = Discard()
            if self._detector.farewell:
                self._link.write(self._detector.farewell)
            self._link.close()
            self._link = None

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
