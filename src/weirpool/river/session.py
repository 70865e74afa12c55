"""A River session: the verbs of the waist, and how the session begins and ends.

The session calls `link` and `outbound`, and `link` calls `inbound`. These parts share the streams, the timers and the
events. They call the session only to end it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec import UNSET

from ..account import Account
from ..core.halves import OPEN
from ..core.timers import TimerTable
from ..errors import LimitExceeded, LocalError, SessionClosed, SetupRejected, UnsupportedKind
from ..events import Closed, CreditGranted, Draining, Event
from ..kinds import Kind
from ..payload import Payload, PayloadRun
from ..session import Durable
from ..settings import Settings
from ..wire.river.codec import CLOSE, codec_of
from .backlog import Backlog
from .checkpoint import Checkpoint, Promise, restore, take
from .codes import UNEXPECTED_DISCONNECT, disconnected
from .handshake import V1_1, Handshake, HandshakeRequest, check_state
from .identity import Side
from .inbound import Inbound
from .item_errors import RiverItemErrors
from .link import Link
from .outbound import GOODBYE, Outbound
from .sessions import Sessions
from .states import CLOSED, DRAINING, OPENED, UP
from .streams import RiverStream, RiverStreams

__all__ = ["RiverSession"]

CLOSING: Final = "the server closed the session; part of this may have been done"


class RiverSession:
    """A :class:`weirpool.session.Session` that speaks River v2.0.

    Attributes:
        us: This side's id.
        peer: The peer's id.
        session_id: The session's id.
        secret: The session's id as bytes: a client that sends it in a handshake resumes the session.
        identity: The client's identity, as far as its link proves it.
        sequence: The numbers of messages, and the unacknowledged messages.
        account, progressed, next_timer, shed, take_output: See :class:`weirpool.session.Session`.

    """

    calls_by_streams = False
    counts_request = False

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
        self.account = Account(settings.max_connection_bytes)
        self._codec = codec_of(codec)
        self._is_client = is_client
        self.us, self.peer = us, peer
        self.session_id = session_id
        self.secret = session_id.encode()
        self.identity = b""
        self._state = OPENED
        self._streams = streams = RiverStreams(settings.max_streams)
        self._timers = timers = TimerTable()
        self._events = events = list[Event]()
        self._side = side = Side(
            settings, self.account, self._codec, is_client, us, peer, session_id, streams, timers, events, self._finish
        )
        self._backlog = Backlog(self.account)
        self._outbound = Outbound(side, tag)
        self._handshake = Handshake(side, metadata, renew, self._outbound)
        self._inbound = Inbound(side, self._outbound, self._handshake)
        self._link = Link(side, self._handshake, self._inbound, self._outbound)
        self.sequence = self._outbound.sequence
        self.item_errors = RiverItemErrors(self._codec, streams, is_client)
        self.progressed, self.shed = self._link.progressed, self._inbound.shed
        self.next_timer = timers.next
        self.take_output = self._outbound.outbox.take
        # The server's sessions, and the id of this one in responses to handshakes.
        self._sessions: Sessions[Any] | None = None
        self._answered_as = session_id
        self._promise: Promise | None = None

    def serve(self, request: HandshakeRequest, sessions: Sessions[RiverSession], now: float) -> None:
        """Accept a client's first handshake, and add the session to those of its server."""
        self._outbound.v1_1 = request.protocol_version == V1_1
        # A client that sends no state learns from a changed id that its earlier session is gone.
        if request.expected_session_state is UNSET:
            self._answered_as = f"{request.session_id}-{now:.9f}"
        self._sessions = sessions
        sessions.add(self)
        self._handshake.metadata_renewed(request.metadata_body)
        self._link.accept(self._answered_as, now)
        # After this heartbeat, the client expects number 1, so a server without the session must reject its handshake.
        # Before that, a restarted server would accept the same requests as new ones, so no request starts until then.
        self._link.on_probation = not self._outbound.v1_1
        self._outbound.send_heartbeat()

    def resume(self, request: HandshakeRequest, now: float) -> None:
        """Resume over another link. Raise SetupRejected if one side lacks messages that the other expects."""
        check_state(request.expected_session_state, self.sequence)
        self._link.accept(self._answered_as, now)
        self._handshake.metadata_renewed(request.metadata_body)

    def decline(self) -> None:
        """Undo that the session was found for a handshake, which is now rejected."""

    requests_left = None  # River has no leases.
    ignored = None  # River, On the client: messages of unknown streams MUST be discarded silently.

    @property
    def durable(self) -> Durable | None:
        """None, because this session ends with its process."""
        return None

    @property
    def refused(self) -> int:
        """How many streams of the client were refused because of a limit."""
        return self._inbound.rejected

    @property
    def open_streams(self) -> int:
        """The number of open streams."""
        return len(self._streams)

    @property
    def full(self) -> bool:
        """Whether reading should pause: too many bytes are held that were not requested, or wait for their client."""
        return max(self._inbound.held_bytes, self._backlog.size) > self._settings.max_held_bytes

    @property
    def link_wanted(self) -> bool:
        """Whether the session needs a link."""
        return self._link.wanted

    @property
    def linked_at(self) -> float | None:
        """The time of the newest accepted handshake, or None."""
        return self._link.linked_at

    @property
    def excused(self) -> bool:
        """Whether the last link ended because of a message that is not sent again, so a retry is free."""
        return self._link.excused

    def ask_kinds(self, kind_of: Callable[[str], int | None]) -> None:
        """Set the function that returns a route's kind. See :meth:`weirpool.session.Session.ask_kinds`."""
        self._inbound.kind_of = kind_of

    # Links, time, output and events.

    def link_up(self, now: float) -> None:
        """Send a client's handshake. A server's link is up when it has accepted one."""
        if self._state != CLOSED and self._is_client:
            self._link.up(now)

    def link_down(self, now: float, error: Exception | None) -> None:
        """Wait for another link."""
        if self._state == CLOSED:
            return
        self._link.down(now, error)
        if self._state == DRAINING and not self._streams:
            self._finish(None)

    def receive(self, data: bytes, now: float, frames: int = 0) -> bool:
        """Process bytes from the link, which may end within a message. See :meth:`weirpool.session.Session.receive`."""
        link = self._link
        is_new = not link.confirmed
        more = link.receive(data, now, frames)
        if is_new and link.confirmed and self._sessions is not None:
            for other in self._sessions.others(self):
                other.replaced(now)
        if self._inbound.peer_closing and self._state == OPENED:
            self._state = DRAINING
            self._events.append(Draining())
        if self._state == DRAINING:
            self._end_if_drained()
        return more

    def handle_timer(self, now: float) -> None:
        """Handle the timers that have expired."""
        for timer in self._timers.expired(now):
            if self._state == CLOSED:
                return
            self._link.handle_timer(timer, now, self.full or self.account.paused)
        self._end_if_drained()

    def take_events(self) -> list[Event]:
        """Return the events since the last call, in order."""
        events = self._events
        backlog = self._backlog
        if backlog.size or (self._link.on_probation and events):
            taken = backlog.sift(events, self._link.on_probation, self._inbound.held_bytes)
        elif not events:
            return events
        else:
            taken = events[:]
        events.clear()
        return taken

    def confirm(self) -> None:
        """Request `Established` or `Closed`, which the response to the handshake also causes."""
        if self._link.linked_at is not None:
            self._handshake.established()

    def rehandshake(self, now: float) -> None:
        """Request the client's metadata again, at once or with the next link. `Established` or `Closed` follows."""
        if self._link.state == UP:
            self._handshake.rehandshake(now)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Restore `checkpoint` in a new session. See :func:`weirpool.river.checkpoint.restore`."""
        restore(checkpoint, self._side, self._outbound)
        self._link.taken_over = True

    def checkpoint(self, stream_id: int, count: int) -> bytes | None:
        """Return what a new process needs. Take all events before, including those that `commit` caused."""
        if not self._is_client or self._state != OPENED:
            return None
        taken = take(self._side, self._outbound, stream_id, count)
        if taken is None:
            return None
        data, self._promise = taken
        return data

    def commit(self) -> None:
        """Acknowledge what the last checkpoint covers. See :meth:`weirpool.session.Session.commit`."""
        promise, self._promise = self._promise, None
        if promise is None or self._state == CLOSED:
            return
        sequence, before = self.sequence, self.sequence.covered
        sequence.covered, sequence.reserved = promise.covered, promise.reserved
        if promise.count > 0:
            self.request(promise.stream_id, promise.count)
        if sequence.covered > before and self._link.state == UP:
            self._outbound.ack_heartbeat()

    def open(
        self, kind: Kind, route: str, payload: Payload, credit: int = 0, done: bool = False, endless: bool = False
    ) -> int:
        """Open a stream and return its id. See :meth:`weirpool.session.Session.open`."""
        if self._state != OPENED:
            raise SessionClosed("the connection is not open for new streams")
        stream = self._outbound.open(self._new_id, kind, route, payload, credit, done)
        if self._state == CLOSED:
            self._inbound.remove_stream(stream)
            raise SessionClosed("the connection was closed: too many messages are unacknowledged")
        if stream.outbound == OPEN and stream.sends_items:
            # River has no credit for a client's items.
            self._events.append(CreditGranted(stream.number, self.sequence.room))
        return stream.number

    def send(self, stream_id: int, payload: Payload, done: bool = False) -> int:
        """Send an item and return the remaining credit; `done` marks the last item."""
        ended = self._outbound.send(stream_id, payload, done)
        if ended is not None:
            self._done(ended)
            return 0
        return self.credit(stream_id)

    def send_run(self, stream_id: int, run: PayloadRun, start: int = 0) -> int:
        """Send items of `run` from index `start` while there is credit; return how many were sent."""
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
        """End our half of a stream. Does nothing if it has ended."""
        stream = self._streams.sending(stream_id)
        if stream is not None:
            self._outbound.send_message(stream.encoded, CLOSE, self._codec.close)
            self._done(stream)

    def fail(self, stream_id: int, error: Exception) -> None:
        """End the stream, both halves, with an error. See :meth:`weirpool.session.Session.fail`."""
        stream = self._streams.get(stream_id)
        if stream is None:
            return
        self._outbound.fail(stream, error)
        self._inbound.remove_stream(stream)
        self._end_if_drained()

    def request(self, stream_id: int, count: int) -> None:
        """Request `count` more items. River cannot signal demand, so items beyond it are held here."""
        if count < 1:
            raise LocalError(f"stream {stream_id}: request at least 1 item, not {count}")
        stream = self._streams.get(stream_id)
        if stream is not None:
            self._inbound.grant(stream, count)
            self._end_if_drained()

    def cancel(self, stream_id: int, metadata: bytes | None = None) -> None:
        """Stop receiving items. Does nothing if the stream has ended."""
        if metadata is not None:
            raise LocalError("River carries no metadata in a cancellation")
        stream = self._streams.get(stream_id)
        if stream is not None:
            self._inbound.stop_reading(stream)
            self._end_if_drained()

    def credit(self, stream_id: int) -> int:
        """Return how many items may be sent now; 0 if our half has ended."""
        if self._streams.sending(stream_id) is None:
            return 0
        room = self.sequence.room
        if room == 0:
            self._outbound.starved[stream_id] = None
        return room

    def streams(self) -> list[int]:
        """Return the ids of the open streams that this side opened."""
        return [stream.number for stream in self._streams.all()] if self._is_client else []

    def is_ours(self, stream_id: int) -> bool:
        """Return whether this side opens streams. Only clients do."""
        return self._is_client

    def push(self, metadata: bytes, stream_id: int = 0) -> None:
        """Raise UnsupportedKind: River has no metadata push."""
        raise UnsupportedKind("River does not support metadata push")

    def close(self, now: float, error: Exception | None = None) -> None:
        """End the session: immediately with `error`, otherwise after its open streams."""
        if self._state == CLOSED:
            return
        if error is None:
            self._state = DRAINING
            self._inbound.draining = True
            if not self._streams:
                self._say_goodbye()
                self._finish(None)
            return
        if isinstance(error, SetupRejected) and not self._is_client:
            # River, Handshake: a rejection would end the client's session. Without an answer, it tries again.
            if not error.undecided:
                self._handshake.refuse(error)
        elif not isinstance(error, SetupRejected | LimitExceeded):
            self._say_goodbye()
        self._finish(error)

    def replaced(self, now: float) -> None:
        """End the session: its client has begun another one."""
        self._finish(SessionClosed("the client began another session"))

    def _end_if_drained(self) -> None:
        """End a draining session without open streams."""
        if self._state == DRAINING and not self._streams and self._link.state == UP:
            self._say_goodbye()
            self._finish(None)

    def _say_goodbye(self) -> None:
        """Tell a server's client that its streams have ended, and by a message of ours that it need not resume."""
        outbound = self._outbound
        if self._is_client or not outbound.linked:
            return
        # A client that knows this message fails its streams; other clients need a cancellation for each.
        outbound.send_message(self._codec.encoded(GOODBYE), CLOSE, self._codec.close)
        for stream in self._streams.all():
            if stream.outbound == OPEN:
                outbound.cancel(stream, CLOSING, UNEXPECTED_DISCONNECT)

    def _finish(self, error: Exception | None) -> None:
        """Fail all streams and end the session. River, On disconnect: a hard disconnect."""
        if self._state == CLOSED:
            return
        self._state = CLOSED
        link = self._link
        link.close()
        self._inbound.fail_all(error if link.linked_at is None else disconnected(self.peer, error))
        if link.on_probation or self._backlog.size:
            link.on_probation = False
            self._backlog.end(self._events)
        self._events.append(Closed(error))
        if self._sessions is not None:
            self._sessions.forget(self, error)

    def _new_id(self) -> str:
        """Return an unused id for a stream."""
        return self._outbound.writer.new_id()

    def _done(self, stream: RiverStream) -> None:
        """Mark our half of a stream as done."""
        self._inbound.sent_all(stream)
        self._end_if_drained()
