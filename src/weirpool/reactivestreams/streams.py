"""Subscriptions of this side, and those of the peer, which are publications here.

On the wire, each side numbers its own subscriptions and reuses a number as soon as its stream has ended. Above the
session, this would be ambiguous, because a user or a handler may not know yet that the earlier stream has ended. So
each stream also has an id that is never reused: positive for ours, negative for the peer's.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Final

from ..errors import ProtocolError
from ..kinds import Kind
from ..wire.reactivestreams.codec import MAX_VARINT, NAMES, Type

__all__ = ["UNBOUNDED", "Publication", "Subscription", "Subscriptions", "add", "spend"]

UNBOUNDED: Final = MAX_VARINT
"""Reactive Streams 3.17: a demand of 2^63-1 is effectively unbounded; it never decreases."""
_MAX = MAX_VARINT
_COMPLETE = int(Type.ON_COMPLETE)
_ERROR = int(Type.ON_ERROR)


def add(demand: int, count: int) -> int:
    """Return `demand` plus `count`, at most 2^63-1. Neither exceeds 2^63-1."""
    return _MAX if count > _MAX - demand else demand + count


def spend(demand: int, count: int) -> int:
    """Return the remaining demand after `count` items."""
    return demand if demand == _MAX else demand - count


class Subscription:
    """A subscription of this side.

    Attributes:
        id: Its id in events.
        number: Its number on the wire.
        kind: A :class:`~weirpool.Kind` as a number; CALL accepts only the first item.
        granted: Items that the peer may still send.
        confirmed: Whether its `subscribed` has been received. Earlier messages belong to an earlier subscription.
        over: Whether it has ended, and only its `subscribed` is pending.
        element_size: The fixed size of its items; 0: not fixed.
        metadata: The metadata of the next element.
        elements: Its incomplete elements, by number, with their ids in the reassembly.

    """

    __slots__ = ("confirmed", "element_size", "elements", "granted", "id", "kind", "metadata", "number", "over")

    def __init__(self, id: int, number: int, kind: Kind, demand: int) -> None:
        self.id = id
        self.number = number
        self.kind = int(kind)
        self.granted = demand
        self.confirmed = False
        self.over = False
        self.element_size = 0
        self.metadata: bytes | None = None
        self.elements: dict[int, int] = {}


class Subscriptions:
    """The subscriptions of this side, each with the lowest free number.

    The document permits reusing a number immediately. Here, a number is free when its `subscribed` has also been
    received, so that at most one is pending for each number.
    """

    __slots__ = ("_by_id", "_canceled", "_free", "_last_id", "_next", "_table", "live")

    def __init__(self) -> None:
        self._table: dict[int, Subscription] = {}
        self._by_id: dict[int, Subscription] = {}
        self._last_id = 0
        self._free: list[int] = []
        # Numbers whose last subscription was canceled, and whose publisher may not know it yet.
        self._canceled: set[int] = set()
        self._next = 1
        self.live = 0

    def open(self, kind: Kind, demand: int) -> Subscription:
        """Open a subscription and return it."""
        if self._free:
            number = heappop(self._free)
        else:
            number = self._next
            self._next += 1
        self._last_id += 1
        subscription = Subscription(self._last_id, number, kind, demand)
        self._table[number] = self._by_id[self._last_id] = subscription
        self.live += 1
        return subscription

    def get(self, number: int) -> Subscription | None:
        """Return the subscription of that number, or None if it has ended."""
        subscription = self._table.get(number)
        return None if subscription is None or subscription.over else subscription

    def of(self, stream_id: int) -> Subscription | None:
        """Return the subscription of that id, or None if it has ended."""
        return self._by_id.get(stream_id)

    def was_used(self, number: int) -> bool:
        """Return whether any subscription has had that number."""
        return 0 < number < self._next

    def fence(self, number: int) -> Subscription | None:
        """Record the `subscribed` of a subscription and return it; None if none was pending."""
        subscription = self._table.get(number)
        if subscription is None or subscription.confirmed:
            return None
        subscription.confirmed = True
        self._canceled.discard(number)
        if subscription.over:
            # It can only have been canceled.
            self._canceled.add(number)
            self._remove(number)
        return subscription

    def receiving(self, number: int, type: int) -> Subscription | None:
        """Return the subscription that a message is for; None if it arrived too late and must be ignored.

        Messages of a canceled subscription may still arrive after its number was reused.

        Raises:
            ProtocolError: No subscription has had that number, or the message arrived before its `subscribed`.

        """
        subscription = self._table.get(number)
        if subscription is not None and subscription.confirmed and not subscription.over:
            return subscription
        if not self.was_used(number):
            raise ProtocolError(f"subscriber {number} has never existed")
        if subscription is not None and not subscription.confirmed and number not in self._canceled:
            # THREATS 101. If an onError were ignored here, its call would wait forever.
            raise ProtocolError(f"{NAMES[type]} for subscriber {number} before subscribed, which must be first")
        if type == _COMPLETE or type == _ERROR:
            # It crossed our cancel.
            self._canceled.discard(number)
        return None

    def end(self, subscription: Subscription, canceled: bool = False) -> None:
        """End a subscription. If it was `canceled`, its publisher may still send messages."""
        if not subscription.over:
            subscription.over = True
            self.live -= 1
            del self._by_id[subscription.id]
            if subscription.confirmed:
                if canceled:
                    self._canceled.add(subscription.number)
                self._remove(subscription.number)

    def all(self) -> list[Subscription]:
        """Return the subscriptions that have not ended, in the order in which they were opened."""
        return list(self._by_id.values())

    def _remove(self, number: int) -> None:
        del self._table[number]
        heappush(self._free, number)


class Publication:
    """A subscription of the peer.

    Attributes:
        subscriber: Its number on the wire.
        id: Its id in events.
        credit: Items that we may still send.
        element_size: The announced fixed size of our items; 0: not fixed.
        unsent: The rest of an element that is sent in parts; None if there is none.
        unsent_id: The number of that element.
        next_element: The number of the next element that is sent in parts.

    """

    __slots__ = ("credit", "element_size", "id", "next_element", "subscriber", "unsent", "unsent_id")

    def __init__(self, id: int, subscriber: int, demand: int, element_size: int) -> None:
        self.id = id
        self.subscriber = subscriber
        self.credit = demand
        self.element_size = element_size
        self.unsent: memoryview | None = None
        self.unsent_id = 0
        self.next_element = 0
