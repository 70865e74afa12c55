"""Frame boundaries: length prefixes on a stream of bytes, and messages on transports that keep them.

RSocket 1.0, Framing Protocol Usage: TCP, TLS, Unix and HTTP/2 need the length field; WebSocket must not have it. It is
the same with River, whose reference puts a length of 4 bytes that does not count itself before messages on sockets.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

from ..errors import FrameError, LocalError

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
"""The longest frame that a 24-bit length can tell of."""
PREFIX_BYTES: Final = 4
"""River: bytes of the length before each message, which does not count itself."""
MAX_MESSAGE_BYTES = 0xFFFF_FFFF
"""The longest message that a 32-bit length can tell of."""

SMALL_BYTES = 4096
"""Pieces below this are gathered: an object for each byte would cost many times the bytes."""
BLOCK_BYTES = 65_536
"""How many bytes are gathered in one place: growing it costs copies, and so does joining many."""
WINDOW: Final = 8_192
"""Bytes that are kept of either end. The fields of River's messages but the payload have some 300."""
FILLER: Final = bytes(1 << 20)


class Deframer:
    """Cuts a stream of bytes into frames, without copying those that lie whole in a piece.

    Feed it what the network brought, then call `next` until it returns False. While it returns True, the
    frame's body is ``buffer[start:end]``.

    Args:
        prefix: Bytes of the length before each frame: 3 (RSocket 1.0, ReactiveSocket 0.2), or 4 (ReactiveSocket 0.0,
            River).
        max_frame_bytes: The longest body that is accepted. It may be changed between frames.
        min_frame_bytes: The shortest one: the dialect's frame header.
        counts_itself: Whether the length includes itself. None: one of 4 bytes does, as ReactiveSocket 0.0 has it; one
            of 3 does not, but for some peers of 2017.
        pass_over: A longer message is no error: it is passed over, and only its ends are kept, in `oversized`.

    Attributes:
        oversized: The current frame, if it was passed over; ``buffer[start:end]`` is empty then. Else None.
        buffer: The bytes that the current frame lies in.
        start: Where its body starts.
        end: Where its body ends, and the next prefix starts.
        size: Bytes in `buffer`.

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
            raise LocalError(f"a length prefix of {prefix} bytes is none that the protocols have; use 3 or 4")
        self.prefix = prefix
        # ReactiveSocket 0.0, Framing Format: the length counts itself.
        itself = prefix == 4 if counts_itself is None else counts_itself
        self._own = prefix if itself else 0
        self.max_frame_bytes = max_frame_bytes
        self.min_frame_bytes = min_frame_bytes
        self.buffer = b""
        self.size = self.start = self.end = 0
        # What was fed and does not lie in `buffer`: pieces of `_waiting` bytes, the first from index `_first` on.
        self._pieces: deque[bytes | bytearray] = deque()
        self._first = self._waiting = 0
        self._passes = pass_over
        self.oversized: LongMessage | None = None
        # Bytes of it that have not come.
        self._left = 0

    @property
    def pending(self) -> int:
        """How many bytes are held that `next` has not delivered: once it returned False, of an unfinished frame."""
        return self.size - self.end + self._waiting

    def feed(self, data: bytes) -> None:
        """Take what the network brought. Call `next` afterwards."""
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
        """Go on to the next frame; return False when more bytes are needed for it.

        Raises:
            FrameError: The length is impossible or above the limit. There is no way to go on from here.

        """
        if self.oversized is not None:
            if self._left:
                return self._pass_over()
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
                    return self._pass_over()
                need += length
                if have >= need:
                    self.start = self.end + self.prefix
                    self.end += need
                    return True
            if have + self._waiting < need:
                # Nothing is allocated for what a length promises, and nothing is kept that was delivered.
                if have == 0:
                    self.buffer = b""
                    self.size = self.start = self.end = 0
                return False
            self._refill(need)

    def split(self, data: bytes) -> list[bytes]:
        """Take what the network brought, and return the bodies of the frames that are whole with it.

        Raises:
            FrameError: As `next` does.

        """
        bodies: list[bytes] = []
        self.feed(data)
        while self.next():
            bodies.append(self.buffer[self.start : self.end])
        return bodies

    def _body_bytes(self) -> int:
        """Return the length of the body behind the prefix at `end`, which lies whole in the buffer."""
        p = self.buffer
        at = self.end
        length = p[at] << 16 | p[at + 1] << 8 | p[at + 2]
        if self.prefix == 4:
            # A set R bit makes it huge: refused.
            length = length << 8 | p[at + 3]
        length -= self._own
        if length < self.min_frame_bytes:
            raise FrameError(f"the length says {length} bytes, and a frame header alone takes {self.min_frame_bytes}")
        if length > self.max_frame_bytes and not self._passes:
            raise FrameError(f"the length says {length} bytes, and at most {self.max_frame_bytes} are accepted")
        return length

    def _pass_over(self) -> bool:
        """Take what there is of the message in `oversized`; return whether that was the last of it."""
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
        """Go on to the next piece; if the buffer's tail begins a frame, join it with just what it needs.

        So a long frame is joined once, however it was cut, and what follows it is parsed where it lies.
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
    """The beginning and the end of a message; what lies between them is dropped as it comes.

    Attributes:
        size: How many bytes have come.
        head: The first of them, at most `WINDOW`.

    """

    __slots__ = ("_tail", "head", "size")

    def __init__(self) -> None:
        self.size = 0
        self.head = b""
        self._tail = b""

    def add(self, data: bytes, start: int, end: int) -> None:
        """Take ``data[start:end]``, which comes next."""
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
        """The last bytes, at most `WINDOW`; of a short message they are some of `head` as well."""
        return self._tail if len(self._tail) == WINDOW else (self.head + self._tail)[-WINDOW:]

    def pieces(self) -> Iterator[bytes]:
        """Yield as many bytes as there were, with zeros in the place of what was dropped."""
        yield self.head
        left = self.size - len(self.head) - len(self._tail)
        while left > 0:
            piece = FILLER[:left]
            left -= len(piece)
            yield piece
        yield self._tail


def prefixed(message: bytes, prefix: int = 3, counts_itself: bool = False) -> bytes:
    """Return `message` with its length before it, as a stream transport would have brought it.

    Args:
        message: A frame.
        prefix: Bytes of the length: 3, or 4, which counts itself.
        counts_itself: So does one of 3.

    Raises:
        LocalError: It is longer than the prefix can say.

    """
    length = len(message) + (prefix if prefix == 4 or counts_itself else 0)
    if length >> (24 if prefix == 3 else 31):
        raise LocalError(
            f"a message of {len(message)} bytes is longer than its {prefix}-byte length can say; fragment it"
        )
    return length.to_bytes(prefix, "big") + message


def deframer(max_bytes: int, pass_over: bool = False) -> Deframer:
    """Return what cuts bytes into River's messages of at most `max_bytes`; longer ones are errors, or passed over.

    The reference implementation's framing for sockets: a 32-bit big-endian length, which does not count itself.
    """
    return Deframer(PREFIX_BYTES, max_bytes, 0, counts_itself=False, pass_over=pass_over)


def framed(message: bytes) -> bytes:
    """Return a message of River with its length before it. Raises LocalError if it is too long for one."""
    if len(message) > MAX_MESSAGE_BYTES:
        raise LocalError(f"a message of {len(message)} bytes is longer than its length can say")
    return len(message).to_bytes(PREFIX_BYTES, "big") + message
