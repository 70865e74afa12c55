"""Creates sessions with one server, and opens their links."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl as tls
from collections.abc import Callable
from math import inf
from typing import Final, TypeAlias

from .. import transports
from ..connection import Connection
from ..errors import ConnectError
from ..payload import Payload
from ..protocols import client_session, connection_settings
from ..settings import Settings
from ..urls import Url
from .driver import NEW, Driver
from .lease_policy import contained_lease
from .observers import Observers
from .reconnect import Backoff
from .service import Service

__all__ = ["Dialer", "SetupData", "payload_of"]

logger = logging.getLogger("weirpool.aio")

STABLE_SECONDS: Final = 1.0
"""Seconds after which a link counts as stable, which resets the delays before the next one."""
TOKEN_BYTES: Final = 16
"""RSocket 1.0, Identification Token Handling: the token must not be guessable. These are 128 bits."""


SetupData: TypeAlias = "bytes | str | Payload"


def payload_of(data: SetupData) -> Payload:
    """Return set-up data as a payload."""
    return data if isinstance(data, Payload) else Payload(data)


class Dialer:
    """Creates the sessions with one server, and opens their links.

    `backoff` creates the delays between attempts to restore the link of a session. The other arguments are those of
    :func:`weirpool.connect`.

    Attributes:
        connection: The newest connection.

    """

    def __init__(
        self,
        url: Url,
        service: Service,
        settings: Settings,
        setup: SetupData | Callable[[], SetupData],
        ssl: tls.SSLContext | None,
        backoff: Callable[[], Backoff],
        checkpoint: bytes | None = None,
        confirm: bool = False,
        observers: Observers | None = None,
        secret: bytes = b"",
    ) -> None:
        self.url = url
        self.settings = contained_lease(connection_settings(url.protocol, settings, url.options))
        self.backoff = backoff
        self._service = service
        self._setup = setup
        self._renew = (lambda: payload_of(setup())) if callable(setup) else None
        self._ssl = ssl
        self._checkpoint = checkpoint
        self._secret = secret
        self._confirm = confirm
        self._observers = observers or Observers()
        self.connection = self._new_connection()

    def _new_connection(self) -> Connection:
        url, settings = self.url, self.settings
        # A function is called only when there is a session to begin.
        setup = (None if callable(self._setup) else payload_of(self._setup)) or Payload()
        return Connection(url.protocol, url.place, True, setup, settings.metadata_mime, settings.data_mime)

    def driver(self) -> Driver:
        """Return the driver of a new session, which has no link yet."""
        setup = self._setup() if callable(self._setup) else self._setup
        session = client_session(
            self.url.protocol,
            self.settings,
            setup=payload_of(setup),
            random=os.urandom(TOKEN_BYTES),
            checkpoint=self._checkpoint,
            secret=self._secret,
            messages=transports.carries_messages(self.url),
            options=self.url.options,
            renew=self._renew,
        )
        restorer = _LinkRestorer(self)
        self.connection = connection = self._new_connection()
        driver = self._observers.driver(session, self.settings, self._service, connection, restorer.unlinked)
        restorer.driver = driver
        if self._checkpoint is not None:
            # Items may arrive as soon as the link is open, before the task that waits for it runs again.
            driver.restore()
        return driver

    async def open(self, driver: Driver) -> None:
        """Open the first link of `driver`, enter the connection hook, and confirm the set-up if requested.

        Raises:
            ConnectError: No connection could be made.
            SetupRejected: With `confirm`: the server rejected the set-up.

        """
        try:
            await self.link(driver)
        except BaseException:
            if driver.state != NEW and self._checkpoint is None:
                # Its link was made, and is given up. The session must not get another one. One that is restored from a
                # checkpoint stays, because the next attempt resumes it.
                await driver.close(0)
            raise
        if driver.admission is not None:
            await driver.admission.entered()
        if self._confirm:
            await self._confirmed(driver)

    async def _confirmed(self, driver: Driver) -> None:
        """Wait until the server has accepted the set-up; close the driver if it does not."""
        limit = self.settings.connect_timeout
        try:
            async with asyncio.timeout(limit):
                await driver.confirm()
        except BaseException as error:
            await driver.close(0)
            if isinstance(error, TimeoutError):
                raise ConnectError(f"{self.url.place} did not accept the set-up within {limit:g} s") from None
            raise

    async def link(self, driver: Driver) -> None:
        """Open a link for `driver`.

        Raises:
            ConnectError: No connection could be made.

        """
        try:
            await transports.connect(self.url, driver, self.settings, self._ssl)
        except BaseException:
            # A cancellation may arrive when the link is already open.
            if driver.link is not None:
                driver.link.abort()
            raise
        self._checkpoint = None


class _LinkRestorer:
    """Opens another link for a session that has lost its own."""

    def __init__(self, dialer: Dialer) -> None:
        self.driver: Driver | None = None
        self._dialer = dialer
        self._backoff = dialer.backoff()
        self._linked_at = -inf
        self._task: asyncio.Task[None] | None = None

    def unlinked(self) -> None:
        """Start to open another link."""
        if self.driver is not None and (self._task is None or self._task.done()):
            # Whoever reports the loss, such as a timer of another connection, may run in another context.
            context = self.driver.dispatch.context.copy()
            self._task = self.driver.loop.create_task(self._resume(self.driver), context=context)
            self.driver.over.add_done_callback(self._stop)

    async def _resume(self, driver: Driver) -> None:
        """Try until there is a link, or a timer of the session has ended it."""
        backoff, loop = self._backoff, driver.loop
        backoff.linked(driver.session.linked_at)
        if loop.time() - self._linked_at >= STABLE_SECONDS:
            backoff.reset()
        if driver.session.excused:
            backoff.excuse()
        logger.info("%s: the connection broke; resuming", driver.flow.name)
        known = ""
        while driver.link is None and not driver.closed:
            await backoff.wait()
            try:
                await self._dialer.link(driver)
            except ConnectError as error:
                # An outage may take thousands of attempts.
                if str(error) != known:
                    known = str(error)
                    logger.info("%s", known)
        self._linked_at = loop.time()

    def _stop(self, over: asyncio.Future[None]) -> None:
        if self._task is not None:
            self._task.cancel()
