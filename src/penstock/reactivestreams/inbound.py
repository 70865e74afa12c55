"""Messages of streams: each is judged by the state of its stream, and becomes events.

Messages for streams that are over are races, and mean nothing; we count them, because a peer that sends little
else is an attack.
"""

from __future__ import annotations

from typing import Final

from ..core.fragments import Reassembly
from ..core.rates import Rate
from ..errors import FrameError, LimitExceeded, ProtocolError, Rejected
from ..events import Canceled, Completed, CreditGranted, Event, Failed, ItemReceived, Requested, RunReceived
from ..kinds import Kind
from ..payload import Payload
from ..settings import Settings
from ..wire.reactivestreams.codec import NAMES, Items, Message, Type
from .codes import error_of, text_of
from .outbound import Outbound
from .publisher import read_publisher
from .streams import UNBOUNDED, Publication, Subscription, Subscriptions, add, spend

__all__ = ["Inbound"]

RAPID: Final = 1.0
"""A stream that its opener cancels within this many seconds counts as a rapid reset."""
RATE_SECONDS: Final = 30.0
MOST_LATE: Final = 1 << 62
"""More than can come."""
CROSSING: Final = 4
"""Signals of a subscriber that may cross with the end of its stream: its cancel, and some requests."""

# Plain integers are compared faster than members of an enumeration.
_CALL = int(Kind.CALL)
_SUBSCRIBE = int(Type.SUBSCRIBE)
_ON_NEXT = int(Type.ON_NEXT)
_LAST_PART = int(Type.ON_NEXT_LAST_PART)


class Inbound:
    """The receiving side of all streams of a session.

    Args:
        settings: Limits.
        outbound: Takes the messages that answer.
        events: Where to put what happened.

    Attributes:
        subscriptions: Those of this side.
        publications: The peer's subscriptions, by its numbers.
        published: The same, by what events call them.
        draining: New streams of the peer are rejected.
        reassembly: Elements of which not all parts are here, each by a number of its own.

    """

    def __init__(self, settings: Settings, outbound: Outbound, events: list[Event]) -> None:
        self._settings = settings
        self._outbound = outbound
        self._events = events
        self._element_sizes = dict(settings.element_sizes)
        self._opens = Rate(2 * settings.max_open_rate, 2.0)
        self._resets = Rate(settings.max_rapid_resets, RATE_SECONDS)
        self._stray = Rate(settings.max_stray_frames, RATE_SECONDS)
        self._late = 0
        self._serial = 0
        # The subscription, and the metadata, that came before its subscribe.
        self._annotated: Message | None = None
        self.subscriptions = Subscriptions()
        self.publications: dict[int, Publication] = {}
        self.published: dict[int, Publication] = {}
        self._last_id = 0
        self.draining = False
        self.reassembly = Reassembly(settings)
        self._handlers = {
            int(Type.SUBSCRIBE): self._subscribe,
            int(Type.REQUEST): self._request,
            int(Type.CANCEL): self._cancel,
            int(Type.SUBSCRIBED): self._subscribed,
            int(Type.ON_NEXT_PART): self._part,
            int(Type.ON_NEXT_LAST_PART): self._part,
            int(Type.ON_COMPLETE): self._complete,
            int(Type.ON_ERROR): self._error,
            int(Type.SUBSCRIBE_METADATA): self._annotate_subscribe,
            int(Type.ON_NEXT_METADATA): self._annotate_element,
        }

    def message(self, message: Message, now: float) -> None:
        """Take a message that belongs to a stream.

        Raises:
            ProtocolError: The peer broke the protocol; the session must end.
            LimitExceeded: It floods us; the same.

        """
        type = message.type
        self._check_annotated(type, message.subscriber)
        if type == _ON_NEXT:
            self._next(message, now)
        else:
            handler = self._handlers.get(type)
            if handler is None:
                raise ProtocolError(f"{NAMES[type]} came a second time, or from the wrong side")
            handler(message, now)

    def items(self, items: Items, now: float) -> None:
        """Take consecutive elements of one stream. Raises as `message` does."""
        run = items.run
        count = len(run)
        self._check_annotated(_ON_NEXT, items.subscriber)
        subscription = self._receiving(_ON_NEXT, items.subscriber, count, now)
        if subscription is None:
            return
        asked = subscription.granted
        if items.announced > asked:
            # THREATS 69: its count is what the publisher itself says, before the first of them is delivered.
            raise ProtocolError(f"onNextPacked brought {items.announced} elements, and {asked} were asked for")
        if count > asked or subscription.kind == _CALL or subscription.metadata is not None:
            for payload in run.payloads(0, min(count, asked)):
                if not subscription.over:
                    self._item(subscription, payload)
            if count > asked and not subscription.over:
                self._overrun(subscription)
            return
        subscription.granted = spend(subscription.granted, count)
        self._events.append(RunReceived(subscription.id, run))

    def stray(self, now: float, count: int = 1) -> None:
        """Count messages that belong to no stream. Raises LimitExceeded when there are too many."""
        late = min(count, self._late)
        self._late -= late
        if count > late and self._stray.hit(now, count - late):
            limit = self._settings.max_stray_frames
            raise LimitExceeded(f"more than max_stray_frames ({limit}) messages belonged to no stream")

    def end_subscription(self, subscription: Subscription, late: int = 0) -> None:
        """Remove a subscription of this side; `late`: messages that may still come for it, because it was canceled."""
        self._late = MOST_LATE if late > MOST_LATE - self._late else self._late + late
        for serial in subscription.elements.values():
            self.reassembly.drop(serial)
        subscription.elements.clear()
        self.subscriptions.end(subscription, late > 0)

    def end_publication(self, publication: Publication) -> None:
        """Remove a subscription of the peer."""
        self._late = min(self._late + CROSSING, MOST_LATE)
        if self.published.pop(publication.id, None) is not None:
            del self.publications[publication.subscriber]

    def cancel(self, subscription: Subscription) -> None:
        """Cancel a subscription, and remove it."""
        self._outbound.message(Message(Type.CANCEL, subscription.number))
        self.end_subscription(subscription, min(subscription.granted, MOST_LATE) + 2)

    @property
    def open_streams(self) -> int:
        """How many streams are open, of both sides."""
        return self.subscriptions.live + len(self.publications)

    def end_all(self) -> list[int]:
        """End all streams; return what events call them."""
        ended = [subscription.id for subscription in self.subscriptions.all()]
        ended += list(self.published)
        for subscription in self.subscriptions.all():
            self.end_subscription(subscription)
        self.publications.clear()
        self.published.clear()
        self.reassembly.clear()
        return ended

    def overdue(self, now: float) -> None:
        """Raise LimitExceeded if an element has been waiting too long for its last part."""
        if self.reassembly.overdue(now):
            limit = self._settings.reassembly_timeout
            raise LimitExceeded(f"an element in parts was not whole within {limit:g} s")

    # What a subscriber sends.

    def _check_annotated(self, type: int, subscriber: int) -> None:
        """Refuse what stands between subscribeMetadata and its subscribe."""
        annotated = self._annotated
        if annotated is not None and (type != _SUBSCRIBE or subscriber != annotated.subscriber):
            raise ProtocolError(f"subscribeMetadata was followed by {NAMES[type]}, and not by its subscribe")

    def _annotate_subscribe(self, message: Message, now: float) -> None:
        self._annotated = message

    def _subscribe(self, message: Message, now: float) -> None:
        subscriber = message.subscriber
        metadata = None if self._annotated is None else self._annotated.data
        self._annotated = None
        if subscriber in self.publications:
            # The Reactive Streams core protocol: an id is used again after its subscription was closed, and not before.
            raise ProtocolError(f"subscriber {subscriber} is used again while its subscription is open")
        refusal = self._refusal(now)
        route, data = "", b""
        if not refusal:
            try:
                route, data = read_publisher(message.data)
            except FrameError as error:
                refusal = error.message
        size = 0 if refusal else self._element_sizes.get(route, 0)
        # READING rs/0, 4: `subscribed` comes first, also where the answer is no.
        self._outbound.message(Message(Type.SUBSCRIBED, subscriber, size))
        if refusal:
            text = text_of(Rejected(message=refusal), self._settings.max_string_bytes)
            self._outbound.message(Message(Type.ON_ERROR, subscriber, 0, text))
            self.stray(now)
            return
        self._last_id -= 1
        publication = Publication(self._last_id, subscriber, message.number, size, now)
        self.publications[subscriber] = self.published[self._last_id] = publication
        payload = Payload(data, metadata)
        self._events.append(Requested(publication.id, Kind.STREAM, route, payload, publication.credit, True))

    def _refusal(self, now: float) -> str:
        """Return why a new stream of the peer is rejected; empty if it is accepted."""
        settings = self._settings
        if self.draining:
            return "the connection is closing"
        if len(self.publications) >= settings.max_streams:
            return f"more than max_streams ({settings.max_streams}) are open"
        if self._opens.hit(now):
            return f"more than max_open_rate ({settings.max_open_rate}) streams a second"
        return ""

    def _request(self, message: Message, now: float) -> None:
        publication = self.publications.get(message.subscriber)
        if publication is None:
            self.stray(now)
        elif message.number == 0:
            # Reactive Streams 3.9: a demand that is not positive MUST be answered by onError.
            text = b"Reactive Streams 3.9: the demand must be more than 0"
            self._outbound.message(Message(Type.ON_ERROR, publication.subscriber, 0, text))
            self.end_publication(publication)
            self._events.append(Failed(publication.id, ProtocolError(text.decode())))
        else:
            publication.credit = add(publication.credit, message.number)
            self._events.append(CreditGranted(publication.id, message.number))

    def _cancel(self, message: Message, now: float) -> None:
        publication = self.publications.get(message.subscriber)
        if publication is None:
            self.stray(now)
            return
        if now - publication.opened < RAPID and self._resets.hit(now):
            limit = self._settings.max_rapid_resets
            raise LimitExceeded(f"more than max_rapid_resets ({limit}) streams were canceled as soon as opened")
        self.end_publication(publication)
        self._events.append(Canceled(publication.id, True))

    # What a publisher sends.

    def _receiving(self, type: int, subscriber: int, count: int, now: float) -> Subscription | None:
        """Return the subscription for which messages have come; None where they came too late, and mean nothing."""
        subscription = self.subscriptions.receiving(subscriber, type)
        if subscription is None:
            self.stray(now, count)
        return subscription

    def _subscribed(self, message: Message, now: float) -> None:
        subscription = self.subscriptions.fence(message.subscriber)
        if subscription is None:
            raise ProtocolError(f"subscribed came for subscriber {message.subscriber}, of which none was due")
        subscription.element_size = message.number

    def _annotate_element(self, message: Message, now: float) -> None:
        subscription = self._receiving(message.type, message.subscriber, 1, now)
        if subscription is not None:
            if subscription.metadata is not None:
                raise ProtocolError(f"subscriber {message.subscriber} got metadata twice for one element")
            subscription.metadata = message.data

    def _next(self, message: Message, now: float) -> None:
        subscription = self._receiving(message.type, message.subscriber, 1, now)
        if subscription is None:
            return
        if subscription.granted == 0:
            self._overrun(subscription)
        else:
            self._item(subscription, Payload(message.data))

    def _item(self, subscription: Subscription, payload: Payload) -> None:
        """Deliver a whole element that was asked for."""
        if subscription.granted != UNBOUNDED:
            subscription.granted -= 1
        if subscription.metadata is not None:
            payload = Payload(payload.data, subscription.metadata)
            subscription.metadata = None
        self._deliver(subscription, payload)

    def _deliver(self, subscription: Subscription, payload: Payload) -> None:
        done = subscription.kind == _CALL
        self._events.append(ItemReceived(subscription.id, payload, done))
        if done:
            # A call is over with its first item, and the publisher learns that nobody wants another.
            self.cancel(subscription)

    def _overrun(self, subscription: Subscription) -> None:
        """The publisher sends more than was asked for: the stream ends, and nothing of it is delivered."""
        self.cancel(subscription)
        error = ProtocolError(f"stream {subscription.id} brought more items than were asked for")
        self._events.append(Failed(subscription.id, error))

    def _part(self, message: Message, now: float) -> None:
        """Take a part of an element. Split messaging: parts are joined in the order in which they come."""
        subscription = self._receiving(message.type, message.subscriber, 1, now)
        if subscription is None:
            return
        serial = subscription.elements.get(message.number, 0)
        if serial:
            self.reassembly.add(serial, None, message.data)
        elif subscription.granted == 0:
            self._overrun(subscription)
            return
        else:
            serial = self._begin_element(subscription, message, now)
        if message.type == _LAST_PART:
            del subscription.elements[message.number]
            payload = self.reassembly.finish(serial).payload()
            size = subscription.element_size
            if size and len(payload.data) != size:
                raise ProtocolError(f"an element in parts has {len(payload.data)} bytes, and {size} were announced")
            self._deliver(subscription, payload)
            return
        excess = self.reassembly.excess()
        if excess is not None:
            # THREATS 101. There is no way to give up one element, and the peer has overstepped for the connection.
            raise excess[1]

    def _begin_element(self, subscription: Subscription, message: Message, now: float) -> int:
        """Take the first part of an element, which uses one of the demand; return the element's number here."""
        limit = self._settings.max_open_elements
        if len(subscription.elements) >= limit:
            # THREATS 52.
            raise LimitExceeded(f"stream {subscription.id} has more than max_open_elements ({limit}) in parts")
        subscription.granted = spend(subscription.granted, 1)
        self._serial += 1
        subscription.elements[message.number] = self._serial
        metadata = subscription.metadata
        subscription.metadata = None
        self.reassembly.begin(self._serial, message, metadata, message.data, now)
        return self._serial

    def _complete(self, message: Message, now: float) -> None:
        subscription = self._receiving(message.type, message.subscriber, 1, now)
        if subscription is None:
            return
        if subscription.elements:
            raise ProtocolError(f"stream {subscription.id} was completed, and an element lacks its last part")
        self.end_subscription(subscription)
        self._events.append(Completed(subscription.id))

    def _error(self, message: Message, now: float) -> None:
        subscription = self._receiving(message.type, message.subscriber, 1, now)
        if subscription is not None:
            self.end_subscription(subscription)
            self._events.append(Failed(subscription.id, error_of(message.data)))
