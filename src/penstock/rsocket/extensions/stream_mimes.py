"""Stream Data MIME Types: the extension by which a request says what its data is, and which answers it takes.

A MIME type is a string, or a number where it came as one that we have no name for.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...errors import FrameError
from .mimes import read_mime, write_mime

__all__ = ["decode_accept", "decode_mime", "encode_accept", "encode_mime"]


def encode_mime(mime: str | int) -> bytes:
    """Return the content of a `message/x.rsocket.mime-type.v0` entry.

    Raises:
        LocalError: The MIME type is no ASCII of 1 to 128 bytes, or no number from 0 to 127.

    """
    return write_mime(mime)


def decode_mime(content: bytes) -> str | int:
    """Return the MIME type that a `message/x.rsocket.mime-type.v0` entry names.

    Raises:
        FrameError: There is none, it runs past the end, or something follows it.

    """
    mime, end = read_mime(content, 0)
    if end != len(content):
        raise FrameError(f"{len(content) - end} bytes follow the MIME type", end)
    return mime


def encode_accept(mimes: Iterable[str | int]) -> bytes:
    """Return the content of a `message/x.rsocket.accept-mime-types.v0` entry.

    Raises:
        LocalError: One of the MIME types is no ASCII of 1 to 128 bytes, or no number from 0 to 127.

    """
    return b"".join(map(write_mime, mimes))


def decode_accept(content: bytes, limit: int = 256) -> tuple[str | int, ...]:
    """Return the MIME types that a `message/x.rsocket.accept-mime-types.v0` entry names, in order.

    Raises:
        FrameError: One of them runs past the end, or there are more than `limit`.

    """
    found: list[str | int] = []
    at = 0
    while at < len(content):
        if len(found) == limit:
            raise FrameError(f"more than {limit} MIME types are accepted", at)
        mime, at = read_mime(content, at)
        found.append(mime)
    return tuple(found)
