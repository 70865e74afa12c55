"""What both sides of a River session have below its links, streams and verbs: what is sent, and how it ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import UNSET, Raw, UnsetType

from ..core.halves import DONE
from ..core.outbox import Outbox
from ..core.timers import TimerTable
from ..errors import ApplicationError, LimitExceeded, LocalError, SessionClosed
from ..events import Closed, CreditGranted, Event, Failed, LeaseGranted
from ..kinds import Kind
from ..settings import Settings
from ..wire.river import ACK, CANCEL, CLOSE, Message, codec_of
from ..wire.river_framing import MessageDeframer, framed
from .identity import base36
from .result import UNEXPECTED_DISCONNECT
from .sequence import Sequence
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
        self._is_client = is_client
        self.us = us
        self.peer = peer
        self.session_id = session_id
        self._tag = tag
        self._metadata = metadata
        self._made = 0
        self._old = False
        self._state = OPENED
        self._link = DOWN
        self._established = False
        self._heard = 0.0
        self._events: list[Event] = []
        self._outbox = Outbox()
        self._timers = TimerTable()
        self._sequence = Sequence(settings.max_unacked, settings.resume_bytes)
        self._streams = RiverStreams(settings.max_streams)
        self._deframer = MessageDeframer(settings.max_frame_bytes)
        self._held_bytes = 0
        # Messages and bytes that passed since the peer was last asked to acknowledge.
        self._passed = 0
        self._passed_bytes = 0
        # Who waits for room.
        self._starved: set[int] = set()
        self._opening = False
        self._kind_of: Callable[[str], Kind | None] = lambda route: None
        self.link_wanted = True
        self.identity = b""

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
        """Whether so much is held that nobody asked for, that nothing more should be read."""
        return self._held_bytes > self._settings.max_held_bytes

    def take_output(self) -> list[bytes]:
        """Return the bytes to write, in pieces fit for a socket, and forget them."""
        return self._outbox.take()

    def take_events(self) -> list[Event]:
        """Return what happened since the last call, in order, and forget it."""
        events = self._events
        if events:
            self._events = []
        return events

    def ask_kinds(self, kind_of: Callable[[str], Kind | None]) -> None:
        """Ask `kind_of` what kind a request is; see :meth:`penstock.session.Session.ask_kinds`."""
        self._kind_of = kind_of

    # What is sent.

    def _new_id(self) -> str:
        self._made += 1
        return f"{self._tag}{base36(self._made)}"

    def _post(
        self,
        name: str,
        flags: int,
        body: bytes,
        service: str | UnsetType = UNSET,
        procedure: str | UnsetType = UNSET,
    ) -> None:
        """Send a message of a stream, at once or when there is a link.

        Raises:
            LocalError: It cannot be encoded, or is too long. Nothing has changed (THREATS 60).

        """
        sequence = self._sequence
        if self._old and flags & (CLOSE | CANCEL):
            # v1.1 closes and cancels by one bit, and looks at what comes with it only where it is the one answer.
            stream = self._streams.named(name)
            alone = stream is not None and stream.kind in (Kind.CALL, Kind.UPLOAD)
            if not alone and body != self._codec.close:
                self._post(name, flags & ~(CLOSE | CANCEL), body)
                body = self._codec.close
            flags = flags & ~CLOSE | CANCEL
        message = Message(
            self._new_id(), self.us, self.peer, sequence.seq, sequence.ack, name, flags, Raw(body), service, procedure
        )
        data = self._codec.encode(message)
        limit = self._settings.max_frame_bytes
        if len(data) > limit:
            raise LocalError(f"a message of {len(data)} bytes exceeds max_frame_bytes ({limit}); send smaller items")
        sequence.sent(data)
        if self._link == UP:
            self._outbox.write(framed(data))
        if sequence.over:
            kept = f"max_unacked ({self._settings.max_unacked}) or resume_bytes ({self._settings.resume_bytes})"
            self._finish(LimitExceeded(f"{self.peer} acknowledges nothing: more than {kept} wait for it"))
        elif flags != ACK:
            self._pass(len(data))

    def _control(self, body: bytes) -> bytes:
        """Return a handshake's message, with its length. It has no number, and is not kept."""
        message = Message(self._new_id(), self.us, self.peer, 0, 0, self._new_id(), 0, Raw(body))
        return framed(self._codec.encode(message))

    def _pass(self, octets: int) -> None:
        """Count a message of either side; a server asks for an acknowledgement in time."""
        self._passed += 1
        self._passed_bytes += octets
        settings = self._settings
        many = PROMPTS * self._passed >= settings.max_unacked or PROMPTS * self._passed_bytes >= settings.resume_bytes
        if many and not self._is_client and self._link == UP:
            self._beat()

    def _beat(self) -> None:
        """Send a heartbeat. River, Detecting phantom disconnects: it is a message like any other."""
        self._passed = self._passed_bytes = 0
        self._post(HEARTBEAT, ACK, self._codec.heartbeat)

    def _acknowledged(self, ack: int) -> None:
        """Take the peer's word for what it has; whoever waits for room goes on."""
        sequence = self._sequence
        sequence.acknowledged(ack)
        room = sequence.room
        # Not for one item at a time.
        if 4 * room < self._settings.max_unacked:
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
        stream.octets = 0
        stream.held.clear()
        stream.inbound = stream.outbound = DONE
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
            self._events += [event for event in stream.held if not isinstance(event, Failed)]
            self._forget(stream)
            self._events.append(Failed(stream.number, self._reason(error)))
        self._timers.clear()
        self._events.append(Closed(error))
        self._ended()

    def _reason(self, error: Exception | None) -> Exception:
        """Return what a stream fails with when the session ends with `error`."""
        if error is None:
            return SessionClosed("the connection was closed")
        if not self._established:
            return error
        reason = ApplicationError(UNEXPECTED_DISCONNECT, f"{self.peer} unexpectedly disconnected: {error}")
        reason.__cause__ = error
        return reason

    def _ended(self) -> None:
        """Let whoever knows of the session forget it."""
