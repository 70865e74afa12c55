"""Connecting: a session of ours, and links to the server for as long as it wants one."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl as tls
from collections.abc import Generator, Iterable
from types import TracebackType
from typing import Final

from .. import transports
from ..connection import Connection
from ..dialects import client_session
from ..errors import ConnectError
from ..payload import Payload
from ..settings import DEFAULT_SETTINGS, Settings
from ..tap import Tap
from ..urls import Url, parse_url
from .backoff import Backoff
from .driver import Driver
from .intercept import Interceptor
from .intercepted import InterceptedPeer
from .peer import Peer
from .service import Service, check_interceptor
from .watching import ConnectionHook, Watchers, entered

__all__ = ["Connecting", "connect"]

logger = logging.getLogger("penstock.aio")

TOKEN_BYTES: Final = 16
"""RSocket 1.0, Identification Token Handling: nobody may guess it. These are 128 bits."""


def connect(
    url: str,
    *,
    service: Service | None = None,
    settings: Settings | None = None,
    setup: bytes | str | Payload = b"",
    ssl: tls.SSLContext | None = None,
    checkpoint: bytes | None = None,
    confirm: bool = False,
    interceptors: Iterable[Interceptor] = (),
    taps: Iterable[Tap] = (),
    on_connection: ConnectionHook | None = None,
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
        confirm: Wait until the server has accepted the set-up: one round trip, after which a refusal is known.
            Else a refusal fails what is asked for first.
        interceptors: What stands around everything that the peer is asked for, the first being the outermost:
            each an ``async def interceptor(request, next)``; see :class:`~penstock.Request`.
        taps: Told what happens; see :class:`~penstock.Tap`.
        on_connection: Called with the :class:`~penstock.Connection`; returns an async context manager that is
            entered before this is, and left when the connection is closed.

    Returns:
        What connects when it is awaited or entered. Leaving the block closes the connection; after an await,
        call :meth:`Peer.close`.

    Raises:
        UrlError: The URL names nothing that we know.
        ConnectError: Awaited or entered: no connection could be made.
        SetupRejected: With `confirm`: the server refuses the set-up.
        UnsupportedKind: With `confirm`: the protocol has no way to ask.

    """
    payload = setup if isinstance(setup, Payload) else Payload(setup)
    around = list(interceptors)
    for interceptor in around:
        check_interceptor(interceptor)
    watchers = Watchers(taps, on_connection, always=bool(around))
    options = (service or Service(), settings or DEFAULT_SETTINGS, payload, ssl, checkpoint, confirm, around, watchers)
    return Connecting(parse_url(url), *options)


class Connecting:
    """A connection that is about to be made; see :func:`connect`."""

    def __init__(
        self,
        url: Url,
        service: Service,
        settings: Settings,
        setup: Payload,
        ssl: tls.SSLContext | None,
        checkpoint: bytes | None,
        confirm: bool,
        interceptors: list[Interceptor],
        watchers: Watchers,
    ) -> None:
        self._url = url
        self._service = service
        self._settings = settings
        self._setup = setup
        self._ssl = ssl
        self._checkpoint = checkpoint
        self._confirm = confirm
        self._interceptors = interceptors
        self._watchers = watchers
        self._driver: Driver | None = None
        self._peer: Peer | None = None
        self._again: asyncio.Task[None] | None = None

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
        if self._peer is not None:
            return self._peer
        session = client_session(
            self._url.protocol,
            self._settings,
            setup=self._setup,
            random=os.urandom(TOKEN_BYTES),
            checkpoint=self._checkpoint,
            messages=transports.carries_messages(self._url),
        )
        settings, url = self._settings, self._url
        connection = Connection(url.protocol, url.place, True, self._setup, settings.metadata_mime, settings.data_mime)
        driver = self._watchers.driver(session, settings, self._service, connection, self._unlinked)
        await transports.connect(url, driver, settings, self._ssl)
        await entered(driver)
        self._driver = driver
        if self._confirm:
            await self._confirmed(driver)
        around = self._interceptors
        self._peer = InterceptedPeer(driver, around, connection) if around else Peer(driver)
        return self._peer

    async def _confirmed(self, driver: Driver) -> None:
        """Wait until the server has accepted the set-up, and leave nothing behind if it has not."""
        limit = self._settings.connect_timeout
        try:
            async with asyncio.timeout(limit):
                await driver.confirm()
        except BaseException as error:
            await driver.close(0)
            if isinstance(error, TimeoutError):
                raise ConnectError(f"{self._url.place} has not accepted the set-up within {limit:g} s") from None
            raise

    def _unlinked(self) -> None:
        """Take care of a session that has lost its link and wants another."""
        if self._driver is not None and (self._again is None or self._again.done()):
            self._again = self._driver.loop.create_task(self._reconnect(self._driver))
            self._driver.over.add_done_callback(self._stop)

    async def _reconnect(self, driver: Driver) -> None:
        """Try until there is a link, or the session gives up: its own timer ends it."""
        backoff = Backoff()
        logger.info("%s: the connection broke; resuming", driver.name)
        while driver.link is None and not driver.closed:
            await asyncio.sleep(backoff.next())
            try:
                await transports.connect(self._url, driver, self._settings, self._ssl)
            except ConnectError as error:
                logger.info("%s", error)

    def _stop(self, over: asyncio.Future[None]) -> None:
        if self._again is not None:
            self._again.cancel()
