"""The fields that frames are made of: big-endian integers and strings of bytes, read and written.

RSocket 1.0, Introduction: all fields are in network byte order.
"""

from __future__ import annotations

from ..errors import FrameError, LocalError

__all__ = ["GREATEST_31", "Reader", "check", "put", "u32"]

GREATEST_31 = 0x7FFF_FFFF
"""The greatest 31-bit integer: most fields leave the top bit of their 32 alone."""


def u32(data: bytes, at: int) -> int:
    """Return the 32-bit integer at index `at`.

    Raises:
        LocalError: It is not there: the caller has not checked the length.

    """
    p = data
    if not 0 <= at <= len(data) - 4:
        raise LocalError(f"4 bytes at {at} were asked of {len(data)}")
    high = p[at]
    return high << 24 | p[at + 1] << 16 | p[at + 2] << 8 | p[at + 3]


def check(value: int, bits: int, name: str) -> int:
    """Return `value`, which goes into `bits` bits.

    Raises:
        LocalError: It does not fit. `name` says in the message what it is.

    """
    if value < 0 or value >> bits:
        raise LocalError(f"{name} is {value}; it must lie between 0 and {(1 << bits) - 1}")
    return value


def put(value: int, bits: int, name: str) -> bytes:
    """Return `value` as a field of `bits` bits, in as many bytes as hold them.

    Raises:
        LocalError: It does not fit. `name` says in the message what it is.

    """
    return check(value, bits, name).to_bytes((bits + 7) // 8, "big")


class Reader:
    """Reads the fields of one frame in order, and never past its end.

    Args:
        buffer: The bytes that the frame lies in.
        start: Where its body starts; errors count from here.
        at: Where to read.
        end: Where the body ends.
        name: The frame's type, for errors.
        ignorable: Whether the receiver may skip the frame when it is wrong.

    """

    __slots__ = ("at", "buffer", "end", "ignorable", "name", "start")

    def __init__(self, buffer: bytes, start: int, at: int, end: int, name: str, ignorable: bool) -> None:
        self.buffer = buffer
        self.start = start
        self.at = at
        self.end = end
        self.name = name
        self.ignorable = ignorable

    def integer(self, bits: int, field: str) -> int:
        """Return the next integer. A reserved bit above its `bits` bits is left out.

        Raises:
            FrameError: The frame ends before it does; so for `take`.

        """
        return int.from_bytes(self.take((bits + 7) // 8, field), "big") & ((1 << bits) - 1)

    def take(self, count: int, field: str) -> bytes:
        """Return the next `count` bytes."""
        at = self.at
        if count > self.end - at:
            raise FrameError(
                f"{self.name} ends within its {field}: {count} bytes are needed, and {self.end - at} are left",
                at - self.start,
                ignorable=self.ignorable,
            )
        self.at = at + count
        return self.buffer[at : self.at]

    def counted(self, bits: int, field: str) -> bytes:
        """Return the next bytes, as many as the integer of `bits` bits before them says."""
        return self.take(self.integer(bits, f"{field} length"), field)

    def rest(self) -> bytes:
        """Return all that is left."""
        at = self.at
        self.at = self.end
        return self.buffer[at : self.end]
