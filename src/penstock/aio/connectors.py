"""Connectors find the driver for what a peer is asked for."""

from __future__ import annotations

from abc import abstractmethod

from ..settings import Settings
from .driver import Driver

__all__ = ["Connector", "Direct"]


class Connector:
    """Finds the driver over which the next request goes.

    Attributes:
        current: The driver to use now, unless its flow is paused; None: ask :meth:`driver`.
        latest: The driver whose session is the peer's own; None where there are several.

    """

    __slots__ = ("current", "latest", "settings")

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.current: Driver | None = None
        self.latest: Driver | None = None

    @property
    def closed(self) -> bool:
        """Whether there will be no connection any more."""
        return self.latest is not None and self.latest.closed

    @property
    def outstanding(self) -> int:
        """How many streams are open, calls included, of both sides."""
        return 0 if self.latest is None else self.latest.session.open_streams

    @abstractmethod
    async def driver(self) -> Driver:
        """Wait for a driver that takes output, and return it; to be used at once.

        Raises:
            ConnectError: There is none, and none came in time.
            SessionError: There will be none any more.

        """

    async def push(self, metadata: bytes) -> None:
        """Send metadata that belongs to the connection as a whole. See :meth:`Peer.push`."""
        driver = await self.driver()
        driver.session.push(metadata)
        driver.flow.wake()

    async def close(self, grace: float | None = None) -> None:
        """Close all connections. See :meth:`Peer.close`."""
        if self.latest is not None:
            await self.latest.close(grace)

    def detach(self) -> None:
        """Give up the connection without ending the session. See :meth:`Peer.detach`."""
        if self.latest is not None:
            self.latest.detach()

    def reset_budget(self) -> None:
        """Allow connecting again where a retry budget is used up. See :meth:`Peer.reset_budget`."""


class Direct(Connector):
    """The connector of one connection, which is not replaced when it breaks."""

    __slots__ = ()

    def __init__(self, driver: Driver) -> None:
        super().__init__(driver.settings)
        self.current = self.latest = driver

    async def driver(self) -> Driver:
        """Return the driver once its link takes output."""
        driver = self.latest
        assert driver is not None
        if driver.flow.paused:
            await driver.writable()
        return driver
