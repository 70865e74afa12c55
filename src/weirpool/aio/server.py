"""The server: accepts links, finds their sessions, and closes them."""

from __future__ import annotations

import asyncio
import logging
import ssl as tls
from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from .. import session as sessions
from .. import transports
from ..connection import Connection
from ..errors import LimitExceeded, LocalError, SetupRejected
from ..ledger import LEDGER, LedgerSnapshot
from ..protocols import EXAMPLE_URL, detectors
from ..session import Durable, Session
from ..settings import DEFAULT_SETTINGS, Settings
from ..tap import Refusal, RefusalCause, Tap
from ..transports import MAX_REFUSED_LINKS, Discard, HangUp, Link, Listen, Listener, Refused
from ..transports.places import Places
from ..urls import Url, parse_urls
from . import descriptors
from .arrivals import Arrival
from .background import Background
from .connectors import Direct
from .driver import Driver
from .exchanges import cancel_tasks
from .lease_policy import contained_lease
from .limits import Limits
from .observers import Observers
from .peer import Peer
from .service import Service
from .setup import REJECTED, Acceptor, ConnectionHook, Verdict

if TYPE_CHECKING:
    from ..store import SessionFolder

__all__ = ["Server", "serve"]

logger = logging.getLogger("weirpool.aio")

POLL_SECONDS: Final = 0.02
"""The interval, in seconds, at which a closing server checks whether its sessions and links are settled."""
ARRIVAL_SECONDS: Final = 1.0
"""Seconds that clients of a closing server have to send their first message, which it rejects."""
TOO_MANY: Final = Refusal(RefusalCause.LIMIT, "too many refused clients have sent no first message")


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
        acceptor: A function or coroutine function that checks the :class:`~weirpool.Setup` of each client before its
            requests are served. It raises :exc:`~weirpool.SetupRejected` to reject the client. It may return a service
            to use instead of `service` for this client, or an :class:`~weirpool.Admitted` with the client's identity.
        taps: Observers of all connections; see :class:`~weirpool.Tap`.
        on_connection: Called with each :class:`~weirpool.Connection` after its set-up was accepted. The async context
            manager that it returns is entered before any request is answered, and exited when the connection is
            closed. If entering raises, the connection is refused; the text of an :exc:`~weirpool.ApplicationError` or
            :exc:`~weirpool.SessionError` is sent to the client.

    Returns:
        A server that listens when it is entered or awaited. Exiting the block closes it, as :meth:`Server.close` does.

    Raises:
        LocalError: There is no URL, or a setting has no effect with any of them.
        UrlError: A URL has an unknown protocol, transport or address.
        ConnectError: When entered or awaited: an address cannot be bound.
        SessionStoreError: When entered or awaited: `Settings.resume_store` cannot be used.

    """
    if not urls:
        raise LocalError(f"serve() needs at least one URL, such as {EXAMPLE_URL}")
    observers = Observers(taps, on_connection, acceptor)
    return Server(service, parse_urls(urls, settings, serving=True), settings or DEFAULT_SETTINGS, ssl, observers)


class Server:
    """Listens for clients of a service; see :func:`weirpool.serve`. After an await, call :meth:`close`."""

    def __init__(
        self,
        service: Service,
        urls: list[Url],
        settings: Settings,
        ssl: tls.SSLContext | None,
        observers: Observers,
        listen: Listen = transports.listen,
    ) -> None:
        self._service = service
        self._listen = listen
        self._urls = urls
        self._settings = settings = contained_lease(settings)
        self._ssl = ssl
        self._observers = observers
        self._listeners: list[Listener] = []
        self._drivers: dict[Session, Driver] = {}
        # Their clients have left, and requests without a response wait to be begun.
        self._finishing: list[Driver] = []
        self._limits = Limits(settings)
        self._arrivals: set[Arrival] = set()
        # Those that are refused, and whose client is told so when its first message arrives.
        self._explained = Places[Arrival](MAX_REFUSED_LINKS, lambda arrival: arrival.refuse(TOO_MANY, logging.DEBUG))
        self._folder: SessionFolder | None = None
        self._background: Background | None = None
        self._expiry: asyncio.TimerHandle | None = None
        # Handlers of FIRE that run on after their connection. Nothing else would keep their tasks alive.
        self._tasks: set[asyncio.Future[Any]] = set()
        self._closing = False

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

    def hand_over(self) -> tuple[list[str], list[int]]:
        """Leave the listening sockets to another process, which gets the returned URLs and inherits the descriptors.

        Both accept clients until this server is closed. Then it leaves queued connections, and the files of Unix
        sockets, to the other one. QUIC sockets cannot be shared: the other one listens after this one has closed.
        """
        return transports.hand_over(self._listeners)

    async def close(self, grace: float | None = None) -> None:
        """Stop listening, and close all connections after their open streams have ended.

        Sessions stored in `Settings.resume_store` are not closed: the next server continues them.

        Args:
            grace: Seconds after which open streams fail; `Settings.close_grace` by default; 0 fails them at once, as
                canceling the task does.

        """
        try:
            await self._close(self._settings.close_grace if grace is None else grace)
        except asyncio.CancelledError:
            for driver in list(self._drivers.values()):
                driver.abandon()
            await self._close(0)
            raise

    async def _close(self, grace: float) -> None:
        self._closing = True
        for listener in self._listeners:
            await listener.close()
        # Sessions without a link are closed, too: no more links are accepted.
        closing = (self._finish(session, driver, grace) for session, driver in self._drivers.items())
        deadline = asyncio.get_running_loop().time() + grace
        fires = (driver.dispatch.late.finish_fires(deadline) for driver in self._finishing)
        await asyncio.gather(self._reject_arrivals(grace), *closing, *fires)
        await cancel_tasks(self._tasks, "a closed connection")
        await self._observers.exited()
        # The links of refused clients close on their own, but not after the event loop.
        await asyncio.gather(*(listener.ended(min(grace, ARRIVAL_SECONDS)) for listener in self._listeners))
        if self._expiry is not None:
            self._expiry.cancel()
        if self._background is not None:
            await self._background.ended()
            self._background = None
        if self._folder is not None:
            self._folder.close()
            self._folder = None

    async def _reject_arrivals(self, grace: float) -> None:
        """Wait briefly for the first messages of links, to reject their sessions; then drop the links."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + min(grace, ARRIVAL_SECONDS)
        if self._folder is not None:
            # They may resume stored sessions, which continue at the next server.
            deadline = 0.0
        while self._arrivals and loop.time() < deadline:  # noqa: ASYNC110 (nothing else needs their end)
            await asyncio.sleep(POLL_SECONDS)
        for arrival in list(self._arrivals):
            arrival.refuse(Refusal(RefusalCause.CLOSING, "the server is closing"))

    async def _finish(self, session: Session, driver: Driver, grace: float) -> None:
        """Close a connection, or detach it if its session is stored."""
        grace = await driver.finish_input(grace)
        if driver.link is None:
            grace = 0
        durable = session.durable
        if durable is not None and durable.kept:
            await self._drained(durable, driver, grace)
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
        self._service.begin(self._settings)
        try:
            self._open_folder()
            for url in self._urls:
                make = detectors(
                    url.protocol,
                    self._settings,
                    self._folder,
                    messages=transports.carries_messages(url),
                    exclusive=transports.names_protocol(url),
                    options=url.options,
                )
                listener = await self._listen(url, self._accepting(make, url.protocol), self._settings, self._ssl)
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

        def accept(address: str, hang_up: HangUp | None) -> Arrival | Refused:
            def new(refusal: str = "") -> Arrival:
                return Arrival(self, self._limits, make(), address, protocol, hang_up, refusal)

            now = asyncio.get_running_loop().time()
            reason = None if hang_up is None else self._limits.make_room(address, now)
            if reason:
                self._note_refusal(address, reason)
                return Refused(SetupRejected.full(reason).message, lambda: self._explainer(lambda: new(reason)))
            arrival = new()
            self._limits.arrived(arrival, now)
            self._arrivals.add(arrival)
            return arrival

        return accept

    def _explainer(self, refused: Callable[[], Arrival]) -> Arrival | None:
        """Return the receiver of a refused link, which reads its set-up to reject it; None if there are too many.

        One that is refused for lack of descriptors must not keep its own.
        """
        now = asyncio.get_running_loop().time()
        if descriptors.spare() < 0 or not self._explained.make_room(now):
            return None
        arrival = refused()
        self._explained.take(arrival, now)
        self._arrivals.add(arrival)
        return arrival

    def evicted(self, arrival: Arrival, reason: Refusal) -> None:
        """Refuse a link that has given its place to another one: now, or when its first message arrives."""
        self._note_refusal(arrival.address, reason)
        arrival.refusal = reason
        if not arrival.linked or self._explainer(lambda: arrival) is None:
            arrival.refuse(reason, logging.DEBUG)

    def _note_refusal(self, address: str, reason: Refusal) -> None:
        logged = self._limits.refused(address, asyncio.get_running_loop().time())
        logger.log(logging.WARNING if logged else logging.DEBUG, "%s refused: %s", address or "a peer", reason)
        self._observers.refused(address, reason)

    def arrived(self, arrival: Arrival, session: Session, link: Link) -> None:
        """Attach the link of `arrival` to its session."""
        self._remove(arrival)
        if arrival.refusal:
            self._refuse(session, link, arrival.refusal)
            return
        driver = self._drivers.get(session)
        if driver is None:
            # A session that an earlier process stored is not a new one.
            durable = session.durable
            reason = None if durable is not None and durable.kept else self._limits.full(arrival.address)
            if self._closing:
                reason = Refusal(RefusalCause.CLOSING, "the server is closing")
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
        driver.attach(link, arrival.more)

    def _begin(self, arrival: Arrival, session: Session) -> Driver:
        """Return the driver of a new session."""
        connection = Connection(arrival.protocol, arrival.address, False)

        def count(verdict: Verdict) -> None:
            self._limits.admitted(session, connection, verdict)
            driver.budget.identify()

        driver = self._observers.driver(
            session, self._settings, self._service, connection, lambda: self._unlinked(session), count
        )
        self._drivers[session] = driver
        driver.over.add_done_callback(lambda _: self._ended(session))
        return driver

    def _refuse(self, session: Session, link: Link, reason: str) -> None:
        """Reject a new session because the server closes, or is at a limit, which the client is told."""
        error = SetupRejected.closes(REJECTED) if self._closing else SetupRejected.full(reason, REJECTED)
        # The client would take the session's pending output for acceptance.
        session.take_output()
        session.close(asyncio.get_running_loop().time(), error)
        for chunk in session.take_output():
            link.write(chunk)
        link.receiver = Discard()
        link.close()

    def lost(self, arrival: Arrival, reason: Refusal) -> None:
        """Remove a link that was lost before its session was known."""
        self._remove(arrival)
        if not arrival.refusal:
            self._observers.refused(arrival.address, reason)

    def _remove(self, arrival: Arrival) -> None:
        """Remove a link from those whose first message has not been read."""
        self._limits.identified(arrival)
        self._explained.leave(arrival)
        self._arrivals.discard(arrival)

    def _unlinked(self, session: Session) -> None:
        """Let a session wait for another link; if too many wait, end one of the client that has most of them."""
        oldest = self._limits.unlinked(session)
        if oldest is None:
            return
        driver = self._drivers[oldest]
        limit = self._settings.max_sessions
        error = LimitExceeded(
            f"more than max_sessions ({limit}) sessions were without a link, most of them of this client"
        )
        logger.warning("%s: session ended: %s", driver.flow.name, error)
        driver.session.close(driver.loop.time(), error)
        driver.flush()

    def _ended(self, session: Session) -> None:
        self._limits.ended(session)
        driver = self._drivers.pop(session)
        self._finishing = [each for each in (*self._finishing, driver) if each.dispatch.late.active]
        for task in driver.exchanges.tasks:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
