"""Connectors: they find a driver for each request of a peer."""

from __future__ import annotations

from abc import abstractmethod
from asyncio import CancelledError, Future
from collections.abc import Callable
from functools import partial
from typing import Any

from ..errors import Rejected, SessionClosed
from ..settings import Settings
from .driver import Driver

__all__ = ["Connector", "Direct"]


class Connector:
    """Finds the driver for the next request.

    Attributes:
        current: The driver to use now, unless its flow is paused; None: await :meth:`driver`.
        latest: The driver of the peer's session; None if there are several.

    """

    __slots__ = ("current", "latest", "settings")

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.current: Driver | None = None
        self.latest: Driver | None = None

    @property
    def closed(self) -> bool:
        """True if no connection is left, and none will be made."""
        return self.latest is not None and self.latest.closed

    @property
    def outstanding(self) -> int:
        """The number of open streams of both sides, including calls."""
        return 0 if self.latest is None else self.latest.session.open_streams

    @abstractmethod
    async def driver(self) -> Driver:
        """Wait for a driver that accepts output, and return it; use it without awaiting anything else first.

        Raises:
            ConnectError: There is no connection, and none was made in time.
            SessionError: The peer is closed.

        """

    async def queued(
        self,
        driver: Driver,
        opening: tuple[Any, ...],
        own: Callable[[Driver, Future[Any], int], object],
        repeatable: bool,
        order: int = 0,
    ) -> Any:
        """Send a call or a FIRE when it is its turn, and return the response of a call.

        Args:
            driver: The driver to use, unless its session ends before the request is sent.
            opening: The arguments of `Session.open`.
            own: Called with the driver, the future of the response, and the stream id, when the request was sent.
            repeatable: Whether to send the request again if the peer refuses it for the time being.
            order: The id of its first stream, if the peer has refused it; otherwise 0.

        """
        while True:
            queue = driver.exchanges.queue
            future: Future[Any] = driver.loop.create_future()
            request = queue.add(future, opening, partial(own, driver, future), order)
            try:
                return await future
            except CancelledError:
                queue.remove(request)
                driver.exchanges.abandon(request.stream_id)
                raise
            except Rejected as error:
                if not repeatable or not queue.repeats(error, order):
                    raise
                order = order or request.stream_id
            except SessionClosed as error:
                if request.stream_id:
                    raise
                closed, driver, order = driver, await self.driver(), 0
                if driver is closed:
                    raise driver.error or error from None
            finally:
                if not repeatable and request.stream_id:
                    # The response to an upload may arrive before the end of its items.
                    driver.exchanges.cancel_stream(request.stream_id)

    async def push(self, metadata: bytes) -> None:
        """Send metadata that concerns the whole connection. See :meth:`Peer.push`."""
        driver = await self.driver()
        driver.session.push(metadata)
        driver.flow.schedule_write()

    async def close(self, grace: float | None = None) -> None:
        """Close all connections. See :meth:`Peer.close`."""
        if self.latest is not None:
            await self.latest.close(grace)

    def detach(self) -> None:
        """Give up the connection without ending the session. See :meth:`Peer.detach`."""
        if self.latest is not None:
            self.latest.detach()

    def reset_budget(self) -> None:
        """Refill the retry budget, if there is one. See :meth:`Peer.reset_budget`."""


class Direct(Connector):
    """The connector of one connection, which is not replaced if it breaks."""

    __slots__ = ()

    def __init__(self, driver: Driver) -> None:
        super().__init__(driver.settings)
        self.current = self.latest = driver

    async def driver(self) -> Driver:
        """Wait until the link accepts output, and return the driver."""
        driver = self.latest
        assert driver is not None
        if driver.flow.paused:
            await driver.writable()
        return driver
