"""Where River's messages begin and end in a stream of bytes.

The reference implementation's framing for sockets: a 32-bit big-endian length, which does not count itself.
"""

from __future__ import annotations

from typing import Final

from ..errors import FrameError, LocalError
from .river import PREFIX_BYTES

__all__ = ["MessageDeframer", "framed"]

COMPACT_BYTES: Final = 65_536
"""Bytes that were delivered, after which the buffer is cut."""


class MessageDeframer:
    """Cuts a stream of bytes into messages. Feed it, then call `next` until it returns None.

    Args:
        max_bytes: The longest message that is accepted.

    """

    __slots__ = ("_at", "_buffer", "max_bytes")

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._buffer = bytearray()
        self._at = 0

    @property
    def pending(self) -> int:
        """How many bytes were fed and not delivered."""
        return len(self._buffer) - self._at

    def feed(self, data: bytes) -> None:
        """Take what the network brought."""
        if self._at == len(self._buffer):
            self._buffer.clear()
            self._at = 0
        elif self._at > COMPACT_BYTES:
            del self._buffer[: self._at]
            self._at = 0
        self._buffer += data

    def next(self) -> bytes | None:
        """Return the next message, without its length; None when it is not whole yet.

        Raises:
            FrameError: It is longer than `max_bytes`; nothing was allocated for it (THREATS 66).

        """
        start = self._at + PREFIX_BYTES
        if start > len(self._buffer):
            return None
        length = int.from_bytes(self._buffer[self._at : start], "big")
        if length > self.max_bytes:
            raise FrameError(f"a message of {length} bytes is announced, and at most {self.max_bytes} are accepted")
        end = start + length
        if end > len(self._buffer):
            return None
        self._at = end
        return bytes(self._buffer[start:end])


def framed(message: bytes) -> bytes:
    """Return `message` with its length before it.

    Raises:
        LocalError: It is too long for one.

    """
    if len(message) >> 32:
        raise LocalError(f"a message of {len(message)} bytes is longer than its length can say")
    return len(message).to_bytes(PREFIX_BYTES, "big") + message
