"""Serving: links that come in, the sessions that they belong to, and how all of it ends."""

from __future__ import annotations

import asyncio
import logging
import ssl as tls
from collections import Counter
from collections.abc import Callable, Generator
from types import TracebackType

from .. import session as sessions
from .. import transports
from ..dialects import acceptors
from ..errors import LocalError, ProtocolError
from ..session import Session
from ..settings import DEFAULT_SETTINGS, Settings
from ..transports import Discard, Link, Listener
from ..urls import Url, parse_url
from .admission import Acceptor, Gate
from .driver import Driver
from .service import Service

__all__ = ["Server", "serve"]

logger = logging.getLogger("penstock.aio")


def serve(
    service: Service,
    *urls: str,
    settings: Settings | None = None,
    ssl: tls.SSLContext | None = None,
    acceptor: Acceptor | None = None,
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

    Returns:
        What listens when it is entered or awaited. Leaving the block closes it: what is in flight may end
        within `Settings.close_grace`.

    Raises:
        UrlError: A URL names nothing that we know.
        ConnectError: Entered or awaited: a place cannot be bound.

    """
    if not urls:
        raise LocalError("serve() needs at least one URL, such as rsocket+tcp://:7878")
    return Server(service, [parse_url(url) for url in urls], settings or DEFAULT_SETTINGS, ssl, acceptor)


class Server:
    """A service, and where it is offered; see :func:`serve`."""

    def __init__(
        self,
        service: Service,
        urls: list[Url],
        settings: Settings,
        ssl: tls.SSLContext | None,
        acceptor: Acceptor | None,
    ) -> None:
        self._service = service
        self._acceptor = acceptor
        self._wanted = urls
        self._settings = settings
        self._ssl = ssl
        self._listeners: list[Listener] = []
        self._drivers: dict[Session, Driver] = {}
        self._addresses: Counter[str] = Counter()
        self._arrivals: set[_Arrival] = set()

    @property
    def urls(self) -> list[str]:
        """Where it listens, with the ports that were really bound."""
        return [str(listener.url) for listener in self._listeners]

    @property
    def connections(self) -> int:
        """How many sessions there are, those that wait for their client to come back included."""
        return len(self._drivers)

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

        Args:
            grace: How many seconds what is in flight may take to end; else `Settings.close_grace`.

        """
        for listener in self._listeners:
            await listener.close()
        for arrival in list(self._arrivals):
            arrival.refuse("the server is closing")
        # A session without a link waits for one, and from now on there is none.
        drivers = list(self._drivers.values())
        await asyncio.gather(*(driver.close(0 if driver.link is None else grace) for driver in drivers))

    async def _open(self) -> Server:
        if self._listeners:
            return self
        try:
            for url in self._wanted:
                make = acceptors(url.protocol, self._settings)
                listener = await transports.listen(url, self._accepting(make), self._settings, self._ssl)
                self._listeners.append(listener)
        except BaseException:
            await self.close(0)
            raise
        return self

    # Links.

    def _accepting(self, make: Callable[[], sessions.Acceptor]) -> transports.Accept:
        """Return what takes the new links of one listener."""

        def accept(address: str) -> _Arrival | None:
            settings = self._settings
            if self._addresses.total() >= settings.max_connections:
                logger.warning("%s refused: max_connections (%d) are open", address, settings.max_connections)
                return None
            if self._addresses[address] >= settings.max_connections_per_address:
                limit = settings.max_connections_per_address
                logger.warning("%s refused: max_connections_per_address (%d) are open", address, limit)
                return None
            self._addresses[address] += 1
            arrival = _Arrival(self, make(), address)
            self._arrivals.add(arrival)
            return arrival

        return accept

    def arrived(self, arrival: _Arrival, session: Session, link: Link) -> None:
        """Hand the link of `arrival` to the session that it belongs to."""
        self._arrivals.discard(arrival)
        driver = self._drivers.get(session)
        if driver is None:
            driver = Driver(session, self._settings, self._service, arrival.address)
            driver.gate = Gate(driver, self._acceptor, link.certificate())
            self._drivers[session] = driver
            driver.over.add_done_callback(lambda _: self._ended(session, arrival.address))
        else:
            # The session that this link takes over counts already.
            self._left(arrival.address)
        link.receiver = driver
        driver.attach(link)

    def lost(self, arrival: _Arrival) -> None:
        """Forget a link that was lost before anybody knew whose it is."""
        self._arrivals.discard(arrival)
        self._left(arrival.address)

    def _ended(self, session: Session, address: str) -> None:
        self._drivers.pop(session, None)
        self._left(address)

    def _left(self, address: str) -> None:
        self._addresses[address] -= 1
        if self._addresses[address] <= 0:
            del self._addresses[address]


class _Arrival:
    """The receiver of a link of which nobody knows yet whose it is."""

    def __init__(self, server: Server, acceptor: sessions.Acceptor, address: str) -> None:
        self.address = address
        self._server = server
        self._acceptor = acceptor
        self._link: Link | None = None
        self._timer: asyncio.TimerHandle | None = None

    def link_made(self, link: Link) -> None:
        """Give the peer some time to say who it is."""
        self._link = link
        loop = asyncio.get_running_loop()
        self._acceptor.identity = link.certificate() or b""
        self._acceptor.link_up(loop.time())
        due = self._acceptor.next_timer()
        if due is not None:
            self._timer = loop.call_at(due, self.refuse, "it did not say who it is in time")

    def received(self, data: bytes) -> None:
        """Look whether it is known now."""
        link = self._link
        if link is None:
            return
        try:
            session = self._acceptor.receive(data, asyncio.get_running_loop().time())
        except ProtocolError as error:
            link.write(self._acceptor.farewell)
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
        self._server.lost(self)

    def refuse(self, reason: str) -> None:
        """Close the link, with one line in the log."""
        logger.warning("%s refused: %s", self.address or "a peer", reason)
        self._stop()
        self._server.lost(self)
        if self._link is not None:
            self._link.receiver = Discard()
            self._link.close()
            self._link = None

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
