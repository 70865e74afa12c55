"""Varints: unsigned LEB128, the seven low bits first, each but the last byte with its top bit set.

reactive-streams-io version 0 leaves them open; our profile takes 0 to 2^63-1, in the shortest form alone.
"""

from __future__ import annotations

from typing import Final

from ...errors import LocalError

__all__ = ["MAX_VARINT", "MAX_VARINT_BYTES", "varint"]

MAX_VARINT: Final = 0x7FFF_FFFF_FFFF_FFFF
"""The greatest: a 64-bit integer with a sign holds it."""
MAX_VARINT_BYTES: Final = 9
"""Nine times seven bits are just 63."""

_SHORT: Final = [bytes((value,)) for value in range(0x80)]


def varint(value: int, name: str = "a varint") -> bytes:
    """Return `value` in its shortest form.

    Raises:
        LocalError: It is negative or too large. `name` says in the message what it is.

    """
    if 0 <= value < 0x80:
        return _SHORT[value]
    if not 0 <= value <= MAX_VARINT:
        raise LocalError(f"{name} is {value}; it must lie between 0 and {MAX_VARINT}")
    octets: list[int] = []
    while value >= 0x80:
        octets.append(value & 0x7F | 0x80)
        value >>= 7
    octets.append(value)
    return bytes(octets)
