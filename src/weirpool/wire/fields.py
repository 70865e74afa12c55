"""The fields of frames: reads and writes big-endian integers and byte strings.

RSocket 1.0, Introduction: all fields are in network byte order.
"""

from __future__ import annotations

from ..errors import FrameError, LocalError

__all__ = ["GREATEST_31", "Reader", "check", "put", "u32"]

GREATEST_31 = 0x7FFF_FFFF
"""The largest 31-bit integer: most 32-bit fields reserve their top bit."""


def u32(data: bytes, at: int) -> int:
    """Return the 32-bit integer at index `at`.

    Raises:
        LocalError: `data` is too short. The caller must check its length.

    """
    p = data
    if not 0 <= at <= len(data) - 4:
        raise LocalError(f"cannot read 4 bytes at index {at} of {len(data)} bytes")
    high = p[at]
    return high << 24 | p[at + 1] << 16 | p[at + 2] << 8 | p[at + 3]


def check(value: int, bits: int, name: str, signed: bool = False) -> int:
    """Return `value` if it fits into `bits` bits, of which the first one is the sign if `signed`.

    Raises:
        LocalError: It does not fit. The message calls it `name`.

    """
    least, end = (-1 << bits - 1, 1 << bits - 1) if signed else (0, 1 << bits)
    if not least <= value < end:
        raise LocalError(f"{name} is {value}; it must be between {least} and {end - 1}")
    return value


def put(value: int, bits: int, name: str, signed: bool = False) -> bytes:
    """Return `value` as a field of `bits` bits, rounded up to whole bytes.

    Raises:
        LocalError: It does not fit; see `check`.

    """
    return check(value, bits, name, signed).to_bytes((bits + 7) // 8, "big", signed=signed)


class Reader:
    """Reads the fields of one frame in order, and never past its end.

    Args:
        buffer: The bytes that contain the frame.
        start: The index of the frame's body; offsets in errors are relative to it.
        at: The index of the next field.
        end: The index after the body.
        name: The frame's type, for errors.
        ignorable: Whether the receiver may ignore the frame if it is malformed.

    """

    __slots__ = ("at", "buffer", "end", "ignorable", "name", "start")

    def __init__(self, buffer: bytes, start: int, at: int, end: int, name: str, ignorable: bool) -> None:
        self.buffer = buffer
        self.start = start
        self.at = at
        self.end = end
        self.name = name
        self.ignorable = ignorable

    def integer(self, bits: int, field: str, signed: bool = False) -> int:
        """Return the next integer, without the reserved bit above its `bits` bits.

        Raises:
            FrameError: The frame is too short; also raised by `take` and `counted`.

        """
        value = int.from_bytes(self.take((bits + 7) // 8, field), "big", signed=signed)
        return value if signed else value & ((1 << bits) - 1)

    def take(self, count: int, field: str) -> bytes:
        """Return the next `count` bytes."""
        at = self.at
        if count > self.end - at:
            raise FrameError(
                f"{self.name} ends within its {field}: {count} bytes are needed, {self.end - at} remain",
                at - self.start,
                ignorable=self.ignorable,
            )
        self.at = at + count
        return self.buffer[at : self.at]

    def counted(self, bits: int, field: str) -> bytes:
        """Return the next bytes, whose number is the integer of `bits` bits before them."""
        return self.take(self.integer(bits, f"{field} length"), field)

    def rest(self) -> bytes:
        """Return the remaining bytes."""
        at = self.at
        self.at = self.end
        return self.buffer[at : self.end]
