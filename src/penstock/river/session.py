"""A River session: what its user may ask of it, and how it begins and ends. Its parts do the rest.

Calls go from the session to its link, from there to `inbound`, and from the session to `outbound`. The parts share the
streams, the timers and the events. They call the session for one thing alone: to end it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec import UNSET

from ..core.halves import OPEN
from ..core.timers import TimerTable
from ..errors import LimitExceeded, LocalError, SessionClosed, SetupRejected, UnsupportedKind
from ..events import Closed, CreditGranted, Event
from ..kinds import Kind
from ..payload import Payload, PayloadRun
from ..session import Durable
from ..settings import Settings
from ..wire.river.codec import CLOSE, codec_of
from .checkpoint import Checkpoint, Promise, restore, take
from .codes import UNEXPECTED_DISCONNECT, disconnected
from .handshake import V1_1, Handshake, HandshakeRequest, check_state
from .identity import Side
from .inbound import Inbound
from .link import Link
from .outbound import GOODBYE, Outbound
from .sessions import Sessions
from .states import CLOSED, DRAINING, OPENED, UP
from .streams import RiverStream, RiverStreams

__all__ = ["RiverSession"]

CLOSING: Final = "the server closed the session; part of this may have been done"


class RiverSession:
    """A :class:`penstock.session.Session` that speaks River v2.0.

    Attributes:
        us: Our id.
        peer: The peer's id.
        session_id: The session's id.
        secret: The same: a client that names it in a handshake resumes the session.
        identity: Who the client is, as far as its link proves it.
        sequence: The numbers of messages.
        progressed, next_timer, take_output: See :class:`penstock.session.Session`.

    """

    calls_by_streams = False
    """The handler's own kind is the request's."""

    def __init__(
        self,
        settings: Settings,
        codec: str,
        is_client: bool,
        us: str,
        peer: str,
        session_id: str,
        tag: str,
        metadata: bytes = b"",
        renew: Callable[[], bytes] | None = None,
    ) -> None:
        self._settings = settings
        self._codec = codec_of(codec)
        self._is_client = is_client
        self.us = us
        self.peer = peer
        self.session_id = session_id
        self.secret = session_id.encode()
        self.identity = b""
        self._state = OPENED
        self._streams = streams = RiverStreams(settings.max_streams)
        self._timers = timers = TimerTable()
        events: list[Event] = []
        self._events = events
        side = Side(settings, self._codec, is_client, us, peer, session_id, streams, timers, events, self._finish)
        self._side = side
        self._outbound = Outbound(side, tag)
        self._handshake = Handshake(side, metadata, renew, self._outbound)
        self._inbound = Inbound(side, self._outbound, self._handshake)
        self._link = Link(side, self._handshake, self._inbound, self._outbound)
        self.sequence = self._outbound.sequence
        self.progressed = self._link.progressed
        self.next_timer = timers.next
        self.take_output = self._outbound.outbox.take
        # The server's sessions, and the name by which answers to handshakes call this one.
        self._sessions: Sessions[Any] | None = None
        self._answered_as = session_id
        self._promise: Promise | None = None

    def serve(self, asked: HandshakeRequest, sessions: Sessions[RiverSession], now: float) -> None:
        """Answer a client's first handshake, and add the session to those of its server."""
        self._outbound.v1_1 = asked.protocol_version == V1_1
        # A client that does not say where it would resume learns by the id whether its session is still here.
        if asked.expected_session_state is UNSET:
            self._answered_as = f"{asked.session_id}-{now:.9f}"
        self._sessions = sessions
        sessions.add(self)
        self._handshake.metadata_renewed(asked.metadata_body)
        self._link.accept(self._answered_as, now)
        # Once the client has this, it expects number 1, and a server that has forgotten the session must refuse it.
        # Before that, a server that was restarted would take the same requests for new ones: none begins until then.
        self._link.probation_bytes = -1 if self._outbound.v1_1 else 0
        self._outbound.send_heartbeat()

    def resume(self, asked: HandshakeRequest, now: float) -> None:
        """Go on over another link, as a client asks; raise `SetupRejected` where one side lacks what is needed."""
        check_state(asked.expected_session_state, self.sequence)
        self._link.accept(self._answered_as, now)
        self._handshake.metadata_renewed(asked.metadata_body)

    def decline(self) -> None:
        """Stay as it was before somebody asked for it."""

    @property
    def durable(self) -> Durable | None:
        """None: this session ends with its process."""
        return None

    @property
    def open_streams(self) -> int:
        """How many streams are open, of both sides."""
        return len(self._streams)

    @property
    def full(self) -> bool:
        """Whether so much is held that nobody has requested, or may begin, that nothing more should be read."""
        limit = self._settings.max_held_bytes
        return self._inbound.held_bytes > limit or self._link.probation_bytes > limit

    @property
    def link_wanted(self) -> bool:
        """Whether the session has use for a link."""
        return self._link.wanted

    @property
    def linked_at(self) -> float | None:
        """When the newest handshake was answered; None: none was."""
        return self._link.linked_at

    @property
    def excused(self) -> bool:
        """Whether the last link ended because of a message that is not sent again: another try costs nothing."""
        return self._link.excused

    def ask_kinds(self, kind_of: Callable[[str], Kind | None]) -> None:
        """Ask `kind_of` what kind a request is; see :meth:`penstock.session.Session.ask_kinds`."""
        self._inbound.kind_of = kind_of

    # Links, time, output and events.

    def link_up(self, now: float) -> None:
        """Begin a client's link with a handshake. A server's link is up once it has answered one."""
        if self._state != CLOSED and self._is_client:
            self._link.up(now)

    def link_down(self, now: float, error: Exception | None) -> None:
        """Go on without a link. The session waits for another one."""
        if self._state == CLOSED:
            return
        self._link.down(now, error)
        if self._state == DRAINING and not self._streams:
            self._finish(None)

    def receive(self, data: bytes, now: float) -> None:
        """Take what the link brought. It may be cut anywhere."""
        link = self._link
        is_new = not link.confirmed
        link.receive(data, now)
        if is_new and link.confirmed and self._sessions is not None:
            for other in self._sessions.others(self):
                other.replaced(now)
        if self._state == DRAINING:
            self._end_if_drained()

    def handle_timer(self, now: float) -> None:
        """Do what is due by now."""
        for timer in self._timers.expired(now):
            if self._state == CLOSED:
                return
            self._link.handle_timer(timer, now, self.full)
        self._end_if_drained()

    def take_events(self) -> list[Event]:
        """Return what happened since the last call, in order, and forget it."""
        events = self._events
        if not events:
            return events
        # The first request, and all that follows, waits until the client has our first message.
        count = len(events) if self._link.probation_bytes < 0 else _first_of_stream(events)
        taken = events[:count]
        del events[:count]
        return taken

    def confirm(self) -> None:
        """The handshake's answer is a sign: `Established` follows, or `Closed`."""
        if self._link.linked_at is not None:
            self._handshake.established()

    def rehandshake(self, now: float) -> None:
        """Ask the client for its metadata. `Established` follows when it comes, and else the session ends."""
        # Without a link nothing is asked: the next handshake has the metadata.
        if self._link.state == UP:
            self._handshake.ask(now)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Take the state of `checkpoint` over, in a new session. See :func:`penstock.river.checkpoint.restore`."""
        restore(checkpoint, self._side, self._outbound)
        self._link.taken_over = True

    def checkpoint(self, stream_id: int, count: int) -> bytes | None:
        """Return what a new process needs. Take all events first, those that a `commit` brought as well."""
        if not self._is_client or self._state != OPENED:
            return None
        taken = take(self._side, self._outbound, stream_id, count)
        if taken is None:
            return None
        data, self._promise = taken
        return data

    def commit(self) -> None:
        """Tell the peer that what the last checkpoint covers is safe. See :meth:`penstock.session.Session.commit`."""
        promise, self._promise = self._promise, None
        if promise is None or self._state == CLOSED:
            return
        sequence = self.sequence
        before = sequence.covered
        sequence.covered, sequence.reserved = promise.covered, promise.reserved
        if promise.count > 0:
            self.request(promise.stream_id, promise.count)
        if sequence.covered > before and self._link.state == UP:
            self._outbound.ack_heartbeat()

    def open(
        self, kind: Kind, route: str, payload: Payload, credit: int = 0, done: bool = False, endless: bool = False
    ) -> int:
        """Open a stream and return its id. See :meth:`penstock.session.Session.open`."""
        if self._state != OPENED:
            raise SessionClosed("the connection is not open for new streams")
        stream = self._outbound.open(self._new_id, kind, route, payload, credit, done)
        if self._state == CLOSED:
            self._inbound.remove_stream(stream)
            raise SessionClosed("the connection was closed: too much waits to be acknowledged")
        if stream.outbound == OPEN:
            # The client needs no permission for the items that it sends.
            self._events.append(CreditGranted(stream.number, self.sequence.room))
        return stream.number

    def send(self, stream_id: int, payload: Payload, done: bool = False) -> int:
        """Send an item, which may be the last, and return the credit that is left."""
        ended = self._outbound.send(stream_id, payload, done)
        if ended is not None:
            self._done(ended)
            return 0
        return self.credit(stream_id)

    def send_run(self, stream_id: int, run: PayloadRun, start: int = 0) -> int:
        """Send the items of `run` from index `start`, as far as credit goes; return how many that were."""
        self._outbound.sending(stream_id)
        count = min(self.credit(stream_id), len(run) - start)
        if count <= 0:
            return 0
        sent = 0
        for payload in run.payloads(start, start + count):
            sent += 1
            if self.send(stream_id, payload) == 0:
                break
        return sent

    def complete(self, stream_id: int) -> None:
        """End our half: no more items come. A half that is over already is left as it is."""
        stream = self._streams.sending(stream_id)
        if stream is not None:
            self._outbound.send_message(stream.encoded, CLOSE, self._codec.close)
            self._done(stream)

    def fail(self, stream_id: int, error: Exception) -> None:
        """End the stream, both halves, with an error. See :meth:`penstock.session.Session.fail`."""
        stream = self._streams.get(stream_id)
        if stream is None:
            return
        self._outbound.fail(stream, error)
        self._inbound.remove_stream(stream)
        self._end_if_drained()

    def request(self, stream_id: int, count: int) -> None:
        """Take `count` more items. River cannot tell the peer: what comes before that is held here."""
        if count < 1:
            raise LocalError(f"stream {stream_id}: request at least 1 item, not {count}")
        stream = self._streams.get(stream_id)
        if stream is not None:
            self._inbound.grant(stream, count)
            self._end_if_drained()

    def cancel(self, stream_id: int, metadata: bytes | None = None) -> None:
        """Take no more items. A stream that is over is left as it is."""
        if metadata is not None:
            raise LocalError("River has no room for metadata in a cancellation")
        stream = self._streams.get(stream_id)
        if stream is not None:
            self._inbound.stop_reading(stream)
            self._end_if_drained()

    def credit(self, stream_id: int) -> int:
        """Return how many items `send` may still take; 0 for a stream that is over."""
        if self._streams.sending(stream_id) is None:
            return 0
        room = self.sequence.room
        if room == 0:
            self._outbound.starved.add(stream_id)
        return room

    def streams(self) -> list[int]:
        """Return the numbers of the streams that this side opened and that are still open."""
        return [stream.number for stream in self._streams.all()] if self._is_client else []

    def is_ours(self, stream_id: int) -> bool:
        """Return whether this side opens streams: clients alone do."""
        return self._is_client

    def push(self, metadata: bytes, stream_id: int = 0) -> None:
        """Push nothing: River has no such thing."""
        raise UnsupportedKind("River has no way to push metadata")

    def close(self, now: float, error: Exception | None = None) -> None:
        """End the session: at once with `error`, else when the streams that are open have ended."""
        if self._state == CLOSED:
            return
        if error is None:
            self._state = DRAINING
            if not self._streams:
                self._say_goodbye()
                self._finish(None)
            return
        if isinstance(error, SetupRejected) and not self._is_client:
            self._handshake.refuse(error)
        elif not isinstance(error, SetupRejected | LimitExceeded):
            self._say_goodbye()
        self._finish(error)

    def replaced(self, now: float) -> None:
        """Give way to another session of the same client, which has forgotten this one."""
        self._finish(SessionClosed("the client began another session"))

    def _end_if_drained(self) -> None:
        """End a session that was to end with its streams."""
        if self._state == DRAINING and not self._streams and self._link.state == UP:
            self._say_goodbye()
            self._finish(None)

    def _say_goodbye(self) -> None:
        """Tell a server's client that its calls are over, and that it need not resume the session.

        River has a message for the first, and none for the second: clients that do not know ours ignore it.
        """
        outbound = self._outbound
        if self._is_client or not outbound.linked:
            return
        # Clients that know this fail their streams by themselves; the others read on.
        outbound.send_message(self._codec.encoded(GOODBYE), CLOSE, self._codec.close)
        for stream in self._streams.all():
            if stream.outbound == OPEN:
                outbound.cancel(stream, CLOSING, UNEXPECTED_DISCONNECT)

    def _finish(self, error: Exception | None) -> None:
        """End the session for good; every stream fails first. River, On disconnect: a hard disconnect."""
        if self._state == CLOSED:
            return
        self._state = CLOSED
        link = self._link
        link.close()
        self._inbound.fail_all(error if link.linked_at is None else disconnected(self.peer, error))
        if link.probation_bytes >= 0:
            # No request has begun: the client will send all of them again.
            self._events[:] = [event for event in self._events if not event.stream_id]
            link.probation_bytes = -1
        self._events.append(Closed(error))
        if self._sessions is not None:
            self._sessions.forget(self, error)

    def _new_id(self) -> str:
        """Return an id for a stream that was not used before."""
        return self._outbound.writer.new_id()

    def _done(self, stream: RiverStream) -> None:
        """Note that our half is over."""
        self._inbound.sent_all(stream)
        self._end_if_drained()


def _first_of_stream(events: list[Event]) -> int:
    """Return the index of the first event of a stream; the number of events if there is none."""
    return next((index for index, event in enumerate(events) if event.stream_id), len(events))
