"""Types that are a number or a name: how the extensions write MIME types and authentication types.

The first byte has the bit 0x80 and a well-known number, or it is the length of the name that follows it, less one.
"""

from __future__ import annotations

from typing import Final

from ...errors import FrameError, LocalError

__all__ = ["read", "write"]

KNOWN: Final = 0x80
"""The bit of the first byte that says: this is a number, and no name follows."""
MAX_NUMBER: Final = 0x7F
MAX_NAME_BYTES: Final = 128


def read(data: bytes, at: int, what: str) -> tuple[int | str, int]:
    """Return the number or name at offset `at`, and the offset behind it.

    Args:
        data: What it stands in.
        at: Where it begins.
        what: What it is, for errors, such as "MIME type".

    Raises:
        FrameError: `data` ends before it does.

    """
    if at >= len(data):
        raise FrameError(f"no {what} here", at)
    first = data[at]
    if first & KNOWN:
        return first & MAX_NUMBER, at + 1
    # The extensions speak of the length; every living peer writes one less, so that a name is never empty.
    end = at + first + 2
    if end > len(data):
        raise FrameError(f"{what} of {first + 1} bytes runs past the end", at)
    # It SHOULD be US-ASCII. What is not comes back as surrogates, from which `write` makes the same bytes.
    return data[at + 1 : end].decode("ascii", "surrogateescape"), end


def write(value: int | str, what: str) -> bytes:
    """Return the bytes of a number or a name.

    Args:
        value: A number from 0 to 127, or a name of 1 to 128 ASCII characters.
        what: What it is, for errors.

    Raises:
        LocalError: It is neither.

    """
    if isinstance(value, int):
        if not 0 <= value <= MAX_NUMBER:
            raise LocalError(f"{what} {value} must be a number from 0 to {MAX_NUMBER}")
        return bytes((KNOWN | value,))
    try:
        name = value.encode("ascii", "surrogateescape")
    except UnicodeEncodeError:
        name = b""
    if not 1 <= len(name) <= MAX_NAME_BYTES:
        raise LocalError(f"{what} {value[:MAX_NAME_BYTES]!r} must be 1 to {MAX_NAME_BYTES} ASCII characters")
    return bytes((len(name) - 1,)) + name
