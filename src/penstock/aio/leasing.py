"""Requests waiting for a lease from the peer."""

from __future__ import annotations

import asyncio
from collections import deque

from ..errors import LeaseMissing
from ..kinds import Kind
from ..payload import Payload
from .flow import Flow

__all__ = ["LeaseWaiters"]


class LeaseWaiters:
    """Requests that wait for a lease on one connection, in the order in which they came.

    Args:
        flow: The connection's.

    """

    __slots__ = ("_flow", "_waiting")

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def open(
        self, kind: Kind, route: str, payload: Payload, credit: int, done: bool = False, endless: bool = False
    ) -> int:
        """Open a stream as soon as a lease allows it; see `Session.open`.

        Raises:
            LeaseMissing: No lease came within `Settings.lease_timeout`.

        """
        flow = self._flow
        timeout = flow.settings.lease_timeout
        first = True
        try:
            async with asyncio.timeout(timeout):
                while True:
                    # Requests that wait already go first.
                    if not (first and self._waiting):
                        try:
                            return flow.session.open(kind, route, payload, credit, done, endless)
                        except LeaseMissing:
                            if timeout <= 0:
                                raise
                    await self._wait(first)
                    first = False
        except TimeoutError:
            raise LeaseMissing(f"{flow.name} has given no leave for another request within {timeout:g} s") from None

    def granted(self, count: int) -> None:
        """Let `count` waiting requests try again."""
        for waiter in list(self._waiting)[:count]:
            if not waiter.done():
                waiter.set_result(None)

    def closed(self) -> None:
        """Let all try again: they find the connection closed."""
        self.granted(len(self._waiting))

    async def _wait(self, first: bool) -> None:
        waiter: asyncio.Future[None] = self._flow.loop.create_future()
        # A request that was overtaken by one that did not wait keeps its place.
        (self._waiting.append if first else self._waiting.appendleft)(waiter)
        try:
            await waiter
        finally:
            self._waiting.remove(waiter)
