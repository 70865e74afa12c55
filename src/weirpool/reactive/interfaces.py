"""The four interfaces of Reactive Streams 1.0. Any object with their methods implements them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

from ..errors import LocalError
from ..functions import check_plain

__all__ = ["UNBOUNDED", "Processor", "Publisher", "Starting", "Subscriber", "Subscription"]

T_in = TypeVar("T_in", contravariant=True)
T_out = TypeVar("T_out", covariant=True)

SIGNALS: Final = ("on_subscribe", "on_next", "on_error", "on_complete")
UNBOUNDED: Final = (1 << 63) - 1
"""Reactive Streams, rule 3.17: this demand may be treated as unbounded."""


class Subscription(Protocol):
    """The connection of one subscriber to one publisher."""

    @abstractmethod
    def request(self, count: int) -> None:
        """Request `count` more items. Less than 1 fails the subscription; after its end there is no effect."""

    @abstractmethod
    def cancel(self) -> None:
        """Cancel. Items in flight may still arrive; after the end there is no effect."""


class Subscriber(Protocol[T_in]):
    """Receives items, at most as many as it requests."""

    @abstractmethod
    def on_subscribe(self, subscription: Subscription) -> None:
        """Receive the subscription. This is the first call, and occurs once."""

    @abstractmethod
    def on_next(self, item: T_in, /) -> None:
        """Receive a requested item."""

    @abstractmethod
    def on_error(self, error: Exception) -> None:
        """Receive an error of the publisher. Nothing follows."""

    @abstractmethod
    def on_complete(self) -> None:
        """Receive the completion. Nothing follows."""


class Publisher(Protocol[T_out]):
    """Sends items to its subscribers."""

    @abstractmethod
    def subscribe(self, subscriber: Subscriber[T_out]) -> None:
        """Subscribe `subscriber`: its `on_subscribe` is called before this returns."""


class Processor(Subscriber[T_in], Publisher[T_out], Protocol[T_in, T_out]):
    """Both a subscriber and a publisher."""


class Starting(Generic[T_out]):
    """A publisher that calls a function for each subscriber, to start its subscription."""

    def __init__(self, start: Callable[[Subscriber[T_out]], None]) -> None:
        self._start = start

    def subscribe(self, subscriber: Subscriber[T_out]) -> None:
        """Start a subscription for `subscriber`.

        Raises:
            LocalError: It is None (Reactive Streams, rule 1.9), has no `on_subscribe`, or has coroutine functions.

        """
        if not hasattr(subscriber, "on_subscribe"):
            what = type(subscriber).__name__
            raise LocalError(f"subscribe() takes a Subscriber, which has on_subscribe(), not {what}")
        for name in SIGNALS:
            check_plain(getattr(subscriber, name, None), f"{type(subscriber).__name__}.{name}")
        self._start(subscriber)
