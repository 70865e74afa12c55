"""Adapters from and to observables of the package `reactivex`, which have no back-pressure.

An observable emits at any time, from any thread, so items that were not requested need a policy. In the other
direction, an observer takes each item at once: a window of items is requested, and renewed as it takes them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeAlias, TypeVar, get_args

from .._build import pip_command
from ..errors import CreditExceeded, LocalError
from .interfaces import UNBOUNDED, Publisher, Starting, Subscriber, Subscription
from .iteration import WINDOW, Window
from .subscriptions import check_error, no_request, tell_end, tell_item, tell_subscription

if TYPE_CHECKING:
    from reactivex import Observable

__all__ = ["Policy", "from_observable", "to_observable"]

T = TypeVar("T")

Policy: TypeAlias = Literal["buffer", "drop", "latest", "error"]
"""The policy for an item that was not requested. "buffer": it waits among `bound` others, and one more fails the
subscription. "drop": it is dropped. "latest": it waits, and the next one replaces it. "error": it fails the
subscription."""

BOUND: Final = 1_024
"""The maximum number of waiting items."""


def from_observable(observable: Observable[T], policy: Policy = "buffer", bound: int = BOUND) -> Publisher[T]:
    """Return a publisher of an observable's items; each subscriber subscribes to it again.

    When the observable completes or fails, waiting items are sent before the end is signaled.

    Args:
        observable: An observable of reactivex, or an object with ``subscribe(on_next, on_error, on_completed)`` that
            returns an object with `dispose()`. It may emit from any thread.
        policy: What to do with items that were not requested.
        bound: For "buffer": how many of them may wait, at least 1.

    Raises:
        LocalError: The policy is unknown, or `bound` is less than 1.

    """
    if policy not in get_args(Policy):
        raise LocalError(f"policy is {policy!r}; it is one of {', '.join(get_args(Policy))}")
    if bound < 1:
        raise LocalError(f"bound is {bound}; a buffer holds at least 1 item")
    return Starting(lambda subscriber: _Relay(subscriber, policy, bound).begin(observable))


class _Relay(Generic[T]):
    """One subscription. The observable's threads add items under a lock, and the loop's thread takes them."""

    def __init__(self, subscriber: Subscriber[T], policy: Policy, bound: int) -> None:
        self._subscriber: Subscriber[T] | None = subscriber
        self._policy = policy
        self._spare = {"buffer": bound, "latest": 1}.get(policy, 0)
        self._loop = asyncio.get_running_loop()
        self._lock = Lock()
        self._waiting: deque[T] = deque()
        self._demand = 0
        self._closed = False
        self._error: Exception | None = None
        self._scheduled = False
        self._source: Any = None

    def begin(self, observable: Observable[T]) -> None:
        """Pass this subscription to the subscriber, then subscribe to the observable."""
        assert self._subscriber is not None
        tell_subscription(self._subscriber, self)
        if self._subscriber is not None:
            self._source = observable.subscribe(self._arrived, self._failed, self._completed)
            if self._closed:
                self._dispose()

    # In the loop's thread.

    def request(self, count: int) -> None:
        """Request `count` more items; after the end there is no effect."""
        if self._subscriber is None:
            return
        if count < 1:
            with self._lock:
                # Reactive Streams, rule 3.9: this error also replaces an end that waits for demand.
                self._waiting.clear()
                self._closed = False
                self._close(no_request(count))
        else:
            with self._lock:
                self._demand = min(self._demand + count, UNBOUNDED)
                self._schedule()

    def cancel(self) -> None:
        """Cancel; after the end there is no effect."""
        self._subscriber = None
        with self._lock:
            self._closed = True
            self._waiting.clear()
        self._dispose()

    def _drain(self) -> None:
        """Send waiting items that were requested, and the end after all of them."""
        with self._lock:
            self._scheduled = False
        while self._subscriber is not None:
            with self._lock:
                ended = not self._waiting and self._closed
                if not ended and (not self._waiting or not self._demand):
                    return
                if not ended:
                    self._demand -= 1
                    item = self._waiting.popleft()
            if ended:
                self._tell_end(self._subscriber)
            elif not tell_item(self._subscriber, item):
                self.cancel()

    def _tell_end(self, subscriber: Subscriber[T]) -> None:
        self._subscriber = None
        self._dispose()
        tell_end(subscriber, self._error)

    def _dispose(self) -> None:
        source, self._source = self._source, None
        if source is not None:
            source.dispose()

    # In any thread.

    def _arrived(self, item: T) -> None:
        with self._lock:
            if self._closed:
                return
            if len(self._waiting) < self._demand + self._spare:
                self._waiting.append(item)
            elif self._policy == "latest":
                self._waiting[-1] = item
            elif self._policy != "drop":
                bound = f"; {self._spare} others wait already" if self._spare else ""
                self._close(CreditExceeded(f"the observable sent an item that was not requested{bound}"))
            self._schedule()

    def _failed(self, error: Exception) -> None:
        with self._lock:
            self._close(error)

    def _completed(self) -> None:
        with self._lock:
            self._close(None)

    def _close(self, error: Exception | None) -> None:
        """Accept no more items; needs the lock."""
        if not self._closed:
            self._closed = True
            self._error = error
            self._schedule()

    def _schedule(self) -> None:
        """Schedule `_drain` in the loop; needs the lock."""
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon_threadsafe(self._drain)


def to_observable(publisher: Publisher[T], window: int = WINDOW) -> Observable[T]:
    """Return an observable of a publisher's items, for observers that take each one at once.

    Call it in the thread of the event loop. You may subscribe and dispose in any thread. Observers are called in the
    loop's thread.

    Args:
        publisher: The publisher.
        window: Items to request in advance.

    Raises:
        LocalError: The package `reactivex` is not installed, or `window` is less than 1.

    """
    try:
        import reactivex
        from reactivex.disposable import Disposable
    except ModuleNotFoundError as error:
        if error.name != "reactivex":
            raise
        raise LocalError(f"to_observable() needs the package reactivex; run: {pip_command('reactive')}") from error
    Window(window)
    loop = asyncio.get_running_loop()

    def subscribe(observer: Any, scheduler: Any = None) -> Any:
        observing: _Observing[T] = _Observing(observer, window)
        _within(loop, lambda: publisher.subscribe(observing))
        return Disposable(lambda: _within(loop, observing.dispose))

    return reactivex.create(subscribe)


def _within(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    """Call a function in the thread of `loop`: at once if that is the current one."""
    try:
        here = asyncio.get_running_loop() is loop
    except RuntimeError:
        here = False
    if here:
        call()
    elif not loop.is_closed():
        loop.call_soon_threadsafe(call)


class _Observing(Generic[T]):
    """The subscriber behind an observer."""

    def __init__(self, observer: Any, window: int) -> None:
        self._observer = observer
        self._window = Window(window)
        self._disposed = False

    def dispose(self) -> None:
        """Cancel the subscription."""
        self._disposed = True
        self._window.cancel()

    def on_subscribe(self, subscription: Subscription) -> None:
        if self._disposed:
            subscription.cancel()
        else:
            self._window.opened(subscription)

    def on_next(self, item: T, /) -> None:
        if self._disposed:
            return
        try:
            self._window.received()
        except CreditExceeded as error:
            self.dispose()
            self._observer.on_error(error)
        else:
            self._observer.on_next(item)
            self._window.consumed()

    def on_error(self, error: Exception) -> None:
        check_error(error)
        if not self._disposed:
            self._observer.on_error(error)

    def on_complete(self) -> None:
        if not self._disposed:
            self._observer.on_completed()
