"""What both sides of a River session have below its links, streams and verbs: what is sent, and how it ends."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any, Final

from ..core.halves import DONE
from ..core.outbox import Outbox
from ..core.timers import TimerTable
from ..errors import ApplicationError, LimitExceeded, SessionClosed
from ..events import Closed, CreditGranted, Event, Failed, LeaseGranted
from ..kinds import Kind
from ..session import Durable
from ..settings import Settings
from ..wire.river.codec import ACK, CANCEL, CLOSE, PREFIX_BYTES, codec_of
from ..wire.river.framing import deframer
from ..wire.river.writing import Writer
from .codes import UNEXPECTED_DISCONNECT, TooLarge
from .sequence import Sequence
from .sessions import Sessions
from .streams import RiverStream, RiverStreams

__all__ = ["CLOSED", "DOWN", "DRAINING", "HANDSHAKING", "OPENED", "UP", "Connection"]

# The state of the session.
OPENED: Final = 1
DRAINING: Final = 2
"""Open streams may end; there are no new ones of ours."""
CLOSED: Final = 3

# The state of the link. River, State Transitions.
DOWN: Final = 0
HANDSHAKING: Final = 1
"""A client has said who it is, and waits for the answer."""
UP: Final = 2

PROMPTS: Final = 8
"""A server asks for an acknowledgement, by a heartbeat, when so many times less than may be kept was sent or came since
the last one: at one heartbeat a second, a fast stream would wait for it."""
HEARTBEAT: Final = "heartbeat"
LEASE_SECONDS: Final = 1.0


class Connection:
    """A session without its links, streams and verbs.

    Args:
        settings: Limits and timeouts.
        codec: ``json`` or ``msgpack``.
        is_client: Whether we opened it.
        us: Our id.
        peer: The peer's.
        session_id: The session's.
        tag: What begins the ids that we make.
        metadata: What a client says in its handshakes, as a body; empty: nothing.

    Attributes:
        link_wanted: Whether the session has use for a link.
        identity: Who the client is, as far as its link proves it.
        linked_at: When the newest handshake was answered; None: none was.
        excused: The last link ended because of a message that is not sent again: another try costs nothing.

    """

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
    ) -> None:
        self._settings = settings
        self._codec = codec_of(codec)
        self._is_json = self._codec.is_json
        self._is_client = is_client
        # The peer has not shown yet that it goes on with this session.
        self._unconfirmed = True
        # A server's client may not know yet that it has a session: its requests wait.
        self._unproven = False
        # Bytes of messages that have come meanwhile.
        self._unproven_bytes = 0
        self.us = us
        self.peer = peer
        self.session_id = session_id
        self._writer = Writer(self._codec, us, peer, tag)
        self._heartbeat = self._codec.encoded(HEARTBEAT)
        self._close = self._codec.close
        self._metadata = metadata
        self._old = False
        self._state = OPENED
        self._link = DOWN
        self._established = False
        # Links that broke before our first handshake was answered.
        self._hung_up = 0
        # Our client is asked for its metadata; and what it said last came so: to that there is no answer.
        self._asking = False
        self._renewed = False
        self.renew: Callable[[], bytes] | None = None
        self._first = True
        # What the last checkpoint covers, reserves and promises, until it is committed.
        self._promised: tuple[int, int, int, int] | None = None
        self._taken_over = False
        # What the answer to a handshake calls the session.
        self._answered_as = session_id
        self._heard = 0.0
        # When the watchdog looked last, and the number of the message that we would have said next.
        self._looked = 0.0
        self._spoken = 0
        limit = settings.heartbeat_interval * settings.heartbeats_until_dead
        # A client that has just said something does so again at its second look at the latest: a third of the limit is
        # left for the way to a server that would take it for dead.
        self._look_after = min(settings.heartbeat_interval, limit / 3)
        # The oldest message that is not acknowledged, and what links have been lost since it was sent.
        self._worn_at = -1
        self._moved_at = -inf
        self._wear = 0
        self._events: list[Event] = []
        self._outbox = Outbox()
        self._timers = TimerTable()
        self._sequence = Sequence(settings.max_unacked, settings.resume_bytes)
        self._streams = RiverStreams(settings.max_streams)
        self._max_frame_bytes = settings.max_frame_bytes
        # What the peer accepts, as far as that is known.
        self._max_sent_bytes = settings.max_frame_bytes
        self._deframer = deframer(settings.max_frame_bytes, pass_over=True)
        self._held_bytes = 0
        # Messages and bytes that passed since the peer was last asked to acknowledge, and when it is asked again.
        self._passed = 0
        self._passed_bytes = 0
        self._prompt_after = -(-settings.max_unacked // PROMPTS)
        self._prompt_after_bytes = -(-settings.resume_bytes // PROMPTS)
        # Whoever waits for room is told of it when there is so much: not for one item at a time.
        self._ample = -(-settings.max_unacked // 4)
        # Who waits for room.
        self._starved: set[int] = set()
        self._opening = False
        self._sessions: Sessions[Any] | None = None
        self._kind_of: Callable[[str], Kind | None] = lambda route: None
        self.link_wanted = True
        self.identity = b""
        self.linked_at: float | None = None
        self.excused = False

    @property
    def secret(self) -> bytes:
        """The session's id: a client that names it in a handshake goes on with the session."""
        return self.session_id.encode()

    @property
    def durable(self) -> Durable | None:
        """None: this session ends with its process."""
        return None

    @property
    def open_streams(self) -> int:
        """How many streams are open, of both sides."""
        return len(self._streams)

    @property
    def sequence(self) -> Sequence:
        """The numbers of messages."""
        return self._sequence

    @property
    def calls_by_streams(self) -> bool:
        """No: the handler's own kind is the request's."""
        return False

    @property
    def full(self) -> bool:
        """Whether so much is held that nobody asked for, or may begin, that nothing more should be read."""
        limit = self._settings.max_held_bytes
        return self._held_bytes > limit or (self._unproven and self._unproven_bytes > limit)

    def take_output(self) -> list[bytes]:
        """Return the bytes to write, in pieces fit for a socket, and forget them."""
        return self._outbox.take()

    def take_events(self) -> list[Event]:
        """Return what happened since the last call, in order, and forget it."""
        events = self._events
        if events:
            self._events = []
            if self._unproven:
                return self._hold_requests(events)
        return events

    def _hold_requests(self, events: list[Event]) -> list[Event]:
        """Return what comes before the first request; the rest waits until the client has our first message."""
        begun = next((index for index, event in enumerate(events) if event.stream_id), len(events))
        self._events = events[begun:]
        return events[:begun]

    def ask_kinds(self, kind_of: Callable[[str], Kind | None]) -> None:
        """Ask `kind_of` what kind a request is; see :meth:`penstock.session.Session.ask_kinds`."""
        self._kind_of = kind_of

    # What is sent.

    def _new_id(self) -> str:
        """Return an id that was not used before."""
        return self._writer.new_id()

    def _post(
        self,
        name: bytes,
        flags: int,
        body: bytes,
        well: bool = False,
        route: str | None = None,
        tracing: dict[str, Any] | None = None,
    ) -> None:
        """Send a message of a stream, whose name is encoded, at once or when there is a link.

        Raises:
            LocalError: It cannot be encoded, or is too long. Nothing has changed (THREATS 60).

        """
        sequence = self._sequence
        if self._old and flags & (CLOSE | CANCEL):
            # v1.1 closes and cancels by one bit, and looks at what comes with it only where it is the one answer.
            stream = self._streams.named(self._codec.value(name, str))
            alone = stream is not None and not stream.answers_items
            if not alone and body != self._codec.close:
                self._post(name, flags & ~(CLOSE | CANCEL), body, well)
                body, well = self._codec.close, False
            flags = flags & ~CLOSE | CANCEL
        data = self._writer.message(sequence.seq, sequence.reported(), name, flags, body, well, route, tracing)
        size = len(data) - PREFIX_BYTES
        if size > self._max_sent_bytes:
            raise self._too_large(size)
        sequence.sent(data)
        if flags != ACK:
            sequence.private = sequence.seq
        if self._link == UP:
            self._outbox.write(data)
        if sequence.over():
            settings = self._settings
            kept = f"max_unacked ({settings.max_unacked}) or resume_bytes ({settings.resume_bytes})"
            self._finish(LimitExceeded(f"{self.peer} acknowledges nothing: more than {kept} wait for it"))
        elif flags != ACK:
            self._pass(size)

    def _too_large(self, size: int) -> TooLarge:
        """Return why a message of so many bytes is not sent."""
        limit = self._max_frame_bytes
        if size > limit:
            side = "client" if self._is_client else "server"
            return TooLarge(
                f"a message of {size} bytes exceeds the {side}'s max_frame_bytes ({limit}); send less at once"
            )
        return TooLarge(
            f"a message of {size} bytes is not sent: {self.peer} refused one of {self._max_sent_bytes + 1} bytes as too"
            " large; send less at once"
        )

    def _control(self, body: bytes) -> bytes:
        """Return a handshake's message, with its length. It has no number, and is not kept."""
        return self._writer.message(0, 0, self._codec.encoded(self._new_id()), 0, body)

    def _pass(self, octets: int) -> None:
        """Count a message of either side; a server asks for an acknowledgement in time."""
        self._passed += 1
        self._passed_bytes += octets
        many = self._passed >= self._prompt_after or self._passed_bytes >= self._prompt_after_bytes
        if many and not self._is_client and self._link == UP:
            self._beat()

    def _beat(self) -> None:
        """Send a heartbeat. River, Detecting phantom disconnects: it is a message like any other."""
        self._passed = self._passed_bytes = 0
        self._post(self._heartbeat, ACK, self._codec.heartbeat)

    def _acknowledged(self, ack: int) -> None:
        """Take the peer's word for what it has; whoever waits for room goes on."""
        sequence = self._sequence
        sequence.acknowledged(ack)
        room = sequence.room
        if room < self._ample:
            return
        if self._starved:
            starved, self._starved = self._starved, set()
            self._events += [CreditGranted(number, room) for number in sorted(starved)]
        if self._opening:
            self._opening = False
            self._events.append(LeaseGranted(room, LEASE_SECONDS, None))

    # Ends.

    def _forget(self, stream: RiverStream) -> None:
        """Forget a stream, and what is held of it."""
        self._held_bytes -= stream.octets
        stream.drop()
        stream.inbound = stream.outbound = DONE
        if self._starved:
            self._starved.discard(stream.number)
        self._streams.close(stream)

    def _finish(self, error: Exception | None) -> None:
        """End the session for good; every stream fails first. River, On disconnect: a hard disconnect."""
        if self._state == CLOSED:
            return
        self._state = CLOSED
        self._link = DOWN
        self.link_wanted = False
        for stream in self._streams.all():
            self._events += [event for event in stream.held or () if not isinstance(event, Failed)]
            self._forget(stream)
            self._events.append(Failed(stream.number, self._reason(error)))
        if self._unproven:
            # Nobody has begun what its client will ask for again.
            self._events = [event for event in self._events if not event.stream_id]
            self._unproven = False
        self._timers.clear()
        self._events.append(Closed(error))
        self._ended(error)

    def _reason(self, error: Exception | None) -> Exception:
        """Return what a stream fails with when the session ends with `error`."""
        if error is None:
            return SessionClosed("the connection was closed")
        if not self._established:
            return error
        reason = ApplicationError(UNEXPECTED_DISCONNECT, f"{self.peer} unexpectedly disconnected: {error}")
        reason.__cause__ = error
        return reason

    def _ended(self, error: Exception | None) -> None:
        """Let whoever knows of the session forget it."""
