"""Finds times with more digits than Python's, which msgspec would round.

`precision.pyx` does the same in the compiled build, because all data with times is searched.
"""

from __future__ import annotations

import re
import struct
from typing import Final

__all__ = ["contains", "has_finer_time"]

# After a point: seven digits of a second of a time, or of a duration in ISO 8601. If they follow the many seconds since
# 1970, these are nanoseconds, or seven digits that a float would round to the next second: others are those of floats,
# as Python's clock has them. The point comes first, because it is what Python searches fast.
_FINER: Final = re.compile(
    rb"\.[0-9]{7}(?:(?<=:[0-9]{2}\.[0-9]{7})|[0-9]*+[Ss]|(?<=[0-9]{9}\.999999[0-9])|[0-9]{2}(?<=[0-9]{9}\.[0-9]{9}))"
)
# MessagePack, Timestamp extension type: the two forms with nanoseconds, which are the first 30 bits of 64, or 32 bits.
_TIMESTAMPS_64: Final = re.compile(rb"\xd7(?=\xff(....)....)", re.DOTALL)
_TIMESTAMPS_96: Final = re.compile(rb"\xc7(?=\x0c\xff(....))", re.DOTALL)
_NUMBER: Final = struct.Struct(">I")


def contains(words: tuple[bytes, ...], data: bytes) -> bool:
    """Return True if data contains one of the words, which are not empty, or if :func:`has_finer_time` is true."""
    for word in words:
        if data.find(word) >= 0:
            return True
    return has_finer_time(data)


def has_finer_time(data: bytes) -> bool:
    """Return True if data may contain a time, a duration or a number of seconds with digits beyond the microsecond.

    Args:
        data: JSON, MessagePack or CBOR.

    """
    if _FINER.search(data) is not None:
        return True
    # No text contains this byte.
    if 0xFF not in data:
        return False
    for (number,) in _NUMBER.iter_unpack(b"".join(_TIMESTAMPS_64.findall(data))):
        if number // 4 % 1_000:
            return True
    return any(number % 1_000 for (number,) in _NUMBER.iter_unpack(b"".join(_TIMESTAMPS_96.findall(data))))
