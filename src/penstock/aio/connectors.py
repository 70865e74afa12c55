"""Connectors: they find a driver for each request of a peer."""

from __future__ import annotations

from abc import abstractmethod
from typing import Final, TypeAlias

from ..errors import LeaseMissing, LocalError, Rejected, SessionClosed, SetupRejected
from ..kinds import Kind
from ..payload import Payload
from ..settings import Settings
from .driver import Driver
from .exchanges import Exchanges

__all__ = ["MAX_REFUSALS", "Connector", "Direct", "Opening"]

MAX_REFUSALS: Final = 16
"""Closing servers that may refuse a request before it fails. In a rolling restart, each server may refuse it once."""

Opening: TypeAlias = tuple[Kind, str, Payload, int, bool, bool]
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

    async def reopen(self, driver: Driver, error: LocalError, opening: Opening) -> tuple[Driver, int]:
        """Open a stream that `driver` could not open because of `error`; return its driver and its id.

        Raises:
            LeaseMissing: No lease arrived within `Settings.lease_timeout`.
            SessionError: The peer is closed.

        """
        try:
            if isinstance(error, LeaseMissing):
                return driver, await driver.exchanges.leases.open(*opening)
            raise error
        except SessionClosed as closed:
            raise driver.error or closed from None

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
