"""The client: ``async with connect(url) as peer``."""

from __future__ import annotations

import ssl as tls
from collections.abc import Callable, Generator, Iterable
from types import TracebackType
from typing import Literal

from ..protocols import spec_of
from ..settings import DEFAULT_SETTINGS, Settings
from ..tap import Tap
from ..urls import parse_urls
from .connectors import Direct
from .dialer import Dialer, SetupData
from .handlers import Interceptor, check_interceptor
from .observers import Observers
from .peer import Peer
from .reconnect import Backoff, BudgetedReconnect, Reconnect, resuming
from .reconnecting import Reconnecting
from .service import Service
from .setup import ConnectionHook

__all__ = ["Connecting", "connect"]


def connect(
    url: str,
    *,
    service: Service | None = None,
    settings: Settings | None = None,
    setup: SetupData | Callable[[], SetupData] = b"",
    ssl: tls.SSLContext | None = None,
    checkpoint: bytes | None = None,
    secret: bytes = b"",
    confirm: bool = False,
    interceptors: Iterable[Interceptor] = (),
    taps: Iterable[Tap] = (),
    on_connection: ConnectionHook | None = None,
    reconnect: Reconnect | Literal[False] | None = None,
) -> Connecting:
    """Connect to a server: ``async with connect(url) as peer``, or ``peer = await connect(url)``.

    Args:
        url: The protocol, transport and address: ``rsocket+tcp://127.0.0.1:7878``.
        service: Handlers for requests from the server, if the protocol supports them.
        settings: Limits and timeouts. With `Settings.resume`, the session continues over a new link when one breaks;
            the only effect is a delay.
        setup: The set-up payload, or a function that returns it. A function, for example for a token that expires, is
            called for each session, and over River for each handshake.
        ssl: The TLS context. By default the system's certificate authorities are trusted.
        checkpoint: The result of :meth:`Peer.checkpoint` in another process, whose session is resumed.
        secret: The value of :attr:`Peer.secret` in that process.
        confirm: Whether to wait until the server has accepted the set-up, which takes one round trip. Without it, a
            rejection fails the first requests.
        interceptors: Functions around all requests of the peer, the outermost first: each is an
            ``async def interceptor(request, next)``; see :class:`~weirpool.Request`.
        taps: Observers of events; see :class:`~weirpool.Tap`.
        on_connection: Called with the :class:`~weirpool.Connection`. The async context manager that it returns is
            entered before the connection is used, and exited when it is closed.
        reconnect: How to reconnect with a new session if the connection breaks and cannot be resumed. Open streams
            fail, and later requests use the new session. False closes the peer instead. None selects the default of
            the protocol: River reconnects within a retry budget, the others close. The budget is that of River's
            reference implementation: five consecutive attempts, about 3 s in total; each 200 ms of a live connection
            restore one. After a longer outage all requests fail with :exc:`~weirpool.ConnectError` until
            :meth:`Peer.reset_budget` is called, so a service that must wait for its server needs a
            :class:`~weirpool.Reconnect`. A session that can still be resumed gets another link within a second after
            the network is back, unless a retry budget delays it.

    Returns:
        An object that connects when it is awaited or entered, and gives a :class:`~weirpool.Peer`. Exiting the block
        closes the connection. After an await, call :meth:`Peer.close`.

    Raises:
        UrlError: The URL has an unknown protocol, transport or address.
        LocalError: An interceptor does not take `request` and `next`, or a setting has no effect with this URL.
        ConnectError: When awaited or entered: no connection could be made.
        SetupRejected: With `confirm`: the server rejected the set-up.
        UnsupportedKind: With `confirm`: the protocol does not confirm set-ups.

    """
    around = list(interceptors)
    for interceptor in around:
        check_interceptor(interceptor)
    [place] = parse_urls([url], settings, serving=False)
    policy, backoff = _policy(place.protocol, reconnect)
    dialer = Dialer(
        place,
        service or Service(),
        settings or DEFAULT_SETTINGS,
        setup,
        ssl,
        backoff,
        checkpoint,
        confirm,
        Observers(taps, on_connection),
        secret,
    )
    return Connecting(dialer, policy, around)


def _policy(
    protocol: str, reconnect: Reconnect | Literal[False] | None
) -> tuple[Reconnect | None, Callable[[], Backoff]]:
    """Return the policy for new sessions, None for none, and a factory of the delays between links of one session."""
    if reconnect:
        return reconnect, reconnect.resuming
    if reconnect is False or not spec_of(protocol).reconnects:
        return None, resuming
    budgeted = BudgetedReconnect()
    return budgeted, budgeted.resuming


class Connecting:
    """The result of :func:`connect`, which connects when it is awaited or entered."""

    def __init__(self, dialer: Dialer, reconnect: Reconnect | None, interceptors: list[Interceptor]) -> None:
        self._dialer = dialer
        self._reconnect = reconnect
        self._interceptors = interceptors
        self._peer: Peer | None = None

    def __await__(self) -> Generator[None, None, Peer]:
        return self._open().__await__()

    async def __aenter__(self) -> Peer:
        return await self._open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._peer is not None:
            # After an exception, usually a cancellation, open streams are not waited for.
            await self._peer.close(None if error is None else 0)

    async def _open(self) -> Peer:
        if self._peer is None:
            if self._reconnect is None:
                driver = self._dialer.driver()
                await self._dialer.open(driver)
                self._peer = Peer(Direct(driver), self._interceptors)
            else:
                connector = Reconnecting(self._dialer, self._reconnect)
                await connector.open()
                self._peer = Peer(connector, self._interceptors) if self._interceptors else connector.peer
        return self._peer
