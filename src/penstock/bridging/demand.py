"""The items of an upstream's stream, requested as the client requests them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Final

from ..aio.streams import Stream
from ..payload import Payload
from ..settings import Settings

__all__ = ["DemandedItems", "Open"]

UNTOLD: Final = 1 << 62
"""The demand of a client until it is told: the window limits it."""

Open = Callable[[int], Stream]
"""``open(credit)`` returns a stream that requests `credit` items at first, and no more by itself."""


class DemandedItems(AsyncIterator[Payload]):
    """Requests from the upstream what the client has requested, and never more than a window ahead of it.

    A client may request 2^31 items at once. No more than `Settings.credit` of them, or `Settings.max_credit_bytes`, are
    on their way at a time, so that a slow link to the client does not fill the memory of the bridge.

    The stream is opened when the client requests the first item.

    Args:
        open: Opens the stream.
        settings: The settings of the connection to the upstream.

    """

    def __init__(self, open: Open, settings: Settings) -> None:
        self._open = open
        self._window = settings.credit
        self._max_bytes = settings.max_credit_bytes
        self._largest = 1
        self._stream: Stream | None = None
        self._items: AsyncIterator[Payload] | None = None
        # Counts of items since the start: those that the client allows, that were requested, and that were passed on.
        self._allowed = UNTOLD
        self._requested = 0
        self._passed = 0
        self._waiter: asyncio.Future[None] | None = None

    def demanded(self, credit: int) -> None:
        """Request items, because the client accepts `credit` more of them."""
        self._allowed = self._passed + credit
        self._request_more()
        if self._waiter is not None and not self._waiter.done() and self._allowed > 0:
            self._waiter.set_result(None)

    def __aiter__(self) -> DemandedItems:
        return self

    async def __anext__(self) -> Payload:
        if self._items is None:
            await self._begin()
        assert self._items is not None
        self._request_more()
        item = await anext(self._items)
        self._passed += 1
        self._largest = max(self._largest, len(item.data))
        return item

    async def aclose(self) -> None:
        """Cancel the stream."""
        if self._stream is not None:
            await self._stream.__aexit__(None, None, None)

    @property
    def _limit(self) -> int:
        """How many items may be on their way."""
        return max(1, min(self._window, self._max_bytes // self._largest))

    async def _begin(self) -> None:
        while self._allowed <= 0:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        self._requested = min(self._allowed, self._limit)
        stream = self._open(self._requested)
        await stream.__aenter__()
        self._stream = stream
        self._items = aiter(stream)
        # The client may have requested more meanwhile.
        self._request_more()

    def _request_more(self) -> None:
        if self._stream is None:
            return
        limit = self._limit
        count = min(self._allowed, self._passed + limit) - self._requested
        # If the window limits it, it is requested by halves, which saves frames.
        if count > 0 and (self._allowed <= self._passed + limit or 2 * count >= limit):
            self._requested += count
            self._stream.grant(count)
