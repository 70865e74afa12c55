"""A session of reactive-streams-io: the verbs of the waist, and how the session ends."""

from __future__ import annotations

from collections.abc import Callable

from ..account import Account
from ..core.timers import TimerTable
from ..errors import CreditExceeded, LocalError, SessionClosed, StreamClosed, UnsupportedKind
from ..events import Closed, Event, Failed
from ..kinds import Kind
from ..payload import Payload, PayloadRun
from ..session import ClientStart
from ..settings import Settings
from ..wire.reactivestreams.codec import Message, Type
from .codes import text_of
from .inbound import Inbound
from .lifecycle import CLOSED, DRAINING, LEAVING, NEW, OPENED
from .link import Link
from .outbound import Outbound
from .publisher import publisher_of
from .streams import UNBOUNDED, Publication, add, spend

__all__ = ["ReactiveStreamsSession", "client"]


class ReactiveStreamsSession:
    """A :class:`weirpool.session.Session` that speaks reactive-streams-io version 0.

    Create one with :meth:`client` or :meth:`server`. Streams of the peer have negative ids.

    The methods for bytes and time are those of its link and its outbox.

    Attributes:
        account, link_wanted: See :class:`weirpool.session.Session`.
        identity: The peer's identity, as far as its link proves it.

    """

    def __init__(self, settings: Settings, is_client: bool) -> None:
        self._settings = settings
        self.account = Account(settings.max_connection_bytes)
        self._is_client = is_client
        self._events: list[Event] = []
        self._timers = TimerTable()
        self._outbound = Outbound(settings)
        self._inbound = Inbound(settings, self._outbound, self._events, self.account)
        self._link = link = Link(
            settings, is_client, self.account, self._events, self._timers, self._outbound, self._inbound, self._finish
        )
        self.link_up = link.link_up
        self.link_down = link.link_down
        self.receive = link.receive
        self.progressed = link.progressed
        self.handle_timer = link.handle_timer
        self.next_timer = self._timers.next
        self.take_output = self._outbound.take
        self.link_wanted = True
        self.identity = b""

    @classmethod
    def client(cls, settings: Settings, setup: Payload) -> ReactiveStreamsSession:
        """Return a client's session.

        Raises:
            LocalError: `settings` or `setup` require something that the protocol does not have.

        """
        if setup.data or setup.metadata is not None:
            raise LocalError("reactive-streams has no set-up payload; omit `setup`")
        if settings.resume:
            raise LocalError("reactive-streams cannot resume sessions; omit Settings.resume")
        if settings.lease:
            raise LocalError("reactive-streams has no leases; omit Settings.lease")
        return cls(settings, True)

    @classmethod
    def server(cls, settings: Settings) -> ReactiveStreamsSession:
        """Return a server's session, which waits for clientHello."""
        return cls(settings, False)

    def take_events(self) -> list[Event]:
        """Return the events since the last call, in order."""
        happened = self._events[:]
        self._events.clear()
        return happened

    # Constants; see :class:`weirpool.session.Session`.

    linked_at = None
    excused = False
    requests_left = None
    durable = None
    full = False
    secret = b""
    calls_by_streams = True
    counts_request = False
    item_errors = None

    @property
    def open_streams(self) -> int:
        """The number of open streams."""
        return self._inbound.open_streams

    @property
    def refused(self) -> int:
        """How many subscriptions of the peer were refused because of a limit."""
        return self._inbound.rejected

    @property
    def ignored(self) -> int:
        """How many messages of ended streams were ignored."""
        return self._inbound.ignored

    def ask_kinds(self, kind_of: Callable[[str], int | None]) -> None:
        """Do nothing, because all requests are streams."""

    def streams(self) -> list[int]:
        """Return the ids of the open streams that this side opened."""
        return [subscription.id for subscription in self._inbound.subscriptions.all()]

    def is_ours(self, stream_id: int) -> bool:
        """Return whether this side opened the stream of that id."""
        return stream_id > 0

    # Verbs.

    def open(
        self, kind: Kind, route: str, payload: Payload, credit: int = 0, done: bool = False, endless: bool = False
    ) -> int:
        """Open a stream and return its id. See :meth:`weirpool.session.Session.open`; a stream's credit may be 0."""
        if self._link.state != OPENED:
            raise SessionClosed("the connection is not open for new streams")
        if kind not in (Kind.CALL, Kind.STREAM):
            raise UnsupportedKind(f"reactive-streams does not support {kind.name.lower()} requests")
        if credit < 0:
            raise LocalError(f"{kind.name.lower()} needs a credit of at least 0, not {credit}")
        demand = 1 if kind == Kind.CALL else min(credit, UNBOUNDED)
        self._outbound.check_metadata(payload.metadata)
        publisher = publisher_of(route, payload.data, self._settings.max_string_bytes)
        subscription = self._inbound.subscriptions.open(kind, demand)
        if payload.metadata is not None:
            self._outbound.message(Message(Type.SUBSCRIBE_METADATA, subscription.number, 0, payload.metadata))
        self._outbound.message(Message(Type.SUBSCRIBE, subscription.number, demand, publisher))
        return subscription.id

    def send(self, stream_id: int, payload: Payload, done: bool = False) -> int:
        """Send an item and return the remaining credit; `done` marks the last item."""
        publication = self._sending(stream_id)
        if publication.credit == 0:
            raise CreditExceeded(f"stream {stream_id}: the peer has not requested another item; wait for CreditGranted")
        self._outbound.item(publication, payload)
        if publication.credit != UNBOUNDED:
            publication.credit -= 1
        if done:
            self.complete(stream_id)
        return publication.credit

    def send_run(self, stream_id: int, run: PayloadRun, start: int = 0) -> int:
        """Send items of `run` from index `start` while there is credit; return how many were sent.

        A large item is sent in parts, one in each call, so that other streams have their turn between them. It counts
        when its last part was sent; until then, call this again with the same item.
        """
        publication = self._sending(stream_id)
        stop = start + min(publication.credit, len(run) - start)
        if stop <= start:
            return 0
        count = self._outbound.run(publication, run, start, stop)
        publication.credit = spend(publication.credit, count)
        return count

    def complete(self, stream_id: int) -> None:
        """End our half of a stream. Does nothing if it has ended."""
        publication = self._publication(stream_id)
        if publication is not None:
            while publication.unsent is not None:
                self._outbound.part(publication)
            self._outbound.message(Message(Type.ON_COMPLETE, publication.subscriber))
            self._end(publication)

    def fail(self, stream_id: int, error: Exception) -> None:
        """End the stream, both halves, with an error. See :meth:`weirpool.session.Session.fail`."""
        publication = self._publication(stream_id)
        if publication is None:
            # A subscriber can only cancel.
            self.cancel(stream_id)
            return
        text = text_of(error, self._settings.max_string_bytes)
        self._outbound.message(Message(Type.ON_ERROR, publication.subscriber, 0, text))
        self._end(publication)

    def request(self, stream_id: int, count: int) -> None:
        """Request `count` more items. Does nothing if the stream has ended."""
        if count < 1:
            raise LocalError(f"stream {stream_id}: request at least 1 item, not {count}")
        subscription = self._inbound.subscriptions.of(stream_id)
        if subscription is not None:
            count = min(count, UNBOUNDED)
            subscription.granted = add(subscription.granted, count)
            self._outbound.message(Message(Type.REQUEST, subscription.number, count))

    def cancel(self, stream_id: int, metadata: bytes | None = None) -> None:
        """Cancel a stream. Does nothing if it has ended."""
        if metadata is not None:
            raise LocalError("reactive-streams carries no metadata in a cancellation")
        subscription = self._inbound.subscriptions.of(stream_id)
        if subscription is not None:
            self._inbound.cancel(subscription)
            self._link.update_timers()

    def credit(self, stream_id: int) -> int:
        """Return how many items may be sent now; 0 if our half has ended."""
        publication = self._publication(stream_id)
        return 0 if publication is None else publication.credit

    def checkpoint(self, stream_id: int, count: int) -> bytes | None:
        """Return None: this protocol version does not specify resumption."""
        return None

    def commit(self) -> None:
        """Do nothing, because there are no checkpoints."""

    def push(self, metadata: bytes, stream_id: int = 0) -> None:
        """Raise UnsupportedKind: the protocol has no metadata push."""
        raise UnsupportedKind("reactive-streams does not support metadata push")

    def rehandshake(self, now: float) -> None:
        """Raise UnsupportedKind: hello is sent once, and does not identify the client."""
        raise UnsupportedKind("reactive-streams does not support rehandshakes")

    def confirm(self) -> None:
        """Report `Established` again if the server's hello was received; otherwise the hello will report it."""
        if self._link.greeted and self._link.state == OPENED:
            self._link.establish()

    def shed(self, now: float, error: Exception) -> bool:
        """Return False, because a part of an element cannot be dropped without ending the session."""
        return False

    def close(self, now: float, error: Exception | None = None) -> None:
        """End the session: immediately with `error`, otherwise after its open streams."""
        if self._link.state == CLOSED:
            return
        if error is not None:
            if self._link.state == LEAVING:
                self._finish(error)
            else:
                self._link.abort(error)
        elif self._is_client and self._link.state == NEW:
            # It has had no link, so there is nobody to say goodbye to.
            self._finish(None)
        elif self._link.state < DRAINING:
            self._link.move("close()")
            self._inbound.draining = True
            self._link.send_goodbye_or_finish(now)

    def _finish(self, error: Exception | None) -> None:
        """Fail all streams and end the session."""
        self._link.move("finished")
        reason = error if error is not None else SessionClosed("the connection was closed")
        self._events += [Failed(stream_id, reason) for stream_id in self._inbound.end_all()]
        self.link_wanted = False
        self._events.append(Closed(error))
        self._link.forget_input()
        self._timers.clear()

    def _publication(self, stream_id: int) -> Publication | None:
        return self._inbound.published.get(stream_id)

    def _sending(self, stream_id: int) -> Publication:
        publication = self._publication(stream_id)
        if publication is None:
            raise StreamClosed(f"stream {stream_id}: our half has ended")
        return publication

    def _end(self, publication: Publication) -> None:
        self._inbound.end_publication(publication)
        if self._link.state == DRAINING:
            self._link.update_timers()


def client(start: ClientStart) -> ReactiveStreamsSession:
    """Return a client's session. See :func:`weirpool.protocols.client_session`."""
    if start.checkpoint is not None:
        raise LocalError("reactive-streams has no checkpoints; omit `checkpoint`")
    return ReactiveStreamsSession.client(start.settings, start.setup)
