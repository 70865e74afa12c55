"""WebSocket frames: RFC 6455, section 5, without sockets.

The library `websockets` does all of this, too, at 9 microseconds for each message that comes in and 5 for each that
goes out. Items of a stream are messages of their own, so that would be most of what they cost; here it is about 1.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

from websockets.exceptions import ProtocolError as CloseError
from websockets.frames import Close, CloseCode, Opcode

from ..wire.framing import LongMessage
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
"""The longest payload whose length stands in the second byte; control frames have no longer one."""
LENGTH_16: Final = 126
LENGTH_64: Final = 127
WHOLE: Final = FIN | Opcode.BINARY
"""A binary message in one frame: nearly every one."""
KNOWN: Final = frozenset(Opcode)
KEY_BYTES: Final = 4
BY_REFERENCE_BYTES: Final = 32_768
"""Messages of this size and more are handed on by themselves: joining them with others costs more than a write."""


class FrameReader:
    """Reads what a peer sends: messages, and what its control frames say.

    A message in several frames is put together. The first mistake of the peer ends the reading.

    Args:
        masked: The peer is a client, so it must mask its frames; a server must not (RFC 6455, 5.1).
        max_bytes: The longest message that is accepted. No more than that is held.
        width: Bytes of the length that is put before each message: big-endian, and excluding itself. 0: none is.
        first_max_bytes: The longest first message.
        pass_over: A longer message, but for the first one, is no mistake: it is passed over, and only its ends are
            kept.

    Attributes:
        passed: A message that was passed over; nothing is read before it is taken by `take_passed`.
        ping: The data of the last ping that was not answered. Older ones need no answer (RFC 6455, 5.5.3).
        close: The peer's Close; nothing is read after it.
        breach: The Close that the peer has deserved by a mistake; nothing is read after it.

    """

    __slots__ = (
        "_last", "_left", "_mask_bit", "_mask_key", "_max_bytes", "_need", "_oversized", "_passes", "_room", "_tail",
        "_unfinished", "_width", "breach", "close", "passed", "ping",
    )  # fmt: skip

    def __init__(
        self, *, masked: bool, max_bytes: int, width: int, first_max_bytes: int | None = None, pass_over: bool = False
    ) -> None:
        self._mask_bit = MASKED if masked else 0
        self._max_bytes = min(max_bytes, 256**width - 1) if width else max_bytes
        # What the next data frame may have.
        self._room = self._max_bytes if first_max_bytes is None else min(first_max_bytes, self._max_bytes)
        # How long a message that is passed over may be: what its length can say. 0: none is passed over.
        self._passes = 256**width - 1 if pass_over else 0
        # The one that is; what is still to come of its present frame, and how that is masked; and whether it is over
        # then.
        self._oversized: LongMessage | None = None
        self._left = 0
        self._mask_key = b""
        self._last = False
        self.passed: LongMessage | None = None
        self._width = width
        # What begins a frame, and how many bytes there must be before it is worth another look.
        self._tail = bytearray()
        self._need = 0
        # The message that is not whole yet, when it comes in several frames.
        self._unfinished: bytearray | None = None
        self.ping: bytes | None = None
        self.close: Close | None = None
        self.breach: Close | None = None

    def over(self) -> bool:
        """Return whether nothing more is read."""
        return self.close is not None or self.breach is not None

    def feed(self, data: bytes) -> bytes:
        """Return the messages that are whole with `data`, each with its length before it.

        Look at `ping`, `close` and `breach` afterwards.
        """
        if self.over():
            return b""
        if self._tail:
            self._tail += data
            if len(self._tail) < self._need:
                return b""
            data = bytes(self._tail)
            self._tail = bytearray()
        out: list[bytes] = []
        at = self._scan(data, out)
        if at < len(data) and not self.over():
            self._tail += data[at:]
        return b"".join(out)

    def _scan(self, data: bytes, out: list[bytes]) -> int:
        """Take the frames in `data`; return where the first one begins that is not whole, or not to be read now."""
        self._need = 2
        key_bytes = KEY_BYTES if self._mask_bit else 0
        size = len(data)
        at = 0
        while size - at >= 2 or (self._left and at < size):
            if self._left:
                at = self._pass_over(data, at)
                if self.passed is not None:
                    break
                continue
            if self._unfinished is None:
                messages, end = read_run(data, at, self._mask_bit != 0, self._room, self._width)
                if end > at:
                    self._room = self._max_bytes
                    out.append(messages)
                    at = end
                    continue
            head = data[at]
            start, end = self._payload_of(data, at, size)
            if end - start > self._room and not head & CONTROL and start <= size and self.breach is None:
                self._begin_long(head, end - start, data[start - key_bytes : start])
                at = start
                continue
            if end > size or self.breach is not None:
                # Of a frame that will be passed over, its head alone.
                self._need = (start if end - start > self._room and not head & CONTROL else end) - at
                break
            payload = data[start:end]
            if key_bytes:
                payload = apply_mask(payload, data[start - key_bytes : start])
            at = end
            if head == WHOLE:
                self._room = self._max_bytes
                if self._width:
                    out.append((end - start).to_bytes(self._width, "big"))
                out.append(payload)
            elif not self._take(head, payload, out):
                break
        return at

    def _take(self, head: int, payload: bytes, out: list[bytes]) -> bool:
        """Take a frame that is no whole message; return whether the next one is to be read now."""
        if head & CONTROL:
            self._control(head & OPCODE, payload)
            return not self.over()
        if self._oversized is None:
            self._gather(head, payload, out)
        elif head & FIN:
            # A frame that is empty.
            self._end_long()
            return False
        return True

    def _payload_of(self, data: bytes, at: int, size: int) -> tuple[int, int]:
        """Return where the payload of the frame at `at` begins and ends; its first two bytes are there.

        When its length is not, that is behind `size`. When the frame is wrong, `breach` is set.
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
        if length > self._room and not head & CONTROL and not self._may_pass(length):
            most = self._room + len(self._unfinished or b"")
            self._break(CloseCode.MESSAGE_TOO_BIG, f"a message has at most {most} bytes here")
        if self._mask_bit:
            start += KEY_BYTES
        return start, start + length

    def _check(self, head: int, second: int) -> None:
        """Look whether a frame is wrong, as far as its first two bytes tell (RFC 6455, 5.2 to 5.5)."""
        opcode = head & OPCODE
        if second & MASKED != self._mask_bit:
            self._break(CloseCode.PROTOCOL_ERROR, "a client masks its frames, and a server does not")
        elif head & RESERVED:
            self._break(CloseCode.PROTOCOL_ERROR, "reserved bits are set, and no extension was agreed on")
        elif opcode not in KNOWN:
            self._break(CloseCode.PROTOCOL_ERROR, f"unknown opcode {opcode}")
        elif opcode & CONTROL:
            if not head & FIN or second & LENGTH > SHORT:
                self._break(CloseCode.PROTOCOL_ERROR, "a control frame is one frame of at most 125 bytes")
        elif opcode == Opcode.TEXT:
            self._break(CloseCode.UNSUPPORTED_DATA, "messages are binary here")
        elif (opcode == Opcode.CONT) is (self._unfinished is None):
            self._break(CloseCode.PROTOCOL_ERROR, "a message begins within another, or goes on without one")

    def _gather(self, head: int, payload: bytes, out: list[bytes]) -> None:
        """Take a part of a message that comes in several frames."""
        held = self._unfinished if self._unfinished is not None else bytearray()
        held += payload
        self._unfinished = held
        self._room -= len(payload)
        if head & FIN:
            self._unfinished = None
            self._room = self._max_bytes
            if self._width:
                out.append(len(held).to_bytes(self._width, "big"))
            out.append(bytes(held))

    # Messages that are too long.

    def _may_pass(self, length: int) -> bool:
        """Whether a message may be passed over that has a frame of so many bytes."""
        if self._oversized is not None:
            return self._oversized.size + length <= self._passes
        held = len(self._unfinished or b"")
        # A first message has less room than the others.
        return held + self._room == self._max_bytes and held + length <= self._passes

    def _begin_long(self, head: int, length: int, key: bytes) -> None:
        """Pass over a frame of a message that is too long."""
        if self._oversized is None:
            held = bytes(self._unfinished or b"")
            self._oversized = LongMessage()
            self._oversized.add(held, 0, len(held))
            # It has begun, and none of its frames is held.
            self._unfinished = bytearray()
            self._room = 0
        self._left = length
        self._mask_key = key
        self._last = bool(head & FIN)

    def _pass_over(self, data: bytes, at: int) -> int:
        """Take what there is of the frame that is passed over, from `at` on; return where it ends."""
        message = self._oversized
        assert message is not None
        stop = min(len(data), at + self._left)
        piece = data[at:stop]
        key = self._mask_key
        if key:
            piece = apply_mask(piece, key)
            turn = len(piece) % KEY_BYTES
            self._mask_key = key[turn:] + key[:turn]
        message.add(piece, 0, len(piece))
        self._left -= len(piece)
        if self._left == 0 and self._last:
            self._end_long()
        return stop

    def _end_long(self) -> None:
        self.passed, self._oversized, self._unfinished = self._oversized, None, None
        self._room = self._max_bytes
        self._need = 0

    def take_passed(self) -> Iterator[bytes]:
        """Yield the message that was passed over, with its length before it and zeros for what was dropped."""
        message = self.passed
        self.passed = None
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
                self._break(CloseCode.PROTOCOL_ERROR, str(error))
            except UnicodeDecodeError:
                self._break(CloseCode.INVALID_DATA, "the reason of a Close is no UTF-8")

    def _break(self, code: CloseCode, reason: str) -> None:
        self.breach = Close(code, reason)
        self._unfinished = None


def message_frames(messages: list[bytes], masking: bool) -> list[bytes]:
    """Return whole messages as frames, one each, in chunks to write.

    A client must mask them, with a key for each frame that nobody can foresee (RFC 6455, 5.3).
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
    """Return a control frame, of at most 125 bytes of payload."""
    if not masking:
        return bytes((FIN | opcode, len(payload))) + payload
    key = os.urandom(KEY_BYTES)
    return bytes((FIN | opcode, MASKED | len(payload))) + key + apply_mask(payload, key)
