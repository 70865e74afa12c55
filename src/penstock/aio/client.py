"""Connecting: a session of ours, and links to the server for as long as it wants one."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl as tls
from collections.abc import Generator
from types import TracebackType
from typing import Final

from .. import transports
from ..dialects import client_session
from ..errors import ConnectError
from ..payload import Payload
from ..settings import DEFAULT_SETTINGS, Settings
from ..urls import Url, parse_url
from .backoff import Backoff
from .driver import Driver
from .peer import Peer
from .service import Service

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
    return Connecting(
        parse_url(url), service or Service(), settings or DEFAULT_SETTINGS, payload, ssl, checkpoint, confirm
    )


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
    ) -> None:
        self._url = url
        self._service = service
        self._settings = settings
        self._setup = setup
        self._ssl = ssl
        self._checkpoint = checkpoint
        self._confirm = confirm
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
        driver = Driver(session, self._settings, self._service, self._url.place, self._unlinked)
        await transports.connect(self._url, driver, self._settings, self._ssl)
        self._driver = driver
        if self._confirm:
            await self._confirmed(driver)
        self._peer = Peer(driver)
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
