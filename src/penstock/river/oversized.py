"""Messages that one side does not take because of their size: each costs its stream, and the session goes on.

What comes in is refused by its envelope, which is read from the message's ends. What went out and is refused by the
peer, by a WebSocket's Close 1009, has its place in the sequence taken by a small message, because nobody has it yet.
"""

from __future__ import annotations

from typing import Final

from ..core.halves import DONE
from ..errors import Invalid, LimitExceeded, SetupRejected
from ..events import Canceled
from ..wire.framing import LongMessage
from ..wire.river.codec import ACK, CANCEL, PREFIX_BYTES
from ..wire.river.codec import OPEN as OPENS
from ..wire.river.message import Message
from .codes import CANCELED, INVALID, UNCAUGHT, refusal
from .connection import HANDSHAKING
from .inbound import Inbound

__all__ = ["TOO_BIG", "Oversized"]

TOO_BIG: Final = 1009
"""RFC 6455, 7.4.1: the code by which a peer closes a WebSocket over which a message came that is too big for it."""
BELIEVED_BYTES: Final = 4_096
"""No peer refuses smaller messages for their size: then the close had another reason."""


class Oversized(Inbound):
    """A session that knows what to do about messages that are too large."""

    def _envelope_of(self, passed: LongMessage) -> Message:
        """Return a message that is too long for us, without its payload.

        Raises:
            LimitExceeded: Its stream, or its number, cannot be found in what is kept of it.

        """
        side = "client" if self._is_client else "server"
        text = f"a message of {passed.size} bytes exceeds the {side}'s max_frame_bytes ({self._max_frame_bytes})"
        message = self._codec.decode_ends(passed.head, passed.tail)
        if message is None:
            raise LimitExceeded(f"{text}, and whose it is cannot be read from its beginning and end")
        message.fault = LimitExceeded(text)
        return message

    def _refused_by_peer(self) -> None:
        """Take a link's end by which the peer refused a message for its size: the largest one certainly is.

        The peer has not taken it, so its number can still be given to another message.
        """
        if self._link == HANDSHAKING:
            self._finish(SetupRejected(f"{self.peer} refused the handshake as too large (WebSocket close {TOO_BIG})"))
            return
        sequence = self._sequence
        size = max((len(message) for message in sequence.unacked), default=0) - PREFIX_BYTES
        if size < BELIEVED_BYTES:
            return
        self._max_sent_bytes = size - 1
        self.excused = True
        for seq, data in enumerate(sequence.unacked, sequence.first):
            if len(data) - PREFIX_BYTES >= size:
                message = self._codec.decode(data, PREFIX_BYTES)
                text = f"{self.peer} refused a message of {size} bytes as too large (WebSocket close {TOO_BIG})"
                self._replace(seq, message, f"{text}; send less at once")

    def _replace(self, seq: int, message: Message, text: str) -> None:
        """Put a small message in the place of one that the peer does not take, and fail its stream."""
        stream = self._streams.named(message.stream_id)
        name, flags = self._codec.encoded(message.stream_id), CANCEL
        if self._is_client and message.control_flags & OPENS:
            # To the server there is no such stream yet.
            name, flags, body = self._heartbeat, ACK, self._codec.heartbeat
        elif self._is_client:
            body = refusal(self._codec, CANCELED, "an item is too large for the server")
        else:
            body = refusal(self._codec, UNCAUGHT, text)
        ack = self._sequence.reported()
        self._sequence.replace(seq, self._writer.message(seq, ack, name, flags, body))
        if stream is None:
            return
        if self._is_client:
            self._end(stream, Invalid(INVALID, text))
        else:
            self._streams.finish(stream.name)
            stream.inbound = stream.outbound = DONE
            self._forget(stream)
            self._events.append(Canceled(stream.number, True))
