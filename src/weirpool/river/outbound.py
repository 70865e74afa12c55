"""Sends messages: numbers them, keeps them until they are acknowledged, and writes them while there is a link.

River, Transparent reconnections. Messages are kept encoded, because they are sent again unchanged.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import Any, Final

from ..account import ITEM_BYTES, Account
from ..core.halves import DONE, OPEN
from ..core.outbox import Outbox
from ..errors import (
    CreditExceeded,
    LeaseMissing,
    LimitExceeded,
    LocalError,
    ProtocolError,
    StreamClosed,
    UnsupportedKind,
)
from ..events import CreditGranted, LeaseGranted
from ..kinds import Kind
from ..payload import Payload
from ..wire.river.codec import ACK, CANCEL, CLOSE, PREFIX_BYTES
from ..wire.river.codec import OPEN as OPENS
from ..wire.river.message import Message
from ..wire.river.scanning import is_body
from ..wire.river.writing import Writer
from .codes import CANCELED, ITEM_ERROR, UNCAUGHT, failure_of, refusal, size_limit, too_large
from .identity import Side
from .streams import RiverStream
from .tracing import tracing_of

__all__ = ["GOODBYE", "UNBOOKED_BYTES", "Outbound", "Sequence"]

GOODBYE: Final = "goodbye"
"""The stream of a server's last message. It is never opened; clients that do not know it MUST ignore it."""
ACK_REQUESTS: Final = 8
"""A server sends a heartbeat, which requests an acknowledgement, after an eighth of what may be kept. For a fast
stream, one heartbeat per second is too few."""
HEARTBEAT: Final = "heartbeat"
LEASE_SECONDS: Final = 1.0
UNBOOKED_BYTES: Final = 4_096
OPENING: Final = 0
"""Stands for a new stream among the streams that wait for room."""
_FIRE, _STREAM, _UPLOAD, _CHANNEL = map(int, (Kind.FIRE, Kind.STREAM, Kind.UPLOAD, Kind.CHANNEL))


class Sequence:
    """The numbers of messages, and the unacknowledged messages of one session.

    Args:
        max_messages: The maximum number of unacknowledged messages.
        max_bytes: The maximum of their bytes.
        account: Counts them for the connection.

    Attributes:
        seq: The number of the next message to send.
        ack: The number of the next expected message.
        covered: The number to acknowledge instead, which the last checkpoint covers; -1: there are no checkpoints.
        reserved: With checkpoints, the number from which on the session must not send acknowledgements.
        private: The number after the last message that may contain secrets. Only heartbeats never do.
        unacked_bytes: The size of the unacknowledged messages, with their length prefixes.
        room: How many items may be sent now. Half of the limits is kept free for messages that cannot wait.

    """

    def __init__(self, max_messages: int, max_bytes: int, account: Account | None = None) -> None:
        self._account = account
        self._booked = 0
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        self._unacked: deque[bytes] = deque()
        self._kept = 0
        self.seq = self.ack = 0
        self.covered = -1
        self.reserved = 0
        self.private = 0
        self.unacked_bytes = 0
        self.room = 0
        self._measure()

    def reported(self) -> int:
        """Return the number to acknowledge. The peer drops the messages before it."""
        return self.ack if self.covered < 0 else self.covered

    @property
    def first(self) -> int:
        """The number of the oldest unacknowledged message, or of the next one: `nextSentSeq` of a handshake."""
        return self.seq - self._kept

    @property
    def largest(self) -> int:
        """The size of the largest unacknowledged message; 0: there is none."""
        return max(map(len, self._unacked), default=0)

    @property
    def unacked(self) -> list[bytes]:
        """The unacknowledged messages, in order."""
        return list(self._unacked)

    def since(self, number: int) -> list[bytes]:
        """Return the unacknowledged messages from `number` on, in order."""
        count = min(self.seq - number, self._kept)
        found = list(islice(reversed(self._unacked), max(0, count)))
        found.reverse()
        return found

    def over(self) -> bool:
        """Return whether a limit is exceeded (THREATS 59)."""
        return self._kept > self._max_messages or self.unacked_bytes > self._max_bytes

    def sent(self, message: bytes) -> None:
        """Keep the encoded message with the number `seq` (THREATS 60: encoding comes before numbering)."""
        self._unacked.append(message)
        self._kept += 1
        self.unacked_bytes += len(message)
        self.seq += 1
        self._measure()

    def replace(self, seq: int, message: bytes) -> None:
        """Replace the message `seq`, which the peer has not accepted, by `message`."""
        index = seq - self.first
        self.unacked_bytes += len(message) - len(self._unacked[index])
        self._unacked[index] = message
        self._measure()

    def acknowledged(self, ack: int) -> None:
        """Drop the messages before the number `ack`.

        Raises:
            ProtocolError: Some of them were never sent.

        """
        if ack > self.seq:
            raise ProtocolError(f"the peer acknowledges {ack} messages, but only {self.seq} were sent")
        count = ack - (self.seq - self._kept)
        if count <= 0:
            return
        self._kept -= count
        for _ in range(count):
            self.unacked_bytes -= len(self._unacked.popleft())
        self._measure()

    def _measure(self) -> None:
        room = self._max_messages // 2 - self._kept
        self.room = room if room > 0 and 2 * self.unacked_bytes < self._max_bytes else 0
        if self._account is not None:
            held = self.unacked_bytes + ITEM_BYTES * self._kept
            # Booking costs more than the rest of this, which each message needs, so the account lags behind a little.
            if abs(held - self._booked) > UNBOOKED_BYTES or (self._booked and not held):
                self._account.book_retained(held - self._booked)
                self._booked = held


class Outbound:
    """The sending part of a session.

    Args:
        side: The side and its peer.
        tag: The prefix of ids generated here.

    Attributes:
        writer: Encodes the messages.
        sequence: Their numbers, and the unacknowledged messages.
        outbox: The output for the link.
        linked: Whether messages are written immediately. Without a link, they are only kept.
        v1_1: Whether the peer speaks v1.1.
        starved: The streams that wait for room, the one that has used it up first, and `OPENING`.
        max_sent_bytes: The size of the largest message that the peer is known to accept.

    """

    def __init__(self, side: Side, tag: str) -> None:
        settings = side.settings
        self._settings = settings
        self._codec = side.codec
        self._is_json = side.codec.is_json
        self._is_client = side.is_client
        self._peer = side.peer
        self._heartbeat = side.codec.encoded(HEARTBEAT)
        self._streams = side.streams
        self._events = side.events
        self._finish = side.finish
        # Messages and bytes of both sides since the last requested acknowledgement, and their limits.
        self._uncounted = self._uncounted_bytes = 0
        self._request_after = -(-settings.max_unacked // ACK_REQUESTS)
        self._request_after_bytes = -(-settings.resume_bytes // ACK_REQUESTS)
        self._room_to_wake = -(-settings.max_unacked // 4)  # Waiting streams are not resumed for each item.
        self.writer = Writer(side.codec, side.us, side.peer, tag)
        self.sequence = Sequence(settings.max_unacked, settings.resume_bytes, side.account)
        self.outbox = Outbox()
        self.linked = self.v1_1 = False
        self.starved: dict[int, None] = {}
        self.max_sent_bytes = size_limit(settings)[0]

    # The link.

    def link_up(self) -> None:
        """Send all unacknowledged messages again, unchanged, and write later messages immediately."""
        self.linked = True
        for message in self.sequence.unacked:
            self.outbox.write(message)

    def link_down(self) -> None:
        """Stop writing. Messages are kept, including those in the outbox."""
        self.linked = False
        self.outbox.clear()

    # Messages.

    def send_message(
        self,
        name: bytes,
        flags: int,
        body: bytes,
        wrap_ok: bool = False,
        route: str | None = None,
        tracing: dict[str, Any] | None = None,
    ) -> None:
        """Send a message of the stream `name`, or keep it for the next link; name and body are encoded.

        With `wrap_ok`, the body is wrapped as ``{ok: true, payload}``.

        Raises:
            LocalError: It cannot be encoded, or is too large. Nothing has changed (THREATS 60).

        """
        sequence = self.sequence
        if self.v1_1 and flags & (CLOSE | CANCEL):
            # v1.1 has one bit to close and cancel, and reads its body only if that is the only response.
            stream = self._streams.named(self._codec.value(name, str))
            if (stream is None or stream.answers_items) and body != self._codec.close:
                self.send_message(name, flags & ~(CLOSE | CANCEL), body, wrap_ok)
                body, wrap_ok = self._codec.close, False
            flags = flags & ~CLOSE | CANCEL
        data = self.writer.message(sequence.seq, sequence.reported(), name, flags, body, wrap_ok, route, tracing)
        size = len(data) - PREFIX_BYTES
        if size > self.max_sent_bytes:
            raise too_large(size, self._settings, self._is_client, self._peer, self.max_sent_bytes)
        sequence.sent(data)
        if flags != ACK:
            sequence.private = sequence.seq
        if self.linked:
            self.outbox.write(data)
        if sequence.over():
            settings = self._settings
            kept = f"max_unacked ({settings.max_unacked}) or resume_bytes ({settings.resume_bytes})"
            self._finish(LimitExceeded(f"{self._peer} acknowledges too little: more than {kept} are unacknowledged"))
        elif flags != ACK:
            self.count_message(size)

    # Verbs.

    def open(
        self, new_id: Callable[[], str], kind: Kind, route: str, payload: Payload, credit: int, done: bool
    ) -> RiverStream:
        """Open a stream whose id `new_id` returns. See :meth:`weirpool.session.Session.open`."""
        if not self._is_client:
            raise UnsupportedKind("River: only clients open streams")
        if kind == _FIRE:
            raise UnsupportedKind("River does not support fire requests; use a call")
        if credit < 1 and (kind == _STREAM or kind == _CHANNEL):
            raise LocalError(f"{kind.name.lower()} needs a credit of at least 1, not {credit}")
        body = self._body_of(payload)
        tracing = None if payload.metadata is None else tracing_of(payload.metadata)
        if self.sequence.room == 0:
            self.starved[OPENING] = None
            raise LeaseMissing(f"{self._peer} has not acknowledged earlier messages; wait for LeaseGranted")
        name = new_id()
        encoded = self.writer.name(name)
        # River, RPC and Subscription; the reference opens both with the closed bit.
        closed = done or not (kind == _UPLOAD or kind == _CHANNEL)
        if kind == _STREAM and self._settings.close_subscriptions:
            closed = False
        opened_seq = self.sequence.seq
        self.send_message(encoded, OPENS | CLOSE if closed else OPENS, body, False, route, tracing)
        stream = self._streams.open(name, encoded, kind, OPEN, DONE if closed else OPEN)
        stream.opened_seq = opened_seq
        stream.granted = credit if stream.answers_items else 1
        return stream

    def sending(self, stream_id: int) -> RiverStream:
        """Return a stream whose outbound half is open.

        Raises:
            StreamClosed: Our half has ended.

        """
        stream = self._streams.by_number.get(stream_id)
        if stream is None or stream.outbound != OPEN:
            raise StreamClosed(f"stream {stream_id}: our half has ended")
        return stream

    def send(self, stream_id: int, payload: Payload, done: bool) -> RiverStream | None:
        """Send an item. Return the stream if it was the last one.

        Raises:
            StreamClosed: Our half has ended.
            CreditExceeded: The peer has not acknowledged enough.

        """
        stream = self.sending(stream_id)
        done = done or not (stream.sends_items or stream.answers_items)
        # The last item may always be sent, because a caller waits for it.
        if not done and self.sequence.room == 0:
            self.starved[stream.number] = None
            raise CreditExceeded(f"stream {stream_id}: the peer has not acknowledged enough; wait for CreditGranted")
        is_error = not self._is_client and payload.metadata == ITEM_ERROR
        body = payload.data if is_error else self._body_of(payload)
        self.send_message(stream.encoded, CLOSE if done else 0, body, not self._is_client and not is_error)
        return stream if done else None

    def fail(self, stream: RiverStream, error: Exception) -> None:
        """Send the error that ended a stream."""
        if not self._is_client:
            if stream.outbound == OPEN:
                flags, body = failure_of(self._codec, error)
                self.send_message(stream.encoded, flags, body)
            self._streams.finish(stream.name)
        elif stream.inbound == OPEN:
            self.cancel(stream, "the client canceled the request")
        elif stream.outbound == OPEN:
            # The server's half has ended, so there is nothing to cancel.
            self.send_message(stream.encoded, CLOSE, self._codec.close)

    def stop(self, stream: RiverStream, reason: str) -> None:
        """End a stream whose items a client no longer wants."""
        if stream.kind == _STREAM and stream.outbound == OPEN:
            # River, Subscription: either side ends it. What the server sends until its answer is discarded.
            self.send_message(stream.encoded, CLOSE, self._codec.close)
        else:
            self.cancel(stream, reason)

    def cancel(self, stream: RiverStream, reason: str, code: str = CANCELED) -> None:
        """Cancel both halves of a stream."""
        self.send_message(stream.encoded, CANCEL, refusal(self._codec, code, reason))

    def _body_of(self, payload: Payload) -> bytes:
        """Return `payload` as a body. Empty data becomes an empty object on a client, null on a server."""
        if payload.metadata is not None:
            # Only checks it: a handler may return its request with a trace context, which a response cannot carry.
            tracing_of(payload.metadata)
        data = payload.data
        if not data:
            return self._codec.empty if self._is_client else self._codec.null
        return data if is_body(data, self._is_json) else self._codec.body(data)

    def send_control(self, body: bytes) -> None:
        """Send a message of a handshake, which has no number and is not kept."""
        writer = self.writer
        self.outbox.write(writer.message(0, 0, self._codec.encoded(writer.new_id()), 0, body))

    # Acknowledgements.

    def count_message(self, size: int) -> None:
        """Count a message of either side. A server requests an acknowledgement before the limits are reached."""
        self._uncounted += 1
        self._uncounted_bytes += size
        many = self._uncounted >= self._request_after or self._uncounted_bytes >= self._request_after_bytes
        if many and not self._is_client and self.linked:
            self.send_heartbeat()

    def send_heartbeat(self) -> None:
        """Send a heartbeat. River, Detecting phantom disconnects: it has a number like any message."""
        self._uncounted = self._uncounted_bytes = 0
        self.send_message(self._heartbeat, ACK, self._codec.heartbeat)

    def ack_heartbeat(self) -> None:
        """Send an acknowledgement, unless the numbers that a checkpoint reserved for it are used up."""
        sequence = self.sequence
        if sequence.covered < 0 or sequence.seq < sequence.reserved:
            self.send_heartbeat()

    def received(self, ack: int, size: int) -> None:
        """Drop the messages before `ack`. Count the message of `size` bytes that had it; -1: do not count it."""
        sequence = self.sequence
        sequence.acknowledged(ack)
        if self.starved and sequence.room >= self._room_to_wake:
            self._wake(sequence.room)
        if size >= 0:
            self.count_message(size)

    def _wake(self, room: int) -> None:
        """Report room to the streams that wait for it, and to callers that wait to open one."""
        starved, self.starved = self.starved, {}
        # The first ones may use up the room, which all share. It is the turn of those after the last user.
        order = sorted(starved)
        place = order.index(next(iter(starved))) + 1
        self._events += [CreditGranted(each, room) for each in order[place:] + order[:place] if each != OPENING]
        if OPENING in starved:
            self._events.append(LeaseGranted(room, LEASE_SECONDS, None))

    # Messages that the peer rejects.

    def replace(self, seq: int, message: Message, reason: str) -> None:
        """Replace `message`, which the peer rejected as too large, by a small one with the same number."""
        name, flags = self._codec.encoded(message.stream_id), CANCEL
        if self._is_client and message.control_flags & OPENS:
            # The server does not know the stream yet.
            name, flags, body = self._heartbeat, ACK, self._codec.heartbeat
        elif self._is_client:
            body = refusal(self._codec, CANCELED, "an item is too large for the server")
        else:
            body = refusal(self._codec, UNCAUGHT, reason)
        self.sequence.replace(seq, self.writer.message(seq, self.sequence.reported(), name, flags, body))
