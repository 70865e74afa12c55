"""Messages of streams: checks each against the state of its stream, and makes events of it.

Messages for ended streams are races, and are ignored, in whatever number: all elements within the demand may be under
way when a subscription ends. A flood of them only delays its sender, because ignoring a message takes time as well.
"""

from __future__ import annotations

from ..account import Account
from ..core.fragments import Reassembly
from ..core.rates import Rate
from ..errors import FrameError, LimitExceeded, ProtocolError, Rejected
from ..events import Canceled, Completed, CreditGranted, Event, Failed, item_received, requested, run_received
from ..kinds import Kind
from ..payload import Payload
from ..settings import Settings
from ..wire.reactivestreams.codec import NAMES, Items, Message, Type
from .codes import error_of, text_of
from .outbound import Outbound
from .publisher import read_publisher
from .streams import UNBOUNDED, Publication, Subscription, Subscriptions, add, spend

__all__ = ["Inbound"]

# Plain integers are compared faster than members of an enumeration.
_CALL = int(Kind.CALL)
_SUBSCRIBE = int(Type.SUBSCRIBE)
_ON_NEXT = int(Type.ON_NEXT)
_LAST_PART = int(Type.ON_NEXT_LAST_PART)


class Inbound:
    """The receiving side of all streams of a session.

    Args:
        settings: Limits.
        outbound: Sends responses to messages.
        events: The list to append events to.
        account: The account of the connection.

    Attributes:
        subscriptions: The subscriptions of this side.
        publications: The peer's subscriptions, by their numbers on the wire.
        published: The peer's subscriptions, by their ids in events.
        draining: Whether new streams of the peer are rejected.
        peer_closing: Whether the peer has rejected a subscription because it is closing.
        reassembly: The incomplete elements, each by an id of its own.
        ignored: How many messages without a stream were ignored.
        rejected: How many subscriptions of the peer were rejected because of a limit.

    """

    def __init__(self, settings: Settings, outbound: Outbound, events: list[Event], account: Account) -> None:
        self._settings = settings
        self._outbound = outbound
        self._events = events
        self._element_sizes = dict(settings.element_sizes)
        self._opens = Rate(2 * settings.max_open_rate, 2.0)
        self.ignored = self.rejected = 0
        self._serial = 0
        # A subscribeMetadata whose subscribe is pending.
        self._annotated: Message | None = None
        self.subscriptions = Subscriptions()
        self.publications: dict[int, Publication] = {}
        self.published: dict[int, Publication] = {}
        self._last_id = 0
        self.draining = False
        self.peer_closing = False
        self.reassembly = Reassembly(settings, account)
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
        """Process a message of a stream. The session must end if this raises.

        Raises:
            ProtocolError: The peer violated the protocol.
            LimitExceeded: The peer exceeded a limit.

        """
        type = message.type
        self._check_annotated(type, message.subscriber)
        if type == _ON_NEXT:
            self._next(message)
        else:
            handler = self._handlers.get(type)
            if handler is None:
                raise ProtocolError(f"{NAMES[type]} was sent twice, or by the wrong side")
            handler(message, now)

    def items(self, items: Items) -> None:
        """Process consecutive elements of one stream. Raises the same errors as `message`."""
        run = items.run
        count = len(run)
        self._check_annotated(_ON_NEXT, items.subscriber)
        subscription = self._receiving(_ON_NEXT, items.subscriber, count)
        if subscription is None:
            return
        demand = subscription.granted
        if items.announced > demand:
            # THREATS 69: the announced count is checked before the first element is delivered.
            raise ProtocolError(f"onNextPacked has {items.announced} elements, but only {demand} were requested")
        if count > demand or subscription.kind == _CALL or subscription.metadata is not None:
            for payload in run.payloads(0, min(count, demand)):
                if not subscription.over:
                    self._item(subscription, payload)
            if count > demand and not subscription.over:
                self._overrun(subscription)
            return
        subscription.granted = spend(subscription.granted, count)
        self._events.append(run_received(subscription.id, run))

    def end_subscription(self, subscription: Subscription, canceled: bool = False) -> None:
        """Remove a subscription of this side. If it was `canceled`, messages of it may still arrive."""
        for serial in subscription.elements.values():
            self.reassembly.drop(serial)
        subscription.elements.clear()
        self.subscriptions.end(subscription, canceled)

    def end_publication(self, publication: Publication) -> None:
        """Remove a subscription of the peer."""
        if self.published.pop(publication.id, None) is not None:
            del self.publications[publication.subscriber]

    def cancel(self, subscription: Subscription) -> None:
        """Cancel a subscription, and remove it."""
        self._outbound.message(Message(Type.CANCEL, subscription.number))
        self.end_subscription(subscription, True)

    @property
    def open_streams(self) -> int:
        """The number of open streams."""
        return self.subscriptions.live + len(self.publications)

    def reject_unanswered(self) -> None:
        """End the subscriptions that a closing publisher has not opened: those without `subscribed`."""
        for subscription in self.subscriptions.all():
            if not subscription.confirmed:
                self.end_subscription(subscription)
                self._events.append(Failed(subscription.id, Rejected(message=Rejected.CLOSING)))

    def end_all(self) -> list[int]:
        """End all streams and return their ids."""
        ended = [subscription.id for subscription in self.subscriptions.all()]
        ended += list(self.published)
        for subscription in self.subscriptions.all():
            self.end_subscription(subscription)
        self.publications.clear()
        self.published.clear()
        self.reassembly.clear()
        return ended

    def overdue(self, now: float) -> None:
        """Raise LimitExceeded if an element has been incomplete for too long."""
        if self.reassembly.overdue(now):
            limit = self._settings.reassembly_timeout
            raise LimitExceeded(f"an element in parts was not complete within {limit:g} s")

    # Messages of subscribers.

    def _check_annotated(self, type: int, subscriber: int) -> None:
        """Reject a message between subscribeMetadata and its subscribe."""
        annotated = self._annotated
        if annotated is not None and (type != _SUBSCRIBE or subscriber != annotated.subscriber):
            raise ProtocolError(f"subscribeMetadata was followed by {NAMES[type]} instead of its subscribe")

    def _annotate_subscribe(self, message: Message, now: float) -> None:
        self._annotated = message

    def _subscribe(self, message: Message, now: float) -> None:
        subscriber = message.subscriber
        metadata = None if self._annotated is None else self._annotated.data
        self._annotated = None
        if subscriber in self.publications:
            # The Reactive Streams core protocol: an id is reused only after its subscription was closed.
            raise ProtocolError(f"subscriber {subscriber} was reused while its subscription is open")
        refusal = self._refusal(now)
        route, data = "", b""
        if not refusal:
            try:
                route, data = read_publisher(message.data)
            except FrameError as error:
                refusal = error.message
        size = 0 if refusal else self._element_sizes.get(route, 0)
        # READING rs/0, 4: `subscribed` comes first, also before a rejection.
        self._outbound.message(Message(Type.SUBSCRIBED, subscriber, size))
        if refusal:
            text = text_of(Rejected(message=refusal), self._settings.max_string_bytes)
            self._outbound.message(Message(Type.ON_ERROR, subscriber, 0, text))
            self.rejected += 1
            return
        self._last_id -= 1
        publication = Publication(self._last_id, subscriber, message.number, size)
        self.publications[subscriber] = self.published[self._last_id] = publication
        payload = Payload(data, metadata)
        self._events.append(requested(publication.id, Kind.STREAM, route, payload, publication.credit, True))

    def _refusal(self, now: float) -> str:
        """Return why a new stream of the peer is rejected, or an empty string."""
        settings = self._settings
        if self.draining:
            return Rejected.CLOSING
        if len(self.publications) >= settings.max_streams:
            return f"more than max_streams ({settings.max_streams}) streams are open"
        if self._opens.hit(now):
            return f"streams are opened faster than max_open_rate ({settings.max_open_rate}/s)"
        return ""

    def _request(self, message: Message, now: float) -> None:
        publication = self.publications.get(message.subscriber)
        if publication is None:
            self.ignored += 1
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
            self.ignored += 1
            return
        self.end_publication(publication)
        self._events.append(Canceled(publication.id, True))

    # Messages of publishers.

    def _receiving(self, type: int, subscriber: int, count: int = 1) -> Subscription | None:
        """Return the subscription that messages are for; None if they arrived too late and must be ignored."""
        subscription = self.subscriptions.receiving(subscriber, type)
        if subscription is None:
            self.ignored += count
        return subscription

    def _subscribed(self, message: Message, now: float) -> None:
        subscription = self.subscriptions.fence(message.subscriber)
        if subscription is None:
            raise ProtocolError(f"unexpected subscribed for subscriber {message.subscriber}")
        subscription.element_size = message.number

    def _annotate_element(self, message: Message, now: float) -> None:
        subscription = self._receiving(message.type, message.subscriber)
        if subscription is not None:
            if subscription.metadata is not None:
                raise ProtocolError(f"subscriber {message.subscriber} received metadata twice for one element")
            subscription.metadata = message.data

    def _next(self, message: Message) -> None:
        subscription = self._receiving(message.type, message.subscriber)
        if subscription is None:
            return
        if subscription.granted == 0:
            self._overrun(subscription)
        else:
            self._item(subscription, Payload(message.data))

    def _item(self, subscription: Subscription, payload: Payload) -> None:
        """Report a whole element within the demand."""
        if subscription.granted != UNBOUNDED:
            subscription.granted -= 1
        if subscription.metadata is not None:
            payload = Payload(payload.data, subscription.metadata)
            subscription.metadata = None
        self._deliver(subscription, payload)

    def _deliver(self, subscription: Subscription, payload: Payload) -> None:
        done = subscription.kind == _CALL
        self._events.append(item_received(subscription.id, payload, done))
        if done:
            # A call ends with its first item, so the publisher must not send another.
            self.cancel(subscription)

    def _overrun(self, subscription: Subscription) -> None:
        """End a stream whose publisher exceeded the demand. The excess items are not reported."""
        self.cancel(subscription)
        error = ProtocolError(f"stream {subscription.id}: more items arrived than were requested")
        self._events.append(Failed(subscription.id, error))

    def _part(self, message: Message, now: float) -> None:
        """Process a part of an element. Split messaging: parts are joined in the order of arrival."""
        subscription = self._receiving(message.type, message.subscriber)
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
                raise ProtocolError(f"an element in parts has {len(payload.data)} bytes instead of {size}")
            self._deliver(subscription, payload)
            return
        excess = self.reassembly.excess()
        if excess is not None:
            # THREATS 101. The limit is the connection's, and a single element cannot be abandoned.
            raise excess[1]

    def _begin_element(self, subscription: Subscription, message: Message, now: float) -> int:
        """Begin an element with its first part, which uses one item of demand; return its id in the reassembly."""
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
        subscription = self._receiving(message.type, message.subscriber)
        if subscription is None:
            return
        if subscription.elements:
            raise ProtocolError(f"stream {subscription.id} was completed before the last part of an element")
        self.end_subscription(subscription)
        self._events.append(Completed(subscription.id))

    def _error(self, message: Message, now: float) -> None:
        subscription = self._receiving(message.type, message.subscriber)
        if subscription is not None:
            error = error_of(message.data)
            self.peer_closing = self.peer_closing or (isinstance(error, Rejected) and error.closing)
            self.end_subscription(subscription)
            self._events.append(Failed(subscription.id, error))
