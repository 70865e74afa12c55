"""Requests that wait for leave: for a lease of the peer's, where the connection works with leases."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from ..errors import LeaseMissing
from ..kinds import Kind
from ..payload import Payload

if TYPE_CHECKING:
    from .driver import Driver

__all__ = ["Lessees"]


class Lessees:
    """Those who wait for a lease on one connection, in the order in which they came.

    Args:
        driver: Whose connection it is.

    """

    __slots__ = ("_driver", "_waiting")

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def open(
        self, kind: Kind, route: str, payload: Payload, credit: int, done: bool = False, endless: bool = False
    ) -> int:
        """Open a stream as soon as there is leave for it; see `Session.open`.

        Raises:
            LeaseMissing: None came within `Settings.lease_timeout`.

        """
        driver = self._driver
        timeout = driver.settings.lease_timeout
        first = True
        try:
            async with asyncio.timeout(timeout):
                while True:
                    # Whoever waits already goes first.
                    if not (first and self._waiting):
                        try:
                            return driver.session.open(kind, route, payload, credit, done, endless)
                        except LeaseMissing:
                            if timeout <= 0:
                                raise
                    await self._wait(first)
                    first = False
        except TimeoutError:
            raise LeaseMissing(f"{driver.name} has given no leave for another request within {timeout:g} s") from None

    def granted(self, count: int) -> None:
        """Let `count` of those who wait try again."""
        for waiter in list(self._waiting)[:count]:
            if not waiter.done():
                waiter.set_result(None)

    def closed(self) -> None:
        """Let all try again: they learn that the connection is closed."""
        self.granted(len(self._waiting))

    async def _wait(self, first: bool) -> None:
        waiter: asyncio.Future[None] = self._driver.loop.create_future()
        # Whoever was overtaken by a request that did not wait keeps its place.
        (self._waiting.append if first else self._waiting.appendleft)(waiter)
        try:
            await waiter
        finally:
            self._waiting.remove(waiter)
