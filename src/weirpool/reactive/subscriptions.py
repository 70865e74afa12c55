"""The common parts of this package's subscriptions: demand, the end, and a task that sends items."""

from __future__ import annotations

import asyncio
import logging
from abc import abstractmethod
from typing import Generic, TypeVar

from ..errors import LocalError
from .interfaces import UNBOUNDED, Subscriber, Subscription

__all__ = ["TaskSubscription", "check_error", "no_request", "tell_end", "tell_item", "tell_subscription"]

logger = logging.getLogger("weirpool.reactive")

T = TypeVar("T")

_running: set[asyncio.Task[None]] = set()
"""The loop itself holds only weak references to tasks."""


def no_request(count: int) -> LocalError:
    """Return the error for a request of less than one item (Reactive Streams, rule 3.9)."""
    return LocalError(f"request({count}): a subscriber requests at least 1 item (Reactive Streams, rule 3.9)")


def check_error(error: object) -> None:
    """Raise LocalError if a publisher ends a stream by None instead of an error (rule 2.13)."""
    if error is None:
        raise LocalError("on_error() needs an exception (Reactive Streams, rule 2.13); call on_complete() instead")


def tell_subscription(subscriber: Subscriber[T], subscription: Subscription) -> None:
    """Pass a subscription to `subscriber`. If it raises, the subscription is canceled (rules 1.9 and 2.13)."""
    try:
        subscriber.on_subscribe(subscription)
    except Exception:
        logger.exception("a subscriber failed on its subscription, which is canceled")
        subscription.cancel()


def tell_item(subscriber: Subscriber[T], item: T) -> bool:
    """Pass an item to `subscriber`. Returns False if it raises, and must be treated as canceled (rule 2.13)."""
    try:
        subscriber.on_next(item)
    except Exception:
        logger.exception("a subscriber failed on an item; its subscription is canceled")
        return False
    return True


def tell_end(subscriber: Subscriber[T], error: Exception | None) -> None:
    """Pass the end of its stream to `subscriber`: an error, or None for completion. An exception of it is logged."""
    try:
        if error is not None:
            subscriber.on_error(error)
        else:
            subscriber.on_complete()
    except Exception:
        logger.exception("a subscriber failed on the end of its stream")


class TaskSubscription(Generic[T]):
    """A subscription whose items a task sends.

    Attributes:
        subscriber: The receiver of the items; None after the end (rule 3.13).
        demand: Items that were requested and not yet sent.

    """

    def __init__(self, subscriber: Subscriber[T]) -> None:
        self.subscriber: Subscriber[T] | None = subscriber
        self.demand = 0
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None
        self._waiter: asyncio.Future[None] | None = None

    @property
    def over(self) -> bool:
        """True after the end: nothing more is sent."""
        return self.subscriber is None

    def begin(self) -> None:
        """Pass this subscription to the subscriber, and send items from the next turn of the loop on."""
        subscriber = self.subscriber
        assert subscriber is not None
        tell_subscription(subscriber, self)
        if not self.over:
            self._task = task = self._loop.create_task(self._run())
            _running.add(task)
            task.add_done_callback(_running.discard)

    def request(self, count: int) -> None:
        """Request `count` more items; after the end there is no effect."""
        if self.over:
            return
        if count < 1:
            self._end(no_request(count))
            self._stop()
            return
        self.demand = min(self.demand + count, UNBOUNDED)
        self.requested()
        waiter = self._waiter
        if waiter is not None:
            self._waiter = None
            if not waiter.done():
                waiter.set_result(None)

    def cancel(self) -> None:
        """Cancel; after the end there is no effect."""
        if not self.over:
            self.subscriber = None
            self._stop()

    def requested(self) -> None:
        """React to new demand."""

    @abstractmethod
    async def send(self) -> None:
        """Send the items by `give` until the end."""

    async def demanded(self) -> None:
        """Wait until there is demand."""
        while not self.demand:
            self._waiter = self._loop.create_future()
            await self._waiter

    def give(self, item: T) -> bool:
        """Send an item, for which there is demand; return whether to continue."""
        self.demand -= 1
        subscriber = self.subscriber
        if subscriber is None:
            return False
        if not tell_item(subscriber, item):
            self.subscriber = None
        return not self.over

    def _stop(self) -> None:
        """Cancel the task, unless it is the caller, which ends by itself."""
        task = self._task
        if task is not None and task is not asyncio.current_task(self._loop):
            task.cancel()

    def _end(self, error: Exception | None) -> None:
        subscriber = self.subscriber
        self.subscriber = None
        if subscriber is not None:
            tell_end(subscriber, error)

    async def _run(self) -> None:
        try:
            await self.send()
        except Exception as error:
            self._end(error)
        else:
            self._end(None)
