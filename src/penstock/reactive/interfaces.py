"""The four interfaces of Reactive Streams 1.0, by its names. Anything that has these methods is one of them."""

from __future__ import annotations

from abc import abstractmethod
from typing import Final, Protocol, TypeVar

from ..errors import LocalError

__all__ = ["UNBOUNDED", "Processor", "Publisher", "Subscriber", "Subscription", "check_subscriber"]

T_in = TypeVar("T_in", contravariant=True)
T_out = TypeVar("T_out", covariant=True)

UNBOUNDED: Final = (1 << 63) - 1
"""Reactive Streams, rule 3.17: as much demand as this may be taken for endless."""


class Subscription(Protocol):
    """What one subscriber has of one publisher."""

    @abstractmethod
    def request(self, count: int) -> None:
        """Ask for `count` more items. Less than 1 fails the subscription; after its end nothing happens."""

    @abstractmethod
    def cancel(self) -> None:
        """Want no more items. Some that are under way may still come; after the end nothing happens."""


class Subscriber(Protocol[T_in]):
    """Takes items, as many as it requests."""

    @abstractmethod
    def on_subscribe(self, subscription: Subscription) -> None:
        """Get what to request items by. It comes first, and once."""

    @abstractmethod
    def on_next(self, item: T_in, /) -> None:
        """Take an item that was requested."""

    @abstractmethod
    def on_error(self, error: Exception) -> None:
        """Learn that the publisher failed. Nothing follows."""

    @abstractmethod
    def on_complete(self) -> None:
        """Learn that these were all items. Nothing follows."""


class Publisher(Protocol[T_out]):
    """Gives items to whoever subscribes."""

    @abstractmethod
    def subscribe(self, subscriber: Subscriber[T_out]) -> None:
        """Let `subscriber` have items: its `on_subscribe` is called before this returns."""


class Processor(Subscriber[T_in], Publisher[T_out], Protocol[T_in, T_out]):
    """Takes items and gives others: both of the above."""


def check_subscriber(subscriber: object) -> None:
    """Refuse what cannot be subscribed.

    Raises:
        LocalError: It is None (Reactive Streams, rule 1.9), or has no `on_subscribe`.

    """
    if not hasattr(subscriber, "on_subscribe"):
        raise LocalError(f"subscribe() takes a Subscriber, which has on_subscribe(), not {type(subscriber).__name__}")
