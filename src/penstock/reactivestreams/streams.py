"""Both ends of subscriptions: those of this side, and those of the peer.

On the wire each side numbers its own, and uses a number again as soon as its stream is over. Above the session that
would mix streams up: the user, or the handler, of the one that is over may not have heard of its end. So each stream
has an id besides, which is never used again: positive for ours, negative for the peer's.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Final

from ..errors import ProtocolError
from ..kinds import Kind
from ..wire.reactivestreams.codec import MAX_VARINT, NAMES, Type

__all__ = ["UNBOUNDED", "Publication", "Subscription", "Subscriptions", "add", "spend"]

UNBOUNDED: Final = MAX_VARINT
"""Reactive Streams 3.17: a demand of 2^63-1 is as good as infinite; it is never used up."""
_MOST = MAX_VARINT
_COMPLETE = int(Type.ON_COMPLETE)
_ERROR = int(Type.ON_ERROR)


def add(demand: int, count: int) -> int:
    """Return `demand` and `count`, of 2^63-1 at most each, together: at most 2^63-1."""
    return _MOST if count > _MOST - demand else demand + count


def spend(demand: int, count: int) -> int:
    """Return what is left of `demand` after `count` items."""
    return demand if demand == _MOST else demand - count


class Subscription:
    """A subscription of this side.

    Attributes:
        id: What events call it.
        number: What it is called on the wire.
        kind: A :class:`~penstock.Kind` as a number; CALL wants the first item alone.
        granted: Items that the peer may still send.
        fenced: Its `subscribed` has come: what came before belonged to an earlier subscription of that id.
        over: It is ended, and only its `subscribed` is waited for.
        element_size: Of its items, where it is fixed.
        metadata: Of the next element.
        elements: Those of which not all parts are here: their ids, and where they are put together.

    """

    __slots__ = ("element_size", "elements", "fenced", "granted", "id", "kind", "metadata", "number", "over")

    def __init__(self, id: int, number: int, kind: Kind, demand: int) -> None:
        self.id = id
        self.number = number
        self.kind = int(kind)
        self.granted = demand
        self.fenced = False
        self.over = False
        self.element_size = 0
        self.metadata: bytes | None = None
        self.elements: dict[int, int] = {}


class Subscriptions:
    """The subscriptions of this side, each with the lowest number that is free.

    The document lets an id be used again at once; ours is free when its `subscribed` has come as well, so that
    each id waits for one at most.
    """

    __slots__ = ("_by_id", "_canceled", "_free", "_last_id", "_next", "_table", "live")

    def __init__(self) -> None:
        self._table: dict[int, Subscription] = {}
        self._by_id: dict[int, Subscription] = {}
        self._last_id = 0
        self._free: list[int] = []
        # Numbers of which the last publisher was canceled, and may not have read that.
        self._canceled: set[int] = set()
        self._next = 1
        self.live = 0

    def open(self, kind: Kind, demand: int) -> Subscription:
        """Begin one."""
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
        """Return the subscription of that number, unless it is over."""
        subscription = self._table.get(number)
        return None if subscription is None or subscription.over else subscription

    def of(self, stream_id: int) -> Subscription | None:
        """Return the subscription that events call so, unless it is over."""
        return self._by_id.get(stream_id)

    def was_given(self, number: int) -> bool:
        """Whether we have ever given that number to a subscription."""
        return 0 < number < self._next

    def fence(self, number: int) -> Subscription | None:
        """Take the `subscribed` of a subscription; None: none was waited for."""
        subscription = self._table.get(number)
        if subscription is None or subscription.fenced:
            return None
        subscription.fenced = True
        self._canceled.discard(number)
        if subscription.over:
            # Only a cancel can have come before it.
            self._canceled.add(number)
            self._remove(number)
        return subscription

    def receiving(self, number: int, type: int) -> Subscription | None:
        """Return the subscription for which a message has come; None where it came too late, and means nothing.

        A number that is used again may still hear of the subscription that had it before, if that was canceled.

        Raises:
            ProtocolError: There was never a subscription of that number, or its `subscribed` must be first.

        """
        subscription = self._table.get(number)
        if subscription is not None and subscription.fenced and not subscription.over:
            return subscription
        if not self.was_given(number):
            raise ProtocolError(f"there has never been a subscriber {number}")
        if subscription is not None and not subscription.fenced and number not in self._canceled:
            # THREATS 101. To drop it would leave a call waiting for ever for the onError that has come.
            raise ProtocolError(f"{NAMES[type]} came for subscriber {number} before subscribed, which must be first")
        if type == _COMPLETE or type == _ERROR:
            # It crossed with our cancel.
            self._canceled.discard(number)
        return None

    def end(self, subscription: Subscription, canceled: bool = False) -> None:
        """End one; `canceled`: its publisher may send more until it knows."""
        if not subscription.over:
            subscription.over = True
            self.live -= 1
            del self._by_id[subscription.id]
            if subscription.fenced:
                if canceled:
                    self._canceled.add(subscription.number)
                self._remove(subscription.number)

    def all(self) -> list[Subscription]:
        """Return those that are not over, in the order in which they were opened."""
        return list(self._by_id.values())

    def _remove(self, number: int) -> None:
        del self._table[number]
        heappush(self._free, number)


class Publication:
    """A subscription of the peer.

    Attributes:
        subscriber: The peer's number for it.
        id: What events call it.
        credit: Items that we may still send.
        element_size: Of our items, where we have said that it is fixed.
        opened: When it was.
        cut: What is left of an element that travels in parts; None: none does.
        cut_id: That element's number.
        next_element: The number of the next one.

    """

    __slots__ = ("credit", "cut", "cut_id", "element_size", "id", "next_element", "opened", "subscriber")

    def __init__(self, id: int, subscriber: int, demand: int, element_size: int, now: float) -> None:
        self.id = id
        self.subscriber = subscriber
        self.credit = demand
        self.element_size = element_size
        self.opened = now
        self.cut: memoryview | None = None
        self.cut_id = 0
        self.next_element = 0
