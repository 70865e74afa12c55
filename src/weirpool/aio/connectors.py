"""Connectors: they find a driver for each request of a peer."""

from __future__ import annotations

from abc import abstractmethod
from asyncio import CancelledError
from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeAlias

from ..errors import LeaseMissing, Rejected, SessionClosed, SetupRejected
from ..kinds import Kind
from ..payload import Payload
from ..settings import Settings
from .driver import Driver
from .exchanges import Exchanges
from .outgoing import Outgoing
from .replies import Reply

__all__ = ["MAX_REFUSALS", "Connector", "Direct", "Opening"]

MAX_REFUSALS: Final = 16
"""Closing servers that may refuse a request before it fails. In a rolling restart, each server may refuse it once."""

Opening: TypeAlias = tuple[Kind, str, Payload, int] | tuple[Kind, str, Payload, int, bool, bool]
"""The arguments of `Session.open`."""


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
        opening: Opening,
        own: Callable[[Driver, Reply, int], object],
        items: Outgoing | None,
        order: int = 0,
    ) -> Any:
        """Send a call or a FIRE when it is its turn, and return the response of a call.

        Args:
            driver: The driver to use, unless its session ends before the request is sent.
            opening: The arguments of `Session.open`.
            own: Called with the driver, the reply, and the stream id, when the request was sent.
            items: What follows the request of an upload. If it cannot be repeated, neither is the request.
            order: The id of its first stream, if the peer has refused it; otherwise 0.

        """
        refusals = repeated = 0
        while True:
            exchanges = driver.exchanges
            queue = exchanges.queue
            reply = exchanges.new_reply()
            request = queue.add(reply, opening, partial(own, driver, reply), order)
            try:
                await reply
                return reply.result()
            except CancelledError:
                queue.remove(request)
                exchanges.abandon(request.stream_id)
                raise
            except (Rejected, SetupRejected) as error:
                if items is not None and not items.repeatable:
                    raise
                if queue.repeats(error, repeated):
                    order = order or request.stream_id
                    repeated += 1
                elif refusals < MAX_REFUSALS and self.replaces(exchanges, error):
                    refusals += 1
                    driver, order = await self.driver(), 0
                else:
                    raise
            except (LeaseMissing, SessionClosed) as error:
                if request.stream_id:
                    raise
                driver, order = await self.another(driver, error, True), 0
            finally:
                if items is not None and request.stream_id:
                    # The response to an upload may arrive before the end of its items.
                    exchanges.cancel_stream(request.stream_id)

    async def opened(
        self, driver: Driver, opening: Opening, own: Callable[[Exchanges, int], Any], order: int = 0
    ) -> Any:
        """Send a request that is not a call when it is its turn; return the result of `own`. See :meth:`queued`."""
        while True:
            exchanges = driver.exchanges
            try:
                return await exchanges.queue.opened(opening, partial(own, exchanges), order)
            except (LeaseMissing, SessionClosed) as error:
                driver, order = await self.another(driver, error, True), 0

    async def another(self, driver: Driver, error: LeaseMissing | SessionClosed, waited: bool = False) -> Driver:
        """Return the driver in whose queue to put a request that `driver` could not send because of `error`.

        Args:
            driver: The driver.
            error: The error of `Session.open`.
            waited: The request has waited in the queue of `driver`.

        Raises:
            LeaseMissing: No lease arrived within `Settings.lease_timeout`.
            SessionError: The peer is closed.

        """
        if isinstance(error, SessionClosed):
            raise driver.error or error from None
        if waited:
            raise error
        return driver

    def replaces(self, exchanges: Exchanges, error: Exception | None) -> bool:
        """Return True if a request of `exchanges` that failed with `error` may be sent again, on another connection.

        This is so if a closing server has refused it without processing it.
        """
        return isinstance(error, Rejected | SetupRejected) and error.closing and self.replaced(exchanges)

    def replaced(self, exchanges: Exchanges) -> bool:
        """Return True if further requests use another connection than that of `exchanges`."""
        return False

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
