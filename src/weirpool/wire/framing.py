"""Frame boundaries: length prefixes on byte streams, and messages on transports with message boundaries.

RSocket 1.0, Framing Protocol Usage: TCP, TLS, Unix and HTTP/2 need the length field; WebSocket must not have it. The
same is true of River. On sockets its reference implementation uses a 4-byte length that does not count itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

from ..errors import FrameError, LocalError
from .fields import GREATEST_31

__all__ = [
    "MAX_FRAME_BYTES",
    "MAX_MESSAGE_BYTES",
    "PREFIX_BYTES",
    "WINDOW",
    "Deframer",
    "LongMessage",
    "deframer",
    "framed",
    "prefixed",
]

MAX_FRAME_BYTES = 0xFF_FFFF
"""The longest frame with a 24-bit length."""
PREFIX_BYTES: Final = 4
"""River: the size of the length prefix, which does not count itself."""
MAX_MESSAGE_BYTES = 0xFFFF_FFFF
"""The longest message with a 32-bit length."""

SMALL_BYTES = 4096
"""Smaller pieces are joined: an object for each byte would take many times the memory."""
BLOCK_BYTES = 65_536
"""Maximum size of joined pieces: larger ones cost copies when they grow, smaller ones when frames are joined."""
WINDOW: Final = 8_192
"""Bytes kept of each end of a long message. The fields of a River message without the payload have about 300."""
FILLER: Final = bytes(1 << 20)


class Deframer:
    """Splits a byte stream into frames, without copying frames that are complete in one piece.

    Call `feed` with received bytes, then `next` until it returns False. When it returns True, the frame's body is
    ``buffer[start:end]``.

    Args:
        prefix: The size of the length prefix: 3 (RSocket 1.0, ReactiveSocket 0.2), or 4 (ReactiveSocket 0.0,
            River).
        max_frame_bytes: The maximum size of a body. It may be changed between frames.
        min_frame_bytes: The minimum size of a body: the dialect's frame header.
        counts_itself: Whether the length includes the prefix. None: a 4-byte length does, as in ReactiveSocket 0.0,
            and a 3-byte length does not. Some peers of 2017 differ.
        pass_over: Skip longer messages instead of raising an error; only their ends are kept, in `oversized`.

    Attributes:
        oversized: The current frame if it was skipped; then ``buffer[start:end]`` is empty. Else None.
        buffer: The bytes that contain the current frame.
        start: The index of the frame's body.
        end: The index after the body, where the next prefix starts.
        size: The number of bytes in `buffer`.

    """

    __slots__ = (
        "_first", "_left", "_own", "_passes", "_pieces", "_waiting", "buffer", "end", "max_frame_bytes",
        "min_frame_bytes", "oversized", "prefix", "size", "start",
    )  # fmt: skip

    def __init__(
        self,
        prefix: int = 3,
        max_frame_bytes: int = MAX_FRAME_BYTES,
        min_frame_bytes: int = 6,
        counts_itself: bool | None = None,
        pass_over: bool = False,
    ) -> None:
        if prefix not in (3, 4):
            raise LocalError(f"a length prefix of {prefix} bytes is not supported; use 3 or 4")
        self.prefix = prefix
        # ReactiveSocket 0.0, Framing Format: the length counts itself.
        itself = prefix == 4 if counts_itself is None else counts_itself
        self._own = prefix if itself else 0
        self.max_frame_bytes = max_frame_bytes
        self.min_frame_bytes = min_frame_bytes
        self.buffer = b""
        self.size = self.start = self.end = 0
        # Bytes that are not in `buffer` yet: pieces with `_waiting` bytes, the first one from index `_first` on.
        self._pieces: deque[bytes | bytearray] = deque()
        self._first = self._waiting = 0
        self._passes = pass_over
        self.oversized: LongMessage | None = None
        # How many bytes of it have not arrived.
        self._left = 0

    @property
    def pending(self) -> int:
        """The number of bytes that `next` has not delivered; after it returned False, those of an incomplete frame."""
        return self.size - self.end + self._waiting

    @property
    def held(self) -> int:
        """The number of bytes in memory for an incomplete frame, after `next` has returned False."""
        return self.size + self._waiting

    def feed(self, data: bytes) -> None:
        """Add received bytes. Call `next` afterwards."""
        if self.end == self.size and self._waiting == 0:
            self.buffer = data
            self.size = len(data)
            self.start = self.end = 0
            return
        self._waiting += len(data)
        pieces = self._pieces
        if len(data) >= SMALL_BYTES or not pieces:
            pieces.append(data)
            return
        last = pieces[len(pieces) - 1]
        if isinstance(last, bytearray) and len(last) < BLOCK_BYTES:
            last += data
        else:
            pieces.append(bytearray(data))

    def next(self) -> bool:
        """Advance to the next frame; return False if more bytes are needed.

        Raises:
            FrameError: The length is invalid or exceeds the limit. The deframer cannot continue after that.

        """
        if self.oversized is not None:
            if self._left:
                return self._skip()
            self.oversized = None
        while True:
            have = self.size - self.end
            need = self.prefix
            if have >= need:
                length = self._body_bytes()
                if length > self.max_frame_bytes:
                    self.end += need
                    self.oversized = LongMessage()
                    self._left = length
                    return self._skip()
                need += length
                if have >= need:
                    self.start = self.end + self.prefix
                    self.end += need
                    return True
            if have + self._waiting < need:
                # Memory is not allocated before bytes arrive, and not kept for frames that were delivered.
                if have == 0:
                    self.buffer = b""
                    self.size = self.start = self.end = 0
                return False
            self._refill(need)

    def split(self, data: bytes) -> list[bytes]:
        """Add received bytes, and return the bodies of the frames that they complete.

        Raises:
            FrameError: As `next` does.

        """
        bodies: list[bytes] = []
        self.feed(data)
        while self.next():
            bodies.append(self.buffer[self.start : self.end])
        return bodies

    def _body_bytes(self) -> int:
        """Return the length of the next body, from the prefix at `end`, which must be in the buffer."""
        p = self.buffer
        at = self.end
        length = p[at] << 16 | p[at + 1] << 8 | p[at + 2]
        if self.prefix == 4:
            length = length << 8 | p[at + 3]
            if self._own:
                # ReactiveSocket 0.0, Frame Header Format: the top bit of the length is reserved.
                length &= GREATEST_31
        length -= self._own
        if length < self.min_frame_bytes:
            raise FrameError(f"a length of {length} bytes is less than a frame header of {self.min_frame_bytes} bytes")
        if length > self.max_frame_bytes and not self._passes:
            raise FrameError(f"a length of {length} bytes exceeds the maximum of {self.max_frame_bytes}")
        return length

    def _skip(self) -> bool:
        """Consume available bytes of the message in `oversized`; return whether it is complete."""
        message = self.oversized
        assert message is not None
        while True:
            step = min(self._left, self.size - self.end)
            message.add(self.buffer, self.end, self.end + step)
            self._left -= step
            self.end += step
            self.start = self.end
            if self._left == 0:
                return True
            if self._waiting == 0:
                self.buffer = b""
                self.size = self.start = self.end = 0
                return False
            self._refill(0)

    def _refill(self, need: int) -> None:
        """Advance to the next piece; join an incomplete frame at the end of the buffer with the bytes that it needs.

        A long frame is thus joined once, regardless of its number of pieces, and later frames are not copied.
        """
        pieces = self._pieces
        if self.end == self.size:
            self.buffer = bytes(pieces.popleft())
            self.size = len(self.buffer)
            self._waiting -= self.size - self._first
            self.start = self.end = self._first
            self._first = 0
            return
        have = self.size - self.end
        parts: list[bytes | bytearray] = [self.buffer[self.end :]]
        self._waiting -= need - have
        while have < need:
            piece = pieces[0]
            stop = min(len(piece), self._first + need - have)
            parts.append(piece[self._first : stop])
            have += stop - self._first
            self._first = stop
            if stop == len(piece):
                pieces.popleft()
                self._first = 0
        self.buffer = b"".join(parts)
        self.size = have
        self.start = self.end = 0


class LongMessage:
    """The beginning and the end of a message; the bytes between them are dropped as they arrive.

    Attributes:
        size: The number of bytes that have arrived.
        head: The first bytes, at most `WINDOW`.

    """

    __slots__ = ("_tail", "head", "size")

    def __init__(self) -> None:
        self.size = 0
        self.head = b""
        self._tail = b""

    def add(self, data: bytes, start: int, end: int) -> None:
        """Add the next bytes, ``data[start:end]``."""
        self.size += end - start
        if len(self.head) < WINDOW:
            taken = min(end - start, WINDOW - len(self.head))
            self.head += data[start : start + taken]
            start += taken
        if end - start >= WINDOW:
            self._tail = data[end - WINDOW : end]
        elif end > start:
            self._tail = (self._tail + data[start:end])[-WINDOW:]

    @property
    def tail(self) -> bytes:
        """The last bytes, at most `WINDOW`; in a short message they overlap with `head`."""
        return self._tail if len(self._tail) == WINDOW else (self.head + self._tail)[-WINDOW:]

    def pieces(self) -> Iterator[bytes]:
        """Yield the message in its original size, with zeros instead of the dropped bytes."""
        yield self.head
        left = self.size - len(self.head) - len(self._tail)
        while left > 0:
            piece = FILLER[:left]
            left -= len(piece)
            yield piece
        yield self._tail


def prefixed(message: bytes, prefix: int = 3, counts_itself: bool = False) -> bytes:
    """Return `message` with a length prefix, as on a byte stream.

    Args:
        message: A frame.
        prefix: The size of the prefix: 3, or 4, which counts itself.
        counts_itself: Whether a prefix of 3 bytes counts itself.

    Raises:
        LocalError: The message is too long for the prefix.

    """
    length = len(message) + (prefix if prefix == 4 or counts_itself else 0)
    if length >> (24 if prefix == 3 else 31):
        raise LocalError(f"a message of {len(message)} bytes is too long for a {prefix}-byte length; fragment it")
    return length.to_bytes(prefix, "big") + message


def deframer(max_bytes: int, pass_over: bool = False) -> Deframer:
    """Return a deframer for River messages of at most `max_bytes`; see :class:`Deframer` for `pass_over`.

    The reference implementation's framing for sockets is a 32-bit big-endian length that does not count itself.
    """
    return Deframer(PREFIX_BYTES, max_bytes, 0, counts_itself=False, pass_over=pass_over)


def framed(message: bytes) -> bytes:
    """Return a River message with its length prefix. Raises LocalError if it is too long."""
    if len(message) > MAX_MESSAGE_BYTES:
        raise LocalError(f"a message of {len(message)} bytes is too long for a 4-byte length")
    return len(message).to_bytes(PREFIX_BYTES, "big") + message
