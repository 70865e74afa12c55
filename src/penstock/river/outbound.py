"""What a session sends: messages are numbered, kept until they are acknowledged, and written while there is a link.

River, Transparent reconnections. A message is kept as the bytes that were sent, because it is sent again as it was.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import Any, Final

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
from .codes import CANCELED, UNCAUGHT, failure_of, refusal, too_large
from .identity import Side
from .streams import RiverStream
from .tracing import tracing_of

__all__ = ["GOODBYE", "Outbound", "Sequence"]

GOODBYE: Final = "goodbye"
"""The stream of a server's last message. It is open nowhere, and clients that do not know it MUST ignore it."""
PROMPTS: Final = 8
"""A server sends a heartbeat, which asks for an acknowledgement, after this part of what may be kept. Heartbeats once a
second would come too late for a fast stream."""
HEARTBEAT: Final = "heartbeat"
LEASE_SECONDS: Final = 1.0
OPENING: Final = 0
"""Stands among the streams that wait for room: somebody waits to open another one."""
_FIRE = int(Kind.FIRE)
_STREAM = int(Kind.STREAM)
_UPLOAD = int(Kind.UPLOAD)
_CHANNEL = int(Kind.CHANNEL)


class Sequence:
    """The bookkeeping of one session.

    Args:
        max_messages: Unacknowledged messages at most.
        max_bytes: Their bytes at most.

    Attributes:
        seq: The number of the next message that is sent.
        ack: The number of the next message that is expected.
        covered: What the peer is told instead, once somebody keeps checkpoints: it covers no more. -1: nobody does.
        reserved: The number at which the session must not begin to speak by itself, once somebody keeps checkpoints.
        private: The number behind the last message that may hold secrets; only heartbeats hold none for sure.
        octets: Bytes that are not acknowledged, with the lengths before them.
        room: How many items may be sent now. Half of what is kept at most is left to what cannot wait: answers.

    """

    def __init__(self, max_messages: int, max_bytes: int) -> None:
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        self._unacked: deque[bytes] = deque()
        self._kept = 0
        self.seq = 0
        self.ack = 0
        self.covered = -1
        self.reserved = 0
        self.private = 0
        self.octets = 0
        self.room = 0
        self._measure()

    def reported(self) -> int:
        """Return what the peer is told that has come: it forgets what lies before."""
        return self.ack if self.covered < 0 else self.covered

    @property
    def first(self) -> int:
        """The oldest message that is not acknowledged, or the next one: `nextSentSeq` of a handshake."""
        return self.seq - self._kept

    @property
    def largest(self) -> int:
        """The size of the largest message that is not acknowledged; 0: there is none."""
        return max(map(len, self._unacked), default=0)

    @property
    def unacked(self) -> list[bytes]:
        """What is not acknowledged, in order."""
        return list(self._unacked)

    def since(self, number: int) -> list[bytes]:
        """Return what is not acknowledged and has `number` or a later one, in order."""
        count = min(self.seq - number, self._kept)
        found = list(islice(reversed(self._unacked), max(0, count)))
        found.reverse()
        return found

    def over(self) -> bool:
        """Return whether more is kept than may be (THREATS 59)."""
        return self._kept > self._max_messages or self.octets > self._max_bytes

    def sent(self, message: bytes) -> None:
        """Keep a message that has the number `seq`, encoded (THREATS 60: what cannot be encoded has none)."""
        self._unacked.append(message)
        self._kept += 1
        self.octets += len(message)
        self.seq += 1
        self._measure()

    def replace(self, seq: int, message: bytes) -> None:
        """Keep `message` in the place of the one with that number, which the peer has not taken."""
        index = seq - self.first
        self.octets += len(message) - len(self._unacked[index])
        self._unacked[index] = message
        self._measure()

    def acknowledged(self, ack: int) -> None:
        """Forget the messages whose number is less than `ack`.

        Raises:
            ProtocolError: Some of them were never sent.

        """
        if ack > self.seq:
            raise ProtocolError(f"the peer acknowledges {ack} messages, and {self.seq} were sent")
        count = ack - (self.seq - self._kept)
        if count <= 0:
            return
        self._kept -= count
        for _ in range(count):
            self.octets -= len(self._unacked.popleft())
        self._measure()

    def _measure(self) -> None:
        room = self._max_messages // 2 - self._kept
        self.room = room if room > 0 and 2 * self.octets < self._max_bytes else 0


class Outbound:
    """The sending part of a session.

    Args:
        side: Who sends, to whom, and how.
        tag: The first characters of all ids made here.

    Attributes:
        writer: Encodes the messages.
        sequence: Their numbers, and those that are not acknowledged.
        outbox: The output for the link.
        linked: Whether messages go out at once. Without a link they wait.
        v1_1: The peer speaks v1.1.
        starved: The streams that wait for room, or `OPENING`.
        max_sent_bytes: The largest message that the peer accepts, as far as that is known.

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
        # Messages and bytes of both sides since the peer was last asked to acknowledge, and when to ask again.
        self._uncounted = 0
        self._uncounted_bytes = 0
        self._prompt_after = -(-settings.max_unacked // PROMPTS)
        self._prompt_after_bytes = -(-settings.resume_bytes // PROMPTS)
        # Streams that wait for room hear of it from here on, so that they do not wake for each item.
        self._ample = -(-settings.max_unacked // 4)
        self.writer = Writer(side.codec, side.us, side.peer, tag)
        self.sequence = Sequence(settings.max_unacked, settings.resume_bytes)
        self.outbox = Outbox()
        self.linked = False
        self.v1_1 = False
        self.starved: set[int] = set()
        self.max_sent_bytes = settings.max_frame_bytes

    # The link.

    def link_up(self) -> None:
        """Send all that is not acknowledged again, as it was; further messages go out at once."""
        self.linked = True
        for message in self.sequence.unacked:
            self.outbox.write(message)

    def link_down(self) -> None:
        """Keep messages from now on. Nothing is lost: those in the outbox are kept as well."""
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
        """Send a message of the stream `name` at once, or when there is a link; name and body are encoded.

        The body is wrapped as ``{ok: true, payload}`` where `wrap_ok` says so.

        Raises:
            LocalError: It cannot be encoded, or is too large. Nothing has changed (THREATS 60).

        """
        sequence = self.sequence
        if self.v1_1 and flags & (CLOSE | CANCEL):
            # v1.1 closes and cancels by one bit, and looks at what comes with it only where it is the one answer.
            stream = self._streams.named(self._codec.value(name, str))
            if (stream is None or stream.answers_items) and body != self._codec.close:
                self.send_message(name, flags & ~(CLOSE | CANCEL), body, wrap_ok)
                body, wrap_ok = self._codec.close, False
            flags = flags & ~CLOSE | CANCEL
        data = self.writer.message(sequence.seq, sequence.reported(), name, flags, body, wrap_ok, route, tracing)
        size = len(data) - PREFIX_BYTES
        if size > self.max_sent_bytes:
            raise too_large(size, self._settings.max_frame_bytes, self._is_client, self._peer, self.max_sent_bytes)
        sequence.sent(data)
        if flags != ACK:
            sequence.private = sequence.seq
        if self.linked:
            self.outbox.write(data)
        if sequence.over():
            settings = self._settings
            kept = f"max_unacked ({settings.max_unacked}) or resume_bytes ({settings.resume_bytes})"
            self._finish(LimitExceeded(f"{self._peer} acknowledges nothing: more than {kept} wait for it"))
        elif flags != ACK:
            self.count_message(size)

    # Verbs.

    def open(
        self, new_id: Callable[[], str], kind: Kind, route: str, payload: Payload, credit: int, done: bool
    ) -> RiverStream:
        """Open a stream whose id `new_id` returns. See :meth:`penstock.session.Session.open`."""
        if not self._is_client:
            raise UnsupportedKind("River: streams are opened by clients alone")
        if kind == _FIRE:
            raise UnsupportedKind("River has no way to carry fire; use a call")
        if credit < 1 and (kind == _STREAM or kind == _CHANNEL):
            raise LocalError(f"{kind.name.lower()} needs a credit of at least 1, not {credit}")
        body = self._body_of(payload)
        tracing = None if payload.metadata is None else tracing_of(payload.metadata)
        if self.sequence.room == 0:
            self.starved.add(OPENING)
            raise LeaseMissing(f"{self._peer} has not acknowledged what was sent before; wait until it has")
        name = new_id()
        encoded = self.writer.name(name)
        closed = done or (kind != _UPLOAD and kind != _CHANNEL)
        # River, RPC and Subscription; the reference opens both with the closed bit.
        self.send_message(encoded, OPENS | CLOSE if closed else OPENS, body, False, route, tracing)
        stream = self._streams.open(name, encoded, kind, OPEN, DONE if closed else OPEN)
        stream.granted = credit if stream.answers_items else 1
        return stream

    def sending(self, stream_id: int) -> RiverStream:
        """Return a stream in which we may still send.

        Raises:
            StreamClosed: Our half is over.

        """
        stream = self._streams.by_number.get(stream_id)
        if stream is None or stream.outbound != OPEN:
            raise StreamClosed(f"stream {stream_id}: our half is over")
        return stream

    def send(self, stream_id: int, payload: Payload, done: bool) -> RiverStream | None:
        """Send an item. Return the stream if it was the last one.

        Raises:
            StreamClosed: Our half is over.
            CreditExceeded: The peer has not acknowledged enough.

        """
        stream = self.sending(stream_id)
        done = done or not (stream.sends_items or stream.answers_items)
        # The last one may always go: somebody waits for it.
        if not done and self.sequence.room == 0:
            self.starved.add(stream.number)
            raise CreditExceeded(
                f"stream {stream.number}: the peer has not acknowledged enough; wait for CreditGranted"
            )
        self.send_message(stream.encoded, CLOSE if done else 0, self._body_of(payload), not self._is_client)
        return stream if done else None

    def fail(self, stream: RiverStream, error: Exception) -> None:
        """Tell the peer that a stream has ended with an error."""
        if not self._is_client:
            if stream.outbound == OPEN:
                flags, body = failure_of(self._codec, error)
                self.send_message(stream.encoded, flags, body)
            self._streams.finish(stream.name)
        elif stream.inbound == OPEN:
            self.cancel(stream, "the client gave the request up")
        elif stream.outbound == OPEN:
            # The server has sent its whole answer: there is nothing left to cancel.
            self.send_message(stream.encoded, CLOSE, self._codec.close)

    def cancel(self, stream: RiverStream, reason: str, code: str = CANCELED) -> None:
        """Tell the peer that a stream has ended on this side."""
        self.send_message(stream.encoded, CANCEL, refusal(self._codec, code, reason))

    def _body_of(self, payload: Payload) -> bytes:
        """Return `payload` as a body. Without data it is an object without fields, or null."""
        if payload.metadata is not None:
            # A handler may send back the request with its trace, which an answer cannot carry.
            tracing_of(payload.metadata)
        data = payload.data
        if not data:
            return self._codec.empty if self._is_client else self._codec.null
        return data if is_body(data, self._is_json) else self._codec.body(data)

    def send_control(self, body: bytes) -> None:
        """Send a message of a handshake. It has no number, and is not kept."""
        writer = self.writer
        self.outbox.write(writer.message(0, 0, self._codec.encoded(writer.new_id()), 0, body))

    # Acknowledgements.

    def count_message(self, size: int) -> None:
        """Count a message of either side. A server asks for an acknowledgement in time."""
        self._uncounted += 1
        self._uncounted_bytes += size
        many = self._uncounted >= self._prompt_after or self._uncounted_bytes >= self._prompt_after_bytes
        if many and not self._is_client and self.linked:
            self.send_heartbeat()

    def send_heartbeat(self) -> None:
        """Send a heartbeat. River, Detecting phantom disconnects: it is a message like any other."""
        self._uncounted = self._uncounted_bytes = 0
        self.send_message(self._heartbeat, ACK, self._codec.heartbeat)

    def ack_heartbeat(self) -> None:
        """Acknowledge what has come, unless the numbers that a checkpoint reserves for this are used up."""
        sequence = self.sequence
        if sequence.covered < 0 or sequence.seq < sequence.reserved:
            self.send_heartbeat()

    def received(self, ack: int, size: int) -> None:
        """Forget the messages before number `ack`, which came with one of `size` bytes; -1: that one does not count."""
        sequence = self.sequence
        sequence.acknowledged(ack)
        if self.starved and sequence.room >= self._ample:
            self._wake(sequence.room)
        if size >= 0:
            self.count_message(size)

    def _wake(self, room: int) -> None:
        """Tell the streams that wait for it that there is room, and whoever waits to open one."""
        starved, self.starved = self.starved, set()
        self._events += [CreditGranted(number, room) for number in sorted(starved - {OPENING})]
        if OPENING in starved:
            self._events.append(LeaseGranted(room, LEASE_SECONDS, None))

    # Messages that the peer refuses.

    def replace(self, seq: int, message: Message, reason: str) -> None:
        """Put a small message in the place of `message`, which the peer does not take for its size.

        The peer has not taken it, so its number is free for another one.
        """
        name, flags = self._codec.encoded(message.stream_id), CANCEL
        if self._is_client and message.control_flags & OPENS:
            # To the server there is no such stream yet.
            name, flags, body = self._heartbeat, ACK, self._codec.heartbeat
        elif self._is_client:
            body = refusal(self._codec, CANCELED, "an item is too large for the server")
        else:
            body = refusal(self._codec, UNCAUGHT, reason)
        sequence = self.sequence
        sequence.replace(seq, self.writer.message(seq, sequence.reported(), name, flags, body))
