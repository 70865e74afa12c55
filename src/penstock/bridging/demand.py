"""The items that one side of a bridge sends, requested as the other side requests them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Final, Protocol

from ..aio.handlers import close_items
from ..aio.items import Items
from ..aio.streams import Stream
from ..payload import Payload
from ..settings import Settings

__all__ = ["DemandedItems", "RequestItems", "Response", "Sender"]

UNTOLD: Final = 1 << 62
"""The demand of a receiver until it is told: the window limits it."""


class Sender(Protocol):
    """Sends no items but those that are requested."""

    async def begin(self, credit: int) -> AsyncIterator[Payload]:
        """Request `credit` items, the first ones; return all items."""

    def grant(self, count: int) -> None:
        """Request more items."""

    async def close(self) -> None:
        """Cancel the rest."""


class Response:
    """The items of a response: the stream is opened with the first demand.

    Args:
        open: ``open(credit)`` returns a stream that requests `credit` items at first, and no more by itself.

    """

    def __init__(self, open: Callable[[int], Stream]) -> None:
        self._open = open
        self._stream: Stream | None = None

    async def begin(self, credit: int) -> AsyncIterator[Payload]:
        """Open the stream."""
        stream = self._open(credit)
        await stream.__aenter__()
        self._stream = stream
        return aiter(stream)

    def grant(self, count: int) -> None:
        """Request more items."""
        if self._stream is not None:
            self._stream.grant(count)

    async def close(self) -> None:
        """Cancel the stream."""
        if self._stream is not None:
            await self._stream.__aexit__(None, None, None)


class RequestItems:
    """The items that follow a request, which a `manual` service has received.

    Args:
        items: The items, none of which are requested.

    """

    def __init__(self, items: Items) -> None:
        self._items = items

    async def begin(self, credit: int) -> AsyncIterator[Payload]:
        """Request the first items."""
        self._items.grant(credit)
        return aiter(self._items)

    def grant(self, count: int) -> None:
        """Request more items."""
        self._items.grant(count)

    async def close(self) -> None:
        """Close what an interceptor has put around the items. The end of the handler cancels them."""
        await close_items(self._items)


class DemandedItems(AsyncIterator[Payload]):
    """Requests from a sender what the receiver has requested, and never more than a window ahead of it.

    A receiver may request 2^31 items at once. No more than `Settings.credit` of them, or `Settings.max_credit_bytes`,
    are on their way at a time, so that a slow link to the receiver does not fill the memory of the bridge.

    The sender begins when the receiver requests the first item.

    Args:
        sender: Sends the items.
        settings: The settings of the connection to the sender.

    """

    def __init__(self, sender: Sender, settings: Settings) -> None:
        self._sender = sender
        self._window = settings.credit
        self._max_bytes = settings.max_credit_bytes
        self._largest = 1
        self._items: AsyncIterator[Payload] | None = None
        # Counts of items since the start: those that the receiver allows, that were requested, and that were passed on.
        self._allowed = UNTOLD
        self._requested = 0
        self._passed = 0
        self._waiter: asyncio.Future[None] | None = None

    def demanded(self, credit: int) -> None:
        """Request items, because the receiver accepts `credit` more of them."""
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
        """Cancel the rest."""
        await self._sender.close()

    @property
    def _limit(self) -> int:
        """How many items may be on their way."""
        return max(1, min(self._window, self._max_bytes // self._largest))

    async def _begin(self) -> None:
        while self._allowed <= 0:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        self._requested = min(self._allowed, self._limit)
        self._items = await self._sender.begin(self._requested)
        # The receiver may have requested more meanwhile.
        self._request_more()

    def _request_more(self) -> None:
        if self._items is None:
            return
        limit = self._limit
        count = min(self._allowed, self._passed + limit) - self._requested
        # If the window limits it, it is requested by halves, which saves frames.
        if count > 0 and (self._allowed <= self._passed + limit or 2 * count >= limit):
            self._requested += count
            self._sender.grant(count)
