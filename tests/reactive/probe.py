"""A subscriber that records its signals."""

from __future__ import annotations

from typing import Any

from tests.waiting import turns, until
from weirpool.reactive import Publisher, Subscription

IDLE_TURNS = 20
"""Turns of the loop after which all signals have arrived."""


class Probe:
    """Records signals, and requests items as its test sets.

    Args:
        first: Items to request in `on_subscribe`.
        each: Items to request in each `on_next`.

    """

    def __init__(self, first: int = 0, each: int = 0) -> None:
        self.first = first
        self.each = each
        self.items: list[Any] = []
        self.ends: list[object] = []
        self.subscriptions: list[Subscription] = []
        self.cancel_at = 0

    @property
    def subscription(self) -> Subscription:
        return self.subscriptions[0]

    def on_subscribe(self, subscription: Subscription) -> None:
        self.subscriptions.append(subscription)
        if self.first:
            subscription.request(self.first)

    def on_next(self, item: Any) -> None:
        assert self.subscriptions, "an item before on_subscribe"
        assert not self.ends, "an item after the end"
        self.items.append(item)
        if len(self.items) == self.cancel_at:
            self.subscription.cancel()
        elif self.each:
            self.subscription.request(self.each)

    def on_error(self, error: Exception) -> None:
        self.ends.append(error)

    def on_complete(self) -> None:
        self.ends.append("complete")

    async def ended(self) -> object:
        await until(lambda: bool(self.ends))
        await turns(IDLE_TURNS)
        assert len(self.ends) == 1
        return self.ends[0]


class Scripted:
    """A publisher that sends what its test sets, regardless of demand.

    Attributes:
        requested: The counts of all requests.
        canceled: The number of cancellations.

    """

    def __init__(self) -> None:
        self.requested: list[int] = []
        self.canceled = 0
        self.subscriber: Any = None

    def subscribe(self, subscriber: Any) -> None:
        self.subscriber = subscriber
        subscriber.on_subscribe(self)

    def request(self, count: int) -> None:
        self.requested.append(count)

    def cancel(self) -> None:
        self.canceled += 1


def subscribed(publisher: Publisher[Any], first: int = 0, each: int = 0) -> Probe:
    probe = Probe(first, each)
    publisher.subscribe(probe)
    assert len(probe.subscriptions) == 1
    return probe
