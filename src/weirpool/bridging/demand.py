"""The demand of the side of a bridge that receives items, which is passed on to the side that sends them."""

from __future__ import annotations

import asyncio
from typing import Final

from ..aio.items import Items

__all__ = ["Demand"]

UNTOLD: Final = 1 << 62
"""What the receiver accepts until it is told: the sender's window limits it."""


class Demand:
    """Lets the items of a sender be requested only as its receiver requests them.

    The sender's own window limits them, too: a receiver may request 2^31 items at once, and a slow link to it must not
    fill the memory of the bridge.

    Attributes:
        passed: Items that were passed on to the receiver.
        accepted: Items that the receiver accepts, counted from the first.

    """

    def __init__(self) -> None:
        self.passed = 0
        self.accepted = UNTOLD
        self._items: Items | None = None
        self._waiter: asyncio.Future[None] | None = None

    def told(self, credit: int) -> None:
        """Note that the receiver accepts `credit` items after those that were passed on."""
        accepted = self.passed + credit
        if accepted == self.accepted:
            return
        self.accepted = accepted
        if self._items is not None:
            self._items._allow(accepted)
        elif self._waiter is not None and not self._waiter.done() and accepted > 0:
            self._waiter.set_result(None)

    async def first(self) -> int:
        """Wait until the receiver accepts an item; return how many it accepts."""
        while self.accepted <= 0:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return self.accepted

    def begin(self, items: Items) -> None:
        """Pass the demand on to the sender of these items, from now on."""
        self._items = items
        items._allow(self.accepted)
