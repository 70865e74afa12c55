"""The links of a session, which come and go: handshakes, order, heartbeats, and going on over another link."""

from __future__ import annotations

from math import inf
from typing import Final

from msgspec import UNSET

from ..core.texts import shown
from ..core.timers import Timer
from ..errors import (
    KeepaliveTimeout,
    LimitExceeded,
    LinkLost,
    ProtocolError,
    ResumeRejected,
    SetupRejected,
)
from ..events import Established, Unlinked
from ..payload import Payload
from ..wire.framing import Deframer
from ..wire.river import ACK
from ..wire.river_framing import deframer
from ..wire.river_message import Message
from ..wire.river_scanning import scan
from .connection import CLOSED, DOWN, DRAINING, HANDSHAKING, UP
from .handshake import MISMATCH, HandshakeResponse, request
from .oversized import TOO_BIG, Oversized

__all__ = ["Links"]

WORN_OUT: Final = 128
"""Links in a row, each lost within a heartbeat, after which a session ends if its oldest message was not acknowledged.
Those that lived longer do not count: a collector that waits for its readers acknowledges nothing for a long time."""
WEIGHT: Final = 16
"""For how many of them one counts that was lost while a large message moved: eight such links are enough."""
LARGE: Final = 4_096
"""Bytes from which a message is large. Smaller ones arrive over any link that moves: what is missing then is somebody
who lives long enough to acknowledge them, such as a collector that is killed eight times in a row."""

HANG_UPS: Final = 5
"""First handshakes without an answer, after which it is no accident: as many as River's retry budget has tries."""


class Links(Oversized):
    """A session with its links, but without verbs."""

    def link_up(self, now: float) -> None:
        """A client's link is open: say who we are, and nothing else before that is answered."""
        if self._state == CLOSED or not self._is_client:
            return
        said = self._say()
        if said is None:
            return
        self._link = HANDSHAKING
        self.link_wanted = True
        self._outbox.clear()
        self._outbox.write(self._control(request(self.session_id, self._sequence, said, self._codec)))
        self._timers.set(Timer.FIRST_FRAME, now + self._settings.handshake_timeout)

    def link_down(self, now: float, error: Exception | None) -> None:
        """The link is gone; the session waits for another one."""
        if self._state == CLOSED:
            return
        if isinstance(error, LimitExceeded):
            self._finish(error)
            return
        self.excused = False
        if isinstance(error, LinkLost) and error.code == TOO_BIG:
            self._refused_by_peer()
            if self._state == CLOSED:
                return
        # Where another process has been answered before, the codec is right: there is a server to be waited for.
        if self._link == HANDSHAKING and not self._established and not self._taken_over:
            self._hung_up += 1
            if self._hung_up == HANG_UPS:
                codec = self._codec.name
                text = f"{self.peer} hung up on our handshake {HANG_UPS} times"
                self._finish(LinkLost(f"{text}; both sides must have one codec, ours is {codec}"))
                return
        self._suspend(now)
        self.link_wanted = True
        if self._worn_out():
            return
        if self._state == DRAINING and not self._streams:
            self._finish(None)

    def receive(self, data: bytes, now: float) -> None:
        """Take what the link brought. It may be cut anywhere."""
        if self._link == DOWN:
            # What a link still brings that we gave up.
            return
        # Any byte shows that the peer lives: a long message takes its time.
        self._heard = now
        deframer = self._deframer
        deframer.feed(data)
        try:
            while self._link != DOWN and deframer.next():
                self._message(self._decoded(deframer), deframer.end - deframer.start, now)
        except (ProtocolError, LimitExceeded) as error:
            # River, State Transitions: an invalid message destroys the session.
            self._finish(error)
        self._after()

    def progressed(self, now: float) -> None:
        """Output that had waited has left the link: the peer's answers may be behind it."""
        self._heard = self._looked = self._moved_at = now

    def next_timer(self) -> float | None:
        """Return when to call `handle_timer`, or None. It may be early, never late."""
        return self._timers.next()

    def handle_timer(self, now: float) -> None:
        """Do what is due by now."""
        for timer in self._timers.expired(now):
            if self._state == CLOSED:
                return
            if timer is Timer.KEEPALIVE:
                self._timers.set(Timer.KEEPALIVE, now + self._settings.heartbeat_interval)
                # A client that acknowledges nothing for so long is served all the same.
                self._unproven = False
                self._beat()
            elif timer is Timer.SILENCE:
                self._silent(now)
            elif timer is Timer.FIRST_FRAME and not self._is_client:
                self._not_rehandshaken()
            elif timer is Timer.FIRST_FRAME:
                limit = self._settings.handshake_timeout
                self._drop(now, LinkLost(f"{self.peer} did not answer the handshake within {limit:g} s"))
            elif timer is Timer.EXPIRY:
                limit = self._settings.session_grace
                self._finish(LinkLost(f"the session was without a connection for session_grace ({limit:g} s)"))
        self._after()

    def confirm(self) -> None:
        """The handshake's answer is a sign: `Established` follows, or `Closed`."""
        if self._established:
            self._establish()

    # Messages.

    def _decoded(self, deframer: Deframer) -> Message:
        """Return the message that the deframer stands at."""
        buffer, start, end = deframer.buffer, deframer.start, deframer.end
        if deframer.oversized is not None:
            return self._envelope_of(deframer.oversized)
        message = scan(buffer, start, end, self._is_json, self._is_client, self.peer, self.us)
        if message is None:
            message = self._codec.decode_any(buffer[start:end], self._is_client)
        return message

    def _message(self, message: Message, size: int, now: float) -> None:
        """Take a message. River, Handling messages for streams: both client and server."""
        if message.from_ != self.peer:
            # THREATS 57.
            raise ProtocolError(f"a message from {message.from_[:40]!r} came over the link of {self.peer!r}")
        if self._link == HANDSHAKING:
            self._answered(message, now)
            return
        sequence = self._sequence
        if message.seq < sequence.ack:
            # River, Transparent reconnections: it was taken already.
            return
        if message.seq > sequence.ack or message.ack > sequence.seq:
            # THREATS 58: something is lost, or was never sent; what both sides keep sets it right over a new link.
            self._astray(message, now)
            return
        sequence.ack += 1
        if self._unconfirmed:
            self._unconfirmed = False
            self._confirmed(now)
        if self._unproven:
            # An echo tells it, too, where a checkpoint holds the acknowledgement back.
            self._unproven = not (message.ack or message.control_flags & ACK)
            self._unproven_bytes += size
        self._acknowledged(message.ack)
        if message.to != self.us:
            return
        if message.control_flags & ACK:
            # THREATS 65: a server's heartbeats are echoed, a client's are not.
            if self._is_client:
                self._echo()
            return
        self._pass(size)
        if self._link == UP:
            self._stream_message(message)

    def _astray(self, message: Message, now: float) -> None:
        """Give the link up over which a message came that cannot be the next one."""
        self._suspend(now)
        self.link_wanted = False
        self._worn_out()

    def _echo(self) -> None:
        """Answer a server's heartbeat."""
        self._beat()

    def _answered(self, message: Message, now: float) -> None:
        """Take a server's answer to our handshake."""
        if message.fault is not None:
            raise message.fault
        status = self._codec.value(message.payload, HandshakeResponse).status
        if status.ok and status.session_id == self.session_id and message.to == self.us:
            self._timers.stop(Timer.FIRST_FRAME)
            self._linked(now)
            if not self._established:
                self._establish()
            return
        code = "" if status.code is UNSET else str(status.code)
        reason = "" if status.reason is UNSET else shown(str(status.reason))
        text = f"{self.peer} refused the handshake: {shown(code)} {reason}"
        refused = SetupRejected(text, code or None)
        if status.ok or (code == MISMATCH and not refused.temporary):
            # River, Client: the server has lost the state of this session.
            self._finish(ResumeRejected(text, code or None))
        else:
            self._finish(refused)

    def _establish(self) -> None:
        self._established = True
        self._events.append(Established(Payload(self._metadata), "", self._codec.data_mime))

    def _confirmed(self, now: float) -> None:
        """Learn that the peer goes on with this session."""

    # Links.

    def _linked(self, now: float) -> None:
        """Go on over a link: all that was not acknowledged is sent again, as it was."""
        self._link = UP
        self.linked_at = now
        self.link_wanted = True
        self._timers.stop(Timer.EXPIRY)
        for message in self._sequence.unacked:
            self._outbox.write(message)
        self._heard = self._looked = now
        self._spoken = self._sequence.seq
        settings = self._settings
        self._timers.set(Timer.SILENCE, now + self._look_after)
        if not self._is_client:
            self._timers.set(Timer.KEEPALIVE, now + settings.heartbeat_interval)

    def _suspend(self, now: float) -> None:
        """Go on without a link: what is sent now waits."""
        if self._link == UP:
            self._count_cut(now)
        self._link = DOWN
        self._outbox.clear()
        # A message of which a part has come comes again.
        self._deframer = deframer(self._max_frame_bytes, pass_over=True)
        for timer in (Timer.FIRST_FRAME, Timer.KEEPALIVE, Timer.SILENCE):
            self._timers.stop(timer)
        if Timer.EXPIRY not in self._timers:
            self._timers.set(Timer.EXPIRY, now + self._settings.session_grace)

    def _silent(self, now: float) -> None:
        """Give the link up if the peer is silent. River, Detecting phantom disconnects."""
        settings = self._settings
        limit = settings.heartbeat_interval * settings.heartbeats_until_dead
        if self.full:
            # It is we who do not listen.
            self._heard = now
        if self._is_client and (self.full or self._unanswered()):
            # The server's heartbeats are not read, or are behind a long message: tell it without them that we live.
            self._echo()
        self._looked = now
        self._spoken = self._sequence.seq
        deadline = self._heard + limit
        if now < deadline:
            next_look = now + self._look_after if self._is_client else inf
            self._timers.set(Timer.SILENCE, min(deadline, next_look))
        else:
            self._drop(now, KeepaliveTimeout(f"nothing was heard of {self.peer} for {now - self._heard:.1f} s"))

    def _unanswered(self) -> bool:
        """Whether something has come since the last look, and nothing was said."""
        return self._heard > self._looked and self._sequence.seq == self._spoken

    def _drop(self, now: float, error: Exception) -> None:
        """Give a link up that brings nothing, without a word."""
        self._suspend(now)
        self._events.append(Unlinked(error))
        self._worn_out()

    def _count_cut(self, now: float) -> None:
        """Count a link that is lost, unless it brought an acknowledgement of the oldest message."""
        sequence = self._sequence
        first = sequence.first
        if first != self._worn_at:
            self._worn_at = first
            self._wear = 0
        if first < sequence.seq:
            interval = self._settings.heartbeat_interval
            moved = now - self._moved_at <= interval * self._settings.heartbeats_until_dead
            if moved and sequence.largest >= LARGE:
                self._wear += WEIGHT
            elif self.linked_at is None or now - self.linked_at < interval:
                self._wear += 1

    def _worn_out(self) -> bool:
        """End a session whose links cannot carry what it has to send. Return whether it is over."""
        if self._wear >= WORN_OUT and self._state != CLOSED:
            # The oldest may be a heartbeat that arrived, and whose acknowledgement was lost with each link.
            size = self._sequence.largest
            text = f"a message of {size} bytes to {self.peer} was sent again and again, and each connection was lost"
            self._finish(LinkLost(f"{text} before it was acknowledged; send smaller messages, or mend the link"))
        return self._state == CLOSED

    def _after(self) -> None:
        """End a session that was to end with its streams."""
        if self._state == DRAINING and not self._streams and self._link == UP:
            self._depart()

    def _depart(self) -> None:
        """End a session in order."""
        self._finish(None)
