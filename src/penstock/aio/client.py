"""Connecting: ``async with connect(url) as peer``."""

from __future__ import annotations

import ssl as tls
from collections.abc import Generator
from types import TracebackType

from ..payload import Payload
from ..settings import DEFAULT_SETTINGS, Settings
from ..urls import parse_url
from .backoff import Backoff
from .dialer import Dialer
from .driver import Driver
from .lasting import LastingPeer
from .peer import Peer
from .reconnect import Reconnect
from .service import Service

__all__ = ["Connecting", "connect"]


def connect(
    url: str,
    *,
    service: Service | None = None,
    settings: Settings | None = None,
    setup: bytes | str | Payload = b"",
    ssl: tls.SSLContext | None = None,
    checkpoint: bytes | None = None,
    reconnect: Reconnect | None = None,
) -> Connecting:
    """Connect to a server: ``async with connect(url) as peer``, or ``peer = await connect(url)``.

    Args:
        url: Where to, and how: ``rsocket+tcp://127.0.0.1:7878``.
        service: What the server may ask of us, where the protocol lets it.
        settings: Limits and timeouts. With `Settings.resume`, the session goes on over a new connection when
            one breaks, and nobody notices but by the delay.
        setup: What to tell the server about us.
        ssl: For TLS; else the system's certificate authorities are trusted.
        checkpoint: What :meth:`Peer.checkpoint` returned in another process: its session is resumed.
        reconnect: How to go on with a new session when the connection breaks and cannot be resumed: what is open
            fails, and what is asked for later goes over the new one. Without it the peer is closed then.

    Returns:
        What connects when it is awaited or entered. Leaving the block closes the connection; after an await,
        call :meth:`Peer.close`.

    Raises:
        UrlError: The URL names nothing that we know.
        ConnectError: Awaited or entered: no connection could be made.

    """
    payload = setup if isinstance(setup, Payload) else Payload(setup)
    backoff = Backoff if reconnect is None else reconnect.backoff
    dialer = Dialer(
        parse_url(url), service or Service(), settings or DEFAULT_SETTINGS, payload, ssl, backoff, checkpoint
    )
    return Connecting(dialer, reconnect)


class Connecting:
    """A connection that is about to be made; see :func:`connect`."""

    def __init__(self, dialer: Dialer, reconnect: Reconnect | None) -> None:
        self._dialer = dialer
        self._reconnect = reconnect
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
                driver = self._dialer.driver(Driver)
                await self._dialer.link(driver)
                self._peer = Peer(driver)
            else:
                peer = LastingPeer(self._dialer, self._reconnect)
                await peer.open()
                self._peer = peer
        return self._peer
