"""The links of a session: order of messages, heartbeats, silence, and resuming over another link."""

from __future__ import annotations

from math import inf
from typing import Final

from ..core.link_losses import LinkLosses
from ..core.timers import Timer
from ..core.unfinished import Unfinished
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

__all__ = ["MAX_UNANSWERED", "Link"]

MAX_UNANSWERED: Final = 5
"""Unanswered first handshakes after which the session ends: the number of tries in River's retry budget."""
TOO_BIG: Final = 1009
"""RFC 6455, 7.4.1: the code with which a peer closes a WebSocket after a message that is too big."""
MIN_REJECTED_BYTES: Final = 4_096
"""No peer rejects smaller messages for their size, so such a close has another reason."""


class Link:
    """The links of a session, one at a time.

    Args:
        side: The side and its peer.
        handshake: Begins each link.
        inbound: Receives the messages of streams.
        outbound: Sends messages.

    Attributes:
        state: A :class:`~weirpool.river.states.LinkState` as a number.
        wanted: Whether the session needs a link.
        excused: Whether the last link ended because of a message that is not sent again, so a retry is free.
        linked_at: The time of the newest accepted handshake, or None.
        confirmed: Whether this process has received a message of the session.
        on_probation: On a server, whether its client has not acknowledged the session, so that no request may start.
        unfinished: The bytes of a message that has not arrived completely.
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
        self.unfinished = Unfinished(side.account, side.timers, settings.frame_timeout)
        self._deframer = deframer(settings.max_frame_bytes, pass_over=True)
        self._last_received_at = 0.0
        # The time of the last silence check, and the number of our next message then.
        self._checked_at = 0.0
        self._sent_at_check = 0
        self._silence_limit = settings.heartbeat_interval * settings.heartbeats_until_dead
        # An idle client sends a message at the second check at the latest. This leaves a third of the limit for the
        # message to reach a server with the same limit.
        self._check_interval = min(settings.heartbeat_interval, self._silence_limit / 3)
        self._losses = LinkLosses(settings.heartbeat_interval, self._silence_limit)
        # Links that ended before our first handshake was answered.
        self._unanswered = 0
        self.state = DOWN
        self.wanted = True
        self.excused = False
        self.linked_at: float | None = None
        self.confirmed = False
        self.on_probation = False
        self.taken_over = False

    # Attaching and detaching links.

    def up(self, now: float) -> None:
        """Send a client's handshake. Nothing else is sent before the response."""
        if self._handshake.request(now):
            self.state = HANDSHAKING
            self.wanted = True

    def accept(self, answered_as: str, now: float) -> None:
        """Accept a client's handshake, and switch from the old link, if any, to the new one."""
        self._suspend(now)
        self._handshake.accept(answered_as)
        self._linked(now)

    def down(self, now: float, error: Exception | None) -> None:
        """Handle the loss of the link: end the session, or wait for another link."""
        if isinstance(error, LimitExceeded):
            self._finish(error)
            return
        self.excused = False
        if isinstance(error, LinkLost) and error.code == TOO_BIG and self.state == HANDSHAKING:
            text = f"{self._peer} rejected the handshake as too large (WebSocket close {TOO_BIG})"
            self._finish(SetupRejected(text))
        elif self.state == HANDSHAKING and self._is_hopeless():
            codec = self._codec.name
            text = f"{self._peer} closed the connection after our handshake {MAX_UNANSWERED} times"
            last = f"; the last time: {error}" if error is not None else ""
            self._finish(LinkLost(f"{text}; both sides must use the same codec, ours is {codec}{last}"))
        else:
            if isinstance(error, LinkLost) and error.code == TOO_BIG:
                self._replace_rejected()
            self._suspend(now)
            self.wanted = True
            self._end_if_undeliverable()

    def close(self) -> None:
        """Stop receiving: the session has ended. Pending output may still be sent."""
        self.state = DOWN
        self.wanted = False
        self._outbound.linked = False
        self._timers.clear()
        self._forget_input()

    def _is_hopeless(self) -> bool:
        """Count a link that ended before our first handshake was answered; return whether to stop trying."""
        # If an earlier process had a response, the codec is right and the server may come back.
        if self.linked_at is not None or self.taken_over:
            return False
        self._unanswered += 1
        return self._unanswered == MAX_UNANSWERED

    def _linked(self, now: float) -> None:
        """Start using a link: send all unacknowledged messages again, unchanged."""
        self.state = UP
        self.wanted = True
        self.linked_at = now
        self._losses.linked(now)
        self._timers.stop(Timer.EXPIRY)
        self._outbound.link_up()
        self._last_received_at = self._checked_at = now
        self._sent_at_check = self._sequence.seq
        self._timers.set(Timer.SILENCE, now + self._check_interval)
        if not self._is_client:
            self._timers.set(Timer.KEEPALIVE, now + self._settings.heartbeat_interval)

    def _suspend(self, now: float) -> None:
        """Stop using the link: messages are kept for the next one."""
        if self.state == UP:
            self._count_lost(now)
        self.state = DOWN
        self._outbound.link_down()
        # The peer sends an incomplete message again.
        self._forget_input()
        for timer in (Timer.FIRST_FRAME, Timer.KEEPALIVE, Timer.SILENCE):
            self._timers.stop(timer)
        if Timer.EXPIRY not in self._timers:
            self._timers.set(Timer.EXPIRY, now + self._settings.session_grace)

    def _forget_input(self) -> None:
        """Release the received bytes of an incomplete message."""
        self._deframer = deframer(self._settings.max_frame_bytes, pass_over=True)
        self.unfinished.drop()

    def _drop(self, now: float, error: Exception) -> None:
        """Abandon a silent link without informing the peer."""
        self._suspend(now)
        self._events.append(Unlinked(error))
        self._end_if_undeliverable()

    # Messages.

    def receive(self, data: bytes, now: float, frames: int = 0) -> bool:
        """Process bytes from the link, which may end within a message. See `Session.receive`."""
        if self.state == DOWN:
            # The link was abandoned and still has input.
            return False
        # Any byte counts as life, because a long message takes time.
        self._last_received_at = now
        deframer = self._deframer
        if data:
            deframer.feed(data)
        left = frames
        more = False
        try:
            while self.state != DOWN and deframer.next():
                self._receive_message(self._decoded(deframer), deframer.end - deframer.start, now)
                left -= 1
                if left == 0:
                    more = self._deframer.pending > 0
                    break
        except (ProtocolError, LimitExceeded) as error:
            # River, State Transitions: an invalid message destroys the session.
            self._finish(error)
        if self.state == DOWN:
            return False
        if deframer.size or self.unfinished.held:
            self.unfinished.update(deframer.held, now, more)
        return more

    def progressed(self, now: float) -> None:
        """Record that output left the link, which counts as life: the peer may be waiting for it."""
        self._last_received_at = self._checked_at = now
        self.unfinished.excuse(now)
        self._losses.progressed(now)

    def _decoded(self, deframer: Deframer) -> Message:
        """Decode the deframer's current message."""
        if deframer.oversized is not None:
            return self._envelope_of(deframer.oversized)
        buffer, start, end = deframer.buffer, deframer.start, deframer.end
        message = scan(buffer, start, end, self._is_json, self._is_client, self._peer, self._us)
        if message is None:
            message = self._codec.decode_any(buffer[start:end], self._is_client)
        return message

    def _envelope_of(self, long: LongMessage) -> Message:
        """Return a message that exceeds our limit, without its payload. It ends only its stream.

        Raises:
            LimitExceeded: The kept parts of the message do not contain its stream and its number.

        """
        side = "client" if self._is_client else "server"
        limit = self._settings.max_frame_bytes
        text = f"a message of {long.size} bytes exceeds the {side}'s max_frame_bytes ({limit})"
        message = self._codec.decode_ends(long.head, long.tail)
        if message is None:
            raise LimitExceeded(f"{text}, and its beginning and end do not name its stream")
        message.fault = LimitExceeded(text)
        return message

    def _receive_message(self, message: Message, size: int, now: float) -> None:
        """Process a message. River, Handling messages for streams: both client and server."""
        if message.from_ != self._peer:
            # THREATS 57.
            raise ProtocolError(f"a message from {message.from_[:40]!r} arrived on the link of {self._peer!r}")
        if self.state == HANDSHAKING:
            self._receive_answer(message, now)
            return
        sequence = self._sequence
        if message.seq < sequence.ack:
            # River, Transparent reconnections: it was handled already.
            return
        if message.seq > sequence.ack or message.ack > sequence.seq:
            # THREATS 58: messages were lost, or never sent. Both sides send theirs again over a new link.
            self._out_of_order(message, now)
            return
        sequence.ack += 1
        self.confirmed = True
        if self.on_probation and (message.ack or message.control_flags & ACK):
            # A heartbeat also shows it, if a checkpoint holds back the acknowledgement.
            self.on_probation = False
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
        """Handle a server's response to our handshake."""
        rejection = self._handshake.check_response(message)
        if rejection is not None:
            self._finish(rejection)
            return
        is_first = self.linked_at is None
        self._linked(now)
        if is_first:
            self._handshake.established()

    def _out_of_order(self, message: Message, now: float) -> None:
        """Abandon the link after a message that is not the next one."""
        if self.taken_over and message.ack > self._sequence.seq:
            text = f"{self._peer} has handled messages that the earlier process sent after its checkpoint"
            self._finish(ResumeRejected(text))
            return
        self._suspend(now)
        self.wanted = False
        self._end_if_undeliverable()

    # Time.

    def handle_timer(self, timer: Timer, now: float, full: bool) -> None:
        """Handle an expired timer.

        Args:
            timer: The timer.
            now: The time.
            full: Whether reading from the link is paused, because the session or its account is full.

        """
        settings = self._settings
        if timer is Timer.KEEPALIVE:
            self._timers.set(Timer.KEEPALIVE, now + settings.heartbeat_interval)
            # Even if the client has acknowledged nothing: it had time to learn of the session.
            self.on_probation = False
            self._outbound.send_heartbeat()
        elif timer is Timer.SILENCE:
            self._check_silence(now, full)
        elif timer is Timer.FIRST_FRAME and not self._is_client:
            self._handshake.rehandshake_expired()
        elif timer is Timer.FIRST_FRAME:
            limit = settings.handshake_timeout
            self._drop(now, LinkLost(f"{self._peer} did not answer the handshake within {limit:g} s"))
        elif timer is Timer.FRAME and self.unfinished.overdue(now):
            limit = settings.frame_timeout
            self._drop(now, KeepaliveTimeout(f"{self._peer} stopped within a message for frame_timeout ({limit:g} s)"))
        elif timer is Timer.EXPIRY:
            limit = settings.session_grace
            self._finish(LinkLost(f"the session was without a connection for session_grace ({limit:g} s)"))

    def _check_silence(self, now: float, full: bool) -> None:
        """Abandon the link if the peer is silent. River, Detecting phantom disconnects."""
        if full:
            # Reading is paused, so silence proves nothing.
            self._last_received_at = now
        is_unanswered = self._last_received_at > self._checked_at and self._sequence.seq == self._sent_at_check
        if self._is_client and (full or is_unanswered):
            # The server's heartbeats are unread or wait after a long message, so send one without being asked.
            self._outbound.ack_heartbeat()
        self._checked_at = now
        self._sent_at_check = self._sequence.seq
        deadline = self._last_received_at + self._silence_limit
        if now < deadline:
            next_check = now + self._check_interval if self._is_client else inf
            self._timers.set(Timer.SILENCE, min(deadline, next_check))
        else:
            silence = now - self._last_received_at
            self._drop(now, KeepaliveTimeout(f"nothing received from {self._peer} for {silence:.1f} s"))

    # Messages that cannot be delivered.

    def _count_lost(self, now: float) -> None:
        """Count a lost link, unless the oldest message was acknowledged over it."""
        sequence = self._sequence
        self._losses.deliver(sequence.first)
        if sequence.first < sequence.seq:
            self._losses.lost(now, sequence.largest)

    def _end_if_undeliverable(self) -> None:
        """End the session if its links repeatedly fail to deliver its oldest message."""
        if self._losses.too_many:
            # The oldest may be a heartbeat that arrived, and only its acknowledgement was lost.
            size = self._sequence.largest
            text = f"a message of {size} bytes to {self._peer} was sent repeatedly, and each connection was lost"
            self._finish(LinkLost(f"{text} before it was acknowledged; send smaller messages, or fix the link"))

    def _replace_rejected(self) -> None:
        """Replace the largest messages, because the peer closed the link for the size of a message."""
        sequence = self._sequence
        size = sequence.largest - PREFIX_BYTES
        if size < MIN_REJECTED_BYTES:
            return
        self._outbound.max_sent_bytes = size - 1
        self.excused = True
        text = f"{self._peer} rejected a message of {size} bytes as too large (WebSocket close {TOO_BIG})"
        for seq, data in enumerate(sequence.unacked, sequence.first):
            if len(data) - PREFIX_BYTES >= size:
                message = self._codec.decode(data, PREFIX_BYTES)
                stream = self._streams.named(message.stream_id)
                reason = f"{text}; send less at once"
                self._outbound.replace(seq, message, reason)
                if stream is not None:
                    self._inbound.refused(stream, reason)
