"""The links of a session, which come and go: order, heartbeats, silence, and going on over another link."""

from __future__ import annotations

from math import inf
from typing import Final

from ..core.timers import Timer
from ..errors import KeepaliveTimeout, LimitExceeded, LinkLost, ProtocolError, ResumeRejected, SetupRejected
from ..events import Unlinked
from ..wire.framing import Deframer, LongMessage, deframer
from ..wire.river.codec import ACK, PREFIX_BYTES
from ..wire.river.message import Message
from ..wire.river.scanning import scan
from .handshake import Handshake
from .identity import Side
from .inbound import Inbound
from .outbound import Outbound
from .states import DOWN, HANDSHAKING, UP

__all__ = ["HANG_UPS", "Link"]

WORN_OUT: Final = 128
"""Links in a row, each lost within a heartbeat, after which a session ends if its oldest message was not acknowledged.
Those that lived longer do not count: a collector that waits for its readers acknowledges nothing for a long time."""
WEIGHT: Final = 16
"""For how many of them one counts that was lost while a large message moved: eight such links are enough."""
LARGE: Final = 4_096
"""Bytes from which a message is large. Smaller ones arrive over any link that moves: what is missing then is a peer
that lives long enough to acknowledge them, such as a collector that is killed eight times in a row."""
HANG_UPS: Final = 5
"""First handshakes without an answer, after which it is no accident: as many as River's retry budget has tries."""
TOO_BIG: Final = 1009
"""RFC 6455, 7.4.1: the code by which a peer closes a WebSocket over which a message came that is too big for it."""
BELIEVED_BYTES: Final = 4_096
"""No peer refuses smaller messages for their size: then the close had another reason."""


class Link:
    """The part of a session that knows its links.

    Args:
        side: Who talks to whom, and how.
        handshake: Begins each link.
        inbound: Takes the messages of streams.
        outbound: Sends messages.

    Attributes:
        state: Of :class:`~penstock.river.states.LinkState`.
        wanted: Whether the session has use for a link.
        excused: The last link ended because of a message that is not sent again: another try costs nothing.
        linked_at: When the newest handshake was answered; None: none was.
        confirmed: Whether the peer has sent a message since this process has the session.
        probation_bytes: The size of the messages that have come while a server's client may not know yet that it has a
            session; -1: it knows, or we are the client.
        taken_over: Whether an earlier process began the session.

    """

    def __init__(self, side: Side, handshake: Handshake, inbound: Inbound, outbound: Outbound) -> None:
        settings = side.settings
        self._settings = settings
        self._codec = side.codec
        self._is_json = side.codec.is_json
        self._is_client = side.is_client
        self._us = side.us
        self._peer = side.peer
        self._streams = side.streams
        self._timers = side.timers
        self._events = side.events
        self._handshake = handshake
        self._inbound = inbound
        self._outbound = outbound
        self._sequence = outbound.sequence
        self._finish = side.finish
        self._deframer = deframer(settings.max_frame_bytes, pass_over=True)
        self._last_received_at = 0.0
        # When the watchdog checked last, and the number that our next message had then.
        self._checked_at = 0.0
        self._sent_at_check = 0
        self._silence_limit = settings.heartbeat_interval * settings.heartbeats_until_dead
        # A client that has just said something does so again at its second check at the latest: a third of the limit is
        # left for the way to a server that would take it for dead.
        self._check_interval = min(settings.heartbeat_interval, self._silence_limit / 3)
        self._moved_at = -inf
        # The oldest message that is not acknowledged, and the weight of the links lost since it was sent.
        self._worn_at = -1
        self._wear = 0
        # Links that broke before our first handshake was answered.
        self._hung_up = 0
        self.state = DOWN
        self.wanted = True
        self.excused = False
        self.linked_at: float | None = None
        self.confirmed = False
        self.probation_bytes = -1
        self.taken_over = False

    # Links come and go.

    def up(self, now: float) -> None:
        """Begin a client's link with a handshake. Nothing else is sent before that is answered."""
        if self._handshake.request(now):
            self.state = HANDSHAKING
            self.wanted = True

    def accept(self, answered_as: str, now: float) -> None:
        """Answer a client's handshake, and go on over its link. The old link, if there is one, is given up."""
        self._suspend(now)
        self._handshake.accept(answered_as)
        self._linked(now)

    def down(self, now: float, error: Exception | None) -> None:
        """Go on without a link. The session waits for another one."""
        if isinstance(error, LimitExceeded):
            self._finish(error)
            return
        self.excused = False
        if isinstance(error, LinkLost) and error.code == TOO_BIG and self.state == HANDSHAKING:
            text = f"{self._peer} refused the handshake as too large (WebSocket close {TOO_BIG})"
            self._finish(SetupRejected(text))
        elif self.state == HANDSHAKING and self._hung_up_for_good():
            codec = self._codec.name
            text = f"{self._peer} hung up on our handshake {HANG_UPS} times"
            self._finish(LinkLost(f"{text}; both sides must have one codec, ours is {codec}"))
        else:
            if isinstance(error, LinkLost) and error.code == TOO_BIG:
                self._replace_refused()
            self._suspend(now)
            self.wanted = True
            self._end_if_worn_out()

    def close(self) -> None:
        """Take nothing more: the session is over. Output that waits may still be sent."""
        self.state = DOWN
        self.wanted = False
        self._outbound.linked = False
        self._timers.clear()

    def _hung_up_for_good(self) -> bool:
        """Count a link that ended without an answer to our first handshake."""
        # Where another process has been answered before, the codec is right: there is a server to be waited for.
        if self.linked_at is not None or self.taken_over:
            return False
        self._hung_up += 1
        return self._hung_up == HANG_UPS

    def _linked(self, now: float) -> None:
        """Go on over a link: all that was not acknowledged is sent again, as it was."""
        self.state = UP
        self.wanted = True
        self.linked_at = now
        self._timers.stop(Timer.EXPIRY)
        self._outbound.link_up()
        self._last_received_at = self._checked_at = now
        self._sent_at_check = self._sequence.seq
        self._timers.set(Timer.SILENCE, now + self._check_interval)
        if not self._is_client:
            self._timers.set(Timer.KEEPALIVE, now + self._settings.heartbeat_interval)

    def _suspend(self, now: float) -> None:
        """Go on without a link: what is sent now waits."""
        if self.state == UP:
            self._count_lost(now)
        self.state = DOWN
        self._outbound.link_down()
        # A message of which a part has come comes again.
        self._deframer = deframer(self._settings.max_frame_bytes, pass_over=True)
        for timer in (Timer.FIRST_FRAME, Timer.KEEPALIVE, Timer.SILENCE):
            self._timers.stop(timer)
        if Timer.EXPIRY not in self._timers:
            self._timers.set(Timer.EXPIRY, now + self._settings.session_grace)

    def _drop(self, now: float, error: Exception) -> None:
        """Give a link up that brings nothing, without telling the peer."""
        self._suspend(now)
        self._events.append(Unlinked(error))
        self._end_if_worn_out()

    # Messages.

    def receive(self, data: bytes, now: float) -> None:
        """Take what the link brought. It may be cut anywhere."""
        if self.state == DOWN:
            # The link was given up, and still brings something.
            return
        # Any byte shows that the peer lives: a long message takes its time.
        self._last_received_at = now
        deframer = self._deframer
        deframer.feed(data)
        try:
            while self.state != DOWN and deframer.next():
                self._receive_message(self._decoded(deframer), deframer.end - deframer.start, now)
        except (ProtocolError, LimitExceeded) as error:
            # River, State Transitions: an invalid message destroys the session.
            self._finish(error)

    def progressed(self, now: float) -> None:
        """Note that output has left the link: the peer's answers may be behind it."""
        self._last_received_at = self._checked_at = self._moved_at = now

    def _decoded(self, deframer: Deframer) -> Message:
        """Return the message that the deframer stands at."""
        if deframer.oversized is not None:
            return self._envelope_of(deframer.oversized)
        buffer, start, end = deframer.buffer, deframer.start, deframer.end
        message = scan(buffer, start, end, self._is_json, self._is_client, self._peer, self._us)
        if message is None:
            message = self._codec.decode_any(buffer[start:end], self._is_client)
        return message

    def _envelope_of(self, passed: LongMessage) -> Message:
        """Return a message that is too long for us, without its payload: it costs its stream alone.

        Raises:
            LimitExceeded: Its stream, or its number, cannot be found in what is kept of it.

        """
        side = "client" if self._is_client else "server"
        limit = self._settings.max_frame_bytes
        text = f"a message of {passed.size} bytes exceeds the {side}'s max_frame_bytes ({limit})"
        message = self._codec.decode_ends(passed.head, passed.tail)
        if message is None:
            raise LimitExceeded(f"{text}, and whose it is cannot be read from its beginning and end")
        message.fault = LimitExceeded(text)
        return message

    def _receive_message(self, message: Message, size: int, now: float) -> None:
        """Take a message. River, Handling messages for streams: both client and server."""
        if message.from_ != self._peer:
            # THREATS 57.
            raise ProtocolError(f"a message from {message.from_[:40]!r} came over the link of {self._peer!r}")
        if self.state == HANDSHAKING:
            self._receive_answer(message, now)
            return
        sequence = self._sequence
        if message.seq < sequence.ack:
            # River, Transparent reconnections: it was taken already.
            return
        if message.seq > sequence.ack or message.ack > sequence.seq:
            # THREATS 58: something is lost, or was never sent; what both sides keep sets it right over a new link.
            self._out_of_order(message, now)
            return
        sequence.ack += 1
        self.confirmed = True
        if self.probation_bytes >= 0:
            # An echo tells that the client knows, too, where a checkpoint holds the acknowledgement back.
            known = message.ack or message.control_flags & ACK
            self.probation_bytes = -1 if known else self.probation_bytes + size
        is_ours = message.to == self._us
        is_heartbeat = message.control_flags & ACK
        self._outbound.received(message.ack, size if is_ours and not is_heartbeat else -1)
        if not is_ours:
            return
        if is_heartbeat:
            # THREATS 65: a server's heartbeats are acknowledged, a client's are not.
            if self._is_client:
                self._outbound.ack_heartbeat()
        elif self.state == UP:
            self._inbound.receive(message)

    def _receive_answer(self, message: Message, now: float) -> None:
        """Take a server's answer to our handshake."""
        refusal = self._handshake.refusal(message)
        if refusal is not None:
            self._finish(refusal)
            return
        is_first = self.linked_at is None
        self._linked(now)
        if is_first:
            self._handshake.established()

    def _out_of_order(self, message: Message, now: float) -> None:
        """Give the link up over which a message came that cannot be the next one."""
        if self.taken_over and message.ack > self._sequence.seq:
            text = f"{self._peer} has handled more than was reserved: the earlier process went on behind its checkpoint"
            self._finish(ResumeRejected(text))
            return
        self._suspend(now)
        self.wanted = False
        self._end_if_worn_out()

    # Time.

    def handle_timer(self, timer: Timer, now: float, full: bool) -> None:
        """Do what is due by now.

        Args:
            timer: What has expired.
            now: The time.
            full: Whether the session is full, so that nothing is read from its link.

        """
        settings = self._settings
        if timer is Timer.KEEPALIVE:
            self._timers.set(Timer.KEEPALIVE, now + settings.heartbeat_interval)
            # A client that acknowledges nothing for so long is served all the same.
            self.probation_bytes = -1
            self._outbound.send_heartbeat()
        elif timer is Timer.SILENCE:
            self._check_silence(now, full)
        elif timer is Timer.FIRST_FRAME and not self._is_client:
            self._handshake.not_repeated()
        elif timer is Timer.FIRST_FRAME:
            limit = settings.handshake_timeout
            self._drop(now, LinkLost(f"{self._peer} did not answer the handshake within {limit:g} s"))
        elif timer is Timer.EXPIRY:
            limit = settings.session_grace
            self._finish(LinkLost(f"the session was without a connection for session_grace ({limit:g} s)"))

    def _check_silence(self, now: float, full: bool) -> None:
        """Give the link up if the peer is silent. River, Detecting phantom disconnects."""
        if full:
            # It is we who do not listen.
            self._last_received_at = now
        is_unanswered = self._last_received_at > self._checked_at and self._sequence.seq == self._sent_at_check
        if self._is_client and (full or is_unanswered):
            # The server's heartbeats are not read, or are behind a long message: tell it without them that we live.
            self._outbound.ack_heartbeat()
        self._checked_at = now
        self._sent_at_check = self._sequence.seq
        deadline = self._last_received_at + self._silence_limit
        if now < deadline:
            next_check = now + self._check_interval if self._is_client else inf
            self._timers.set(Timer.SILENCE, min(deadline, next_check))
        else:
            silence = now - self._last_received_at
            self._drop(now, KeepaliveTimeout(f"nothing was heard of {self._peer} for {silence:.1f} s"))

    # Messages that no link carries to its end.

    def _count_lost(self, now: float) -> None:
        """Count a link that is lost, unless it brought an acknowledgement of the oldest message."""
        sequence = self._sequence
        first = sequence.first
        if first != self._worn_at:
            self._worn_at = first
            self._wear = 0
        if first < sequence.seq:
            moved = now - self._moved_at <= self._silence_limit
            if moved and sequence.largest >= LARGE:
                self._wear += WEIGHT
            elif self.linked_at is None or now - self.linked_at < self._settings.heartbeat_interval:
                self._wear += 1

    def _end_if_worn_out(self) -> None:
        """End a session whose links cannot carry what it has to send."""
        if self._wear >= WORN_OUT:
            # The oldest may be a heartbeat that arrived, and whose acknowledgement was lost with each link.
            size = self._sequence.largest
            text = f"a message of {size} bytes to {self._peer} was sent again and again, and each connection was lost"
            self._finish(LinkLost(f"{text} before it was acknowledged; send smaller messages, or mend the link"))

    def _replace_refused(self) -> None:
        """Replace the message because of whose size the peer has closed the link: the largest one certainly is."""
        sequence = self._sequence
        size = sequence.largest - PREFIX_BYTES
        if size < BELIEVED_BYTES:
            return
        self._outbound.max_sent_bytes = size - 1
        self.excused = True
        text = f"{self._peer} refused a message of {size} bytes as too large (WebSocket close {TOO_BIG})"
        for seq, data in enumerate(sequence.unacked, sequence.first):
            if len(data) - PREFIX_BYTES >= size:
                message = self._codec.decode(data, PREFIX_BYTES)
                stream = self._streams.named(message.stream_id)
                reason = f"{text}; send less at once"
                self._outbound.replace(seq, message, reason)
                if stream is not None:
                    self._inbound.refused(stream, reason)
