"""Connecting: ``async with connect(url) as peer``."""

from __future__ import annotations

import ssl as tls
from collections.abc import Callable, Generator, Iterable
from types import TracebackType
from typing import Literal

from ..protocols import spec_of
from ..settings import DEFAULT_SETTINGS, Settings
from ..tap import Tap
from ..urls import parse_url
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
        url: Where to, and how: ``rsocket+tcp://127.0.0.1:7878``.
        service: What the server may ask of us, where the protocol lets it.
        settings: Limits and timeouts. With `Settings.resume`, the session goes on over a new connection when
            one breaks, and nobody notices but by the delay.
        setup: What to tell the server about us; or a function that returns it, such as a token that expires, which is
            called for every session, and over River for every handshake.
        ssl: For TLS; else the system's certificate authorities are trusted.
        checkpoint: What :meth:`Peer.checkpoint` returned in another process: its session is resumed.
        secret: What :attr:`Peer.secret` was there.
        confirm: Wait until the server has accepted the set-up: one round trip, after which a refusal is known.
            Else a refusal fails what is asked for first.
        interceptors: What stands around everything that the peer is asked for, the first being the outermost:
            each an ``async def interceptor(request, next)``; see :class:`~penstock.Request`.
        taps: Told what happens; see :class:`~penstock.Tap`.
        on_connection: Called with the :class:`~penstock.Connection`; returns an async context manager that is
            entered before this is, and left when the connection is closed.
        reconnect: How to go on with a new session when the connection breaks and cannot be resumed: what is open
            fails, and what is asked for later goes over the new one. False: the peer is closed then. None is what
            the protocol has: River goes on as its retry budget allows, the others close. That budget is the one of
            River's reference: five tries in a row, about 3 s together, and one is given back for each 200 ms that a
            connection holds. After a longer outage everything fails with a :exc:`ConnectError` until
            :meth:`Peer.reset_budget` is called; a service that shall wait for its server needs a
            :class:`Reconnect`. A session that may still be alive gets another link within a second of the
            network's return, by whatever policy but that budget.

    Returns:
        What connects when it is awaited or entered. Leaving the block closes the connection; after an await,
        call :meth:`Peer.close`.

    Raises:
        UrlError: The URL names nothing that we know.
        ConnectError: Awaited or entered: no connection could be made.
        SetupRejected: With `confirm`: the server refuses the set-up.
        UnsupportedKind: With `confirm`: the protocol has no way to ask.

    """
    around = list(interceptors)
    for interceptor in around:
        check_interceptor(interceptor)
    place = parse_url(url)
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
    """Return how new sessions are made, None for not at all, and what makes the delays between links of one session."""
    if reconnect:
        return reconnect, reconnect.resuming
    if reconnect is False or not spec_of(protocol).reconnects:
        return None, resuming
    budgeted = BudgetedReconnect()
    return budgeted, budgeted.resuming


class Connecting:
    """A connection that is about to be made; see :func:`connect`."""

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
            # An exception, above all a cancellation, is no time to wait for what is open.
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
