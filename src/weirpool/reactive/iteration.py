"""Adapters from iterables to publishers, and from publishers to async iterators."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, Iterable
from typing import Final, Generic, TypeVar

from ..aio.handlers import close_items
from ..errors import CreditExceeded, LocalError
from .interfaces import Publisher, Starting, Subscriber, Subscription
from .subscriptions import TaskSubscription, check_error

__all__ = ["WINDOW", "Window", "from_aiter", "to_aiter"]

T = TypeVar("T")

WINDOW: Final = 64
"""Items to request in advance: enough to make turns of the loop cheap, few enough to hold in memory."""
TURN_ITEMS: Final = 64
"""Items of a plain iterable per turn of the loop."""


def from_aiter(items: AsyncIterable[T] | Iterable[T]) -> Publisher[T]:
    """Return a publisher of an iterable's items; each subscriber starts a new iteration.

    One item is taken ahead of demand, so that completion is signaled as soon as it is known. Canceling closes the
    iterator. An iterator, such as a generator, yields its items only once: to one subscriber.

    Args:
        items: An async iterable or a plain one.

    Raises:
        LocalError: It is neither.

    """
    if not isinstance(items, AsyncIterable | Iterable):
        raise LocalError(f"from_aiter() takes an iterable or an async iterable, not {type(items).__name__}")
    return Starting(lambda subscriber: _Iteration(subscriber, items).begin())


class _Iteration(TaskSubscription[T]):
    def __init__(self, subscriber: Subscriber[T], items: AsyncIterable[T] | Iterable[T]) -> None:
        super().__init__(subscriber)
        self._items = items

    async def send(self) -> None:
        """Send the items of the iterable."""
        source = self._items
        items = aiter(source if isinstance(source, AsyncIterable) else _in_turns(source))
        try:
            async for item in items:
                if not self.demand:
                    await self.demanded()
                if not self.give(item):
                    break
        finally:
            await close_items(items)


async def _in_turns(items: Iterable[T]) -> AsyncGenerator[T, None]:
    """Yield the items of a plain iterable, and let other tasks run in between."""
    iterator = iter(items)
    try:
        for number, item in enumerate(iterator, 1):
            yield item
            if number % TURN_ITEMS == 0:
                await asyncio.sleep(0)
    finally:
        close = getattr(iterator, "close", None)
        if close is not None:
            close()


async def to_aiter(publisher: Publisher[T], window: int = WINDOW) -> AsyncGenerator[T, None]:
    """Yield the items of a publisher, subscribing when the first one is requested.

    Closing the iterator cancels the subscription.

    Args:
        publisher: The publisher.
        window: Items to request in advance and hold at most; half of it is requested again when it is consumed.

    Raises:
        LocalError: `window` is less than 1.
        CreditExceeded: The publisher sent more items than were requested.

    """
    taker: _Taker[T] = _Taker(window)
    publisher.subscribe(taker)
    try:
        while True:
            while taker.items:
                yield taker.items.popleft()
                taker.window.consumed()
            if taker.over:
                break
            await taker.arrival()
    finally:
        taker.window.cancel()
    if taker.error is not None:
        raise taker.error


class Window:
    """The demand of a subscriber that holds at most a window of items; raises LocalError if that is less than 1."""

    def __init__(self, size: int) -> None:
        if size < 1:
            raise LocalError(f"the window is {size}; a subscriber needs at least 1 item")
        self._size = size
        self._threshold = (size + 1) // 2
        self._consumed = 0
        self._due = 0
        self._subscription: Subscription | None = None

    def opened(self, subscription: Subscription) -> None:
        """Request the first window; a second subscription is canceled (Reactive Streams, rule 2.5)."""
        if self._subscription is not None:
            subscription.cancel()
            return
        self._subscription = subscription
        self._due = self._size
        subscription.request(self._size)

    def received(self) -> None:
        """Count a received item.

        Raises:
            CreditExceeded: It was not requested.

        """
        if not self._due:
            raise CreditExceeded("the publisher sent more items than were requested (Reactive Streams, rule 1.1)")
        self._due -= 1

    def consumed(self) -> None:
        """Count a consumed item, and request more when half a window has been consumed."""
        self._consumed += 1
        if self._consumed >= self._threshold and self._subscription is not None:
            count, self._consumed = self._consumed, 0
            self._due += count
            self._subscription.request(count)

    def cancel(self) -> None:
        """Cancel the subscription."""
        if self._subscription is not None:
            self._subscription.cancel()


class _Taker(Generic[T]):
    """The subscriber behind `to_aiter`."""

    def __init__(self, window: int) -> None:
        self.window = Window(window)
        self.items: deque[T] = deque()
        self.over = False
        self.error: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None

    def on_subscribe(self, subscription: Subscription) -> None:
        self.window.opened(subscription)

    def on_next(self, item: T, /) -> None:
        if self.over:
            return
        try:
            self.window.received()
        except CreditExceeded as error:
            self.window.cancel()
            self._end(error)
        else:
            self.items.append(item)
            self._wake()

    def on_error(self, error: Exception) -> None:
        check_error(error)
        self._end(error)

    def on_complete(self) -> None:
        self._end(None)

    def arrival(self) -> asyncio.Future[None]:
        """Return a future that is done when there is an item or the end."""
        self._waiter = asyncio.get_running_loop().create_future()
        return self._waiter

    def _end(self, error: Exception | None) -> None:
        if not self.over:
            self.over = True
            self.error = error
            self._wake()

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None:
            self._waiter = None
            if not waiter.done():
                waiter.set_result(None)
