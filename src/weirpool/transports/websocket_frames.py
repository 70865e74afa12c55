"""WebSocket frames: RFC 6455, section 5, without sockets.

The library `websockets` would take 9 microseconds for each received message and 5 for each sent one. Each item of a
stream is a message, so this would be most of its cost. Here it takes about 1 microsecond.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

from websockets.exceptions import ProtocolError as CloseError
from websockets.frames import Close, CloseCode, Opcode

from ..wire.framing import LongMessage
from .base import BEGINNING_BYTES
from .websocket_runs import read_run

try:
    from websockets.speedups import apply_mask
except ImportError:  # The library was installed without a C compiler.
    from websockets.utils import apply_mask

__all__ = ["FrameReader", "control_frame", "message_frames"]

FIN: Final = 0x80
MASKED: Final = 0x80
RESERVED: Final = 0x70
OPCODE: Final = 0x0F
CONTROL: Final = 0x08
LENGTH: Final = 0x7F
SHORT: Final = 125
"""The maximum payload whose length fits into the second byte, and the maximum payload of control frames."""
LENGTH_16: Final = 126
LENGTH_64: Final = 127
WHOLE: Final = FIN | Opcode.BINARY
"""The first byte of a binary message in one frame: of nearly every message."""
KNOWN: Final = frozenset(Opcode)
KEY_BYTES: Final = 4
SLICE: Final = 256
"""Frames that are decoded before the time is checked, besides those of runs. One takes a few microseconds."""
BY_REFERENCE_BYTES: Final = 32_768
"""Messages of at least this size are written separately: joining them with others takes longer than a write."""


class FrameReader:
    """Decodes the frames of a peer: messages and control frames.

    Fragmented messages are reassembled. Reading ends at the first violation of the protocol.

    Args:
        masked: The peer is a client, so it must mask its frames; a server must not (RFC 6455, 5.1).
        max_bytes: The maximum size of a message. No more than that is buffered.
        width: The width of the length prefix to add to each message: big-endian, excluding itself. 0 adds none.
        first_max_bytes: The maximum size of the first message; None for `max_bytes`.
        skip_long: A larger message, except the first one, is not a violation: it is skipped, and only its first
            and last bytes are kept. Otherwise the beginning of a first message that is too long is returned, with the
            length of the whole, so that it can be answered.
        max_empty: The maximum number of consecutive empty fragments (THREATS 48).

    Attributes:
        more: Only a slice of the frames was decoded; call `feed` again.
        skipped: A skipped message; reading stops until `take_skipped` is called.
        ping: The data of the last unanswered ping. Earlier ones need no answer (RFC 6455, 5.5.3).
        close: The peer's Close; reading ends after it.
        violation: The Close to send for the peer's violation; reading ends after it.

    """

    __slots__ = (
        "_at", "_empty", "_limit", "_mask_bit", "_mask_key", "_max_bytes", "_max_empty", "_max_skipped", "_need",
        "_oversized", "_remaining", "_rest", "_skipping_last", "_tail", "_unfinished", "_width", "close", "more",
        "ping", "skipped", "violation",
    )  # fmt: skip

    def __init__(
        self,
        *,
        masked: bool,
        max_bytes: int,
        width: int,
        first_max_bytes: int | None = None,
        skip_long: bool = False,
        max_empty: int = 16,
    ) -> None:
        self._mask_bit = MASKED if masked else 0
        self._max_bytes = min(max_bytes, 256**width - 1) if width else max_bytes
        # The maximum payload of the next data frame.
        self._limit = self._max_bytes if first_max_bytes is None else min(first_max_bytes, self._max_bytes)
        # The maximum size of a skipped message, which its length prefix must express; 0 disables skipping.
        self._max_skipped = 256**width - 1 if skip_long else 0
        # The message that is being skipped: the rest of its current frame, the mask, and whether the frame is its last.
        self._oversized: LongMessage | None = None
        self._remaining = 0
        self._mask_key = b""
        self._skipping_last = False
        self.skipped: LongMessage | None = None
        self._width = width
        # The start of an incomplete frame, and the size that is needed to continue with it.
        self._tail = bytearray()
        self._need = 0
        # Data whose frames from index `_at` on are not decoded yet, if there is `more`.
        self._rest = b""
        self._at = 0
        self.more = False
        # The received part of a fragmented message.
        self._unfinished: bytearray | None = None
        # How many consecutive fragments were empty.
        self._empty = 0
        self._max_empty = max_empty
        self.ping: bytes | None = None
        self.close: Close | None = None
        self.violation: Close | None = None

    @property
    def unfinished(self) -> int:
        """The memory that an incomplete message takes, in bytes."""
        return self._tail.__alloc__() + (0 if self._unfinished is None else self._unfinished.__alloc__())

    @property
    def undecoded(self) -> int:
        """The bytes of frames that are not decoded yet."""
        return len(self._rest) - self._at

    def done(self) -> bool:
        """Return True if reading has ended."""
        return self.close is not None or self.violation is not None

    def forget(self) -> None:
        """Release an incomplete message, because nothing more will be read."""
        self._rest, self._at, self.more = b"", 0, False
        self._tail = bytearray()
        self._unfinished = None

    def feed(self, data: bytes) -> bytes:
        """Return the messages that `data` completes, each with its length prefix; of many small frames only a slice.

        Afterwards, check `skipped`, `ping`, `close`, `violation` and `more`.
        """
        if self.done():
            return b""
        at = 0
        if self.more:
            at = 0 if data else self._at
            data = self._rest[self._at :] + data if data else self._rest
            self._rest, self._at, self.more = b"", 0, False
        elif self._tail:
            self._tail += data
            if len(self._tail) < self._need:
                return b""
            data = bytes(self._tail)
            self._tail = bytearray()
        out: list[bytes] = []
        at = self._scan(data, at, out)
        if self.more:
            self._rest, self._at = data, at
        elif at < len(data) and not self.done():
            self._tail += data[at:]
        return b"".join(out)

    def _scan(self, data: bytes, at: int, out: list[bytes]) -> int:
        """Decode frames from index `at` on; return the start of the first that is incomplete, or to be read later."""
        self._need = 2
        key_bytes = KEY_BYTES if self._mask_bit else 0
        size, left = len(data), SLICE
        while left and (size - at >= 2 or (self._remaining and at < size)):
            left -= 1
            if self._remaining:
                at = self._skip(data, at)
                if self.skipped is not None:
                    break
                continue
            if self._unfinished is None:
                messages, end = read_run(data, at, self._mask_bit != 0, self._limit, self._width)
                if end > at:
                    self._limit = self._max_bytes
                    out.append(messages)
                    at = end
                    continue
            head = data[at]
            start, end = self._payload_of(data, at, size)
            if end - start > self._limit and not head & CONTROL and start <= size and self.violation is None:
                self._begin_skipping(head, end - start, data[start - key_bytes : start])
                at = start
                continue
            if end > size or self.violation is not None:
                self._begin_refused(head, data, start, end, out)
                # A frame that will be skipped needs only its header.
                self._need = (start if end - start > self._limit and not head & CONTROL else end) - at
                break
            payload = apply_mask(data[start:end], data[start - key_bytes : start]) if key_bytes else data[start:end]
            at = end
            if head == WHOLE:
                self._limit = self._max_bytes
                if self._width:
                    out.append((end - start).to_bytes(self._width, "big"))
                out.append(payload)
            elif not self._handle(head, payload, out):
                break
        else:
            self.more = not left
        return at

    def _handle(self, head: int, payload: bytes, out: list[bytes]) -> bool:
        """Handle a frame that is not a whole message; return True if the next one can be read."""
        if head & CONTROL:
            self._control(head & OPCODE, payload)
            return not self.done()
        self._empty = 0 if payload or head & FIN else self._empty + 1
        if self._empty > self._max_empty:
            what = f"a message has more than max_empty_fragments ({self._max_empty}) empty fragments"
            self._fail(CloseCode.POLICY_VIOLATION, what)
            return False
        if self._oversized is None:
            self._add_fragment(head, payload, out)
        elif head & FIN:
            # The frame is empty.
            self._end_skipping()
            return False
        return True

    def _payload_of(self, data: bytes, at: int, size: int) -> tuple[int, int]:
        """Return the start and end of the payload of the frame at `at`, whose first two bytes are in `data`.

        They exceed `size` if the length is incomplete. Sets `violation` if the frame is invalid.
        """
        head = data[at]
        second = data[at + 1]
        if head != WHOLE or self._unfinished is not None or second & MASKED != self._mask_bit:
            self._check(head, second)
        length = second & LENGTH
        start = at + 2
        if length > SHORT:
            start += 2 if length == LENGTH_16 else 8
            if start > size:
                return start, start
            length = int.from_bytes(data[at + 2 : start], "big")
        if length > self._limit and not head & CONTROL and not self._may_skip(length):
            most = self._limit + len(self._unfinished or b"")
            self._fail(CloseCode.MESSAGE_TOO_BIG, f"a message has at most {most} bytes here")
        if self._mask_bit:
            start += KEY_BYTES
        return start, start + length

    def _check(self, head: int, second: int) -> None:
        """Set `violation` if the first two bytes of a frame are invalid (RFC 6455, 5.2 to 5.5)."""
        opcode = head & OPCODE
        if second & MASKED != self._mask_bit:
            self._fail(CloseCode.PROTOCOL_ERROR, "clients must mask frames, and servers must not")
        elif head & RESERVED:
            self._fail(CloseCode.PROTOCOL_ERROR, "reserved bits are set without a negotiated extension")
        elif opcode not in KNOWN:
            self._fail(CloseCode.PROTOCOL_ERROR, f"unknown opcode {opcode}")
        elif opcode & CONTROL:
            if not head & FIN or second & LENGTH > SHORT:
                self._fail(CloseCode.PROTOCOL_ERROR, "a control frame is fragmented or longer than 125 bytes")
        elif opcode == Opcode.TEXT:
            self._fail(CloseCode.UNSUPPORTED_DATA, "messages must be binary")
        elif (opcode == Opcode.CONT) is (self._unfinished is None):
            self._fail(CloseCode.PROTOCOL_ERROR, "a continuation frame is unexpected or missing")

    def _add_fragment(self, head: int, payload: bytes, out: list[bytes]) -> None:
        """Add a frame to a fragmented message."""
        held = self._unfinished if self._unfinished is not None else bytearray()
        held += payload
        self._unfinished = held
        self._limit -= len(payload)
        if head & FIN:
            self._unfinished = None
            self._limit = self._max_bytes
            if self._width:
                out.append(len(held).to_bytes(self._width, "big"))
            out.append(bytes(held))

    def _begin_refused(self, head: int, data: bytes, start: int, end: int, out: list[bytes]) -> None:
        """Return the beginning of a message that is refused, if it is the first one and too long."""
        if self.violation is None or head & OPCODE != Opcode.BINARY:
            return
        if self._limit == self._max_bytes or self._max_skipped or end - start <= self._limit:
            return
        beginning = data[start : start + BEGINNING_BYTES]
        if beginning and not (end - start) >> 8 * self._width:
            beginning = apply_mask(beginning, data[start - KEY_BYTES : start]) if self._mask_bit else beginning
            out += ((end - start).to_bytes(self._width, "big"), beginning)

    # Skipping of oversized messages.

    def _may_skip(self, length: int) -> bool:
        """Return True if a message may be skipped that has another frame of `length` bytes."""
        if self._oversized is not None:
            return self._oversized.size + length <= self._max_skipped
        held = len(self._unfinished or b"")
        # The first message, whose limit may be lower, is never skipped.
        return held + self._limit == self._max_bytes and held + length <= self._max_skipped

    def _begin_skipping(self, head: int, length: int, key: bytes) -> None:
        """Start to skip a frame of an oversized message."""
        if self._oversized is None:
            held = bytes(self._unfinished or b"")
            self._oversized = LongMessage()
            self._oversized.add(held, 0, len(held))
            # The message has started, but none of its frames is kept.
            self._unfinished = bytearray()
            self._limit = 0
        self._remaining = length
        self._empty = 0
        self._mask_key = key
        self._skipping_last = bool(head & FIN)

    def _skip(self, data: bytes, at: int) -> int:
        """Skip the available part of a frame, from `at` on; return its end."""
        message = self._oversized
        assert message is not None
        stop = min(len(data), at + self._remaining)
        piece = data[at:stop]
        key = self._mask_key
        if key:
            piece = apply_mask(piece, key)
            turn = len(piece) % KEY_BYTES
            self._mask_key = key[turn:] + key[:turn]
        message.add(piece, 0, len(piece))
        self._remaining -= len(piece)
        if self._remaining == 0 and self._skipping_last:
            self._end_skipping()
        return stop

    def _end_skipping(self) -> None:
        self.skipped, self._oversized, self._unfinished = self._oversized, None, None
        self._limit = self._max_bytes
        self._need = 0

    def take_skipped(self) -> Iterator[bytes]:
        """Yield the skipped message with its length prefix, and with zeros in place of the discarded bytes."""
        message = self.skipped
        self.skipped = None
        if message is not None:
            yield message.size.to_bytes(self._width, "big")
            yield from message.pieces()

    def _control(self, opcode: int, payload: bytes) -> None:
        if opcode == Opcode.PING:
            self.ping = payload
        elif opcode == Opcode.CLOSE:
            try:
                self.close = Close.parse(payload)
            except CloseError as error:
                self._fail(CloseCode.PROTOCOL_ERROR, str(error))
            except UnicodeDecodeError:
                self._fail(CloseCode.INVALID_DATA, "the reason of a Close is not valid UTF-8")

    def _fail(self, code: CloseCode, reason: str) -> None:
        self.violation = Close(code, reason)
        self._unfinished = None


def message_frames(messages: list[bytes], masking: bool) -> list[bytes]:
    """Return the frames of whole messages, one for each, in chunks to write.

    With `masking`, as required of clients, each frame has an unpredictable key (RFC 6455, 5.3).
    """
    chunks: list[bytes] = []
    parts: list[bytes] = []
    keys = os.urandom(KEY_BYTES * len(messages)) if masking else b""
    mask_bit = MASKED if masking else 0
    at = 0
    for message in messages:
        length = len(message)
        if length <= SHORT:
            parts.append(bytes((WHOLE, mask_bit | length)))
        elif length <= 0xFFFF:
            parts.append(bytes((WHOLE, mask_bit | LENGTH_16, length >> 8, length & 0xFF)))
        else:
            parts.append(bytes((WHOLE, mask_bit | LENGTH_64)) + length.to_bytes(8, "big"))
        if masking:
            key = keys[at : at + KEY_BYTES]
            at += KEY_BYTES
            parts.append(key)
            message = apply_mask(message, key)
        if length >= BY_REFERENCE_BYTES:
            chunks += (b"".join(parts), message)
            parts = []
        else:
            parts.append(message)
    if parts:
        chunks.append(b"".join(parts))
    return chunks


def control_frame(opcode: Opcode, payload: bytes, masking: bool) -> bytes:
    """Return a control frame with at most 125 bytes of payload."""
    if not masking:
        return bytes((FIN | opcode, len(payload))) + payload
    key = os.urandom(KEY_BYTES)
    return bytes((FIN | opcode, MASKED | len(payload))) + key + apply_mask(payload, key)
