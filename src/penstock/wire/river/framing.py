"""Where River's messages begin and end in a stream of bytes.

The reference implementation's framing for sockets: a 32-bit big-endian length, which does not count itself.
"""

from __future__ import annotations

from ...errors import LocalError
from ..framing import Deframer
from .codec import PREFIX_BYTES

__all__ = ["deframer", "framed"]


def deframer(max_bytes: int, pass_over: bool = False) -> Deframer:
    """Return what cuts bytes into messages of at most `max_bytes`; longer ones are errors, or passed over."""
    return Deframer(PREFIX_BYTES, max_bytes, 0, counts_itself=False, pass_over=pass_over)


def framed(message: bytes) -> bytes:
    """Return `message` with its length before it.

    Raises:
        LocalError: It is too long for one.

    """
    if len(message) >> 32:
        raise LocalError(f"a message of {len(message)} bytes is longer than its length can say")
    return len(message).to_bytes(PREFIX_BYTES, "big") + message
