"""MIME types in metadata: the extensions Well-known MIME Types, and Stream Data MIME Types.

A MIME type or authentication type is a number or a name. The first byte is the bit 0x80 with a well-known number, or
the length of the following name minus one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ...errors import FrameError, LocalError

__all__ = [
    "ACCEPT", "AUTHENTICATION", "COMPOSITE", "KNOWN", "MIME_TYPE", "NAMES", "NUMBERS", "OCTET_STREAM", "ROUTING",
    "TEXT", "TRACING", "LiteralMime", "decode_accept", "decode_mime", "encode_accept", "is_known", "read_mime",
    "read_type", "write_mime", "write_type",
]  # fmt: skip

KNOWN: Final = 0x80
"""The bit of the first byte that marks a well-known number."""
MAX_NUMBER: Final = 0x7F
MAX_NAME_BYTES: Final = 128

MIME_TYPE: Final = "message/x.rsocket.mime-type.v0"
ACCEPT: Final = "message/x.rsocket.accept-mime-types.v0"
AUTHENTICATION: Final = "message/x.rsocket.authentication.v0"
TRACING: Final = "message/x.rsocket.tracing-zipkin.v0"
ROUTING: Final = "message/x.rsocket.routing.v0"
COMPOSITE: Final = "message/x.rsocket.composite-metadata.v0"
OCTET_STREAM: Final = "application/octet-stream"
TEXT: Final = "text/plain"

_NAMES_FROM_0 = """
    application/avro application/cbor application/graphql application/gzip application/javascript application/json
    application/octet-stream application/pdf application/vnd.apache.thrift.binary application/vnd.google.protobuf
    application/xml application/zip audio/aac audio/mp3 audio/mp4 audio/mpeg3 audio/mpeg audio/ogg audio/opus
    audio/vorbis image/bmp image/gif image/heic-sequence image/heic image/heif-sequence image/heif image/jpeg image/png
    image/tiff multipart/mixed text/css text/csv text/html text/plain text/xml video/H264 video/H265 video/VP8
    application/x-hessian application/x-java-object application/cloudevents+json application/x-capnp
    application/x-flatbuffers
""".split()
NAMES: Final[dict[int, str]] = dict(enumerate(_NAMES_FROM_0)) | {
    0x7A: MIME_TYPE,
    0x7B: ACCEPT,
    0x7C: AUTHENTICATION,
    0x7D: TRACING,
    0x7E: ROUTING,
    0x7F: COMPOSITE,
}
"""Number to name."""

NUMBERS: Final[dict[str, int]] = {name: number for number, name in NAMES.items()}
"""Name to number."""


def is_known(name: str) -> bool:
    """Return whether a MIME type is well-known, or the encoding of text, which peers of 2016 send instead."""
    kind = name.partition(";")[0].strip().lower()
    return kind in _LOWER or kind in ("utf-8", "")


_LOWER: Final = frozenset(name.lower() for name in NUMBERS)


def read_type(data: bytes, at: int, what: str) -> tuple[int | str, int]:
    """Return the number or name at offset `at`, and the offset after it; errors call it `what`.

    Raises FrameError if `data` is too short.
    """
    if at >= len(data):
        raise FrameError(f"the {what} is missing", at)
    first = data[at]
    if first & KNOWN:
        return first & MAX_NUMBER, at + 1
    # The extensions specify the length, but all known peers write the length minus one, as names are never empty.
    end = at + first + 2
    if end > len(data):
        raise FrameError(f"{what} of {first + 1} bytes runs past the end", at)
    # It SHOULD be US-ASCII. Other bytes become surrogates, which `write_type` converts back.
    return data[at + 1 : end].decode("ascii", "surrogateescape"), end


def write_type(value: int | str, what: str) -> bytes:
    """Encode a number from 0 to 127, or a name of 1 to 128 ASCII characters. Raises LocalError for other values."""
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


class LiteralMime(str):
    """A MIME type that a peer sent as a name although it has a number. It is encoded as a name again."""

    __slots__ = ()


def read_mime(data: bytes, at: int) -> tuple[str | int, int]:
    """Return the MIME type at offset `at`, or its number if unknown, and the offset after it. See `read_type`."""
    mime, end = read_type(data, at, "MIME type")
    if isinstance(mime, int):
        return NAMES.get(mime, mime), end
    return LiteralMime(mime) if mime in NUMBERS else mime, end


def write_mime(mime: str | int) -> bytes:
    """Encode a MIME type, as its number if it has one and is not a :class:`LiteralMime`. See :func:`write_type`."""
    known = mime if isinstance(mime, int | LiteralMime) else NUMBERS.get(mime, mime)
    return write_type(known, "MIME type")


def decode_mime(content: bytes) -> str | int:
    """Return the type in a `message/x.rsocket.mime-type.v0` entry. Raises FrameError if it is malformed."""
    mime, end = read_mime(content, 0)
    if end != len(content):
        raise FrameError(f"{len(content) - end} bytes follow the MIME type", end)
    return mime


def encode_accept(mimes: Iterable[str | int]) -> bytes:
    """Return the content of a `message/x.rsocket.accept-mime-types.v0` entry. Raises LocalError; see `write_type`."""
    return b"".join(map(write_mime, mimes))


def decode_accept(content: bytes, limit: int = 256) -> tuple[str | int, ...]:
    """Return the types in a `message/x.rsocket.accept-mime-types.v0` entry, in order.

    Raises FrameError if one runs past the end, or if there are more than `limit`.
    """
    found: list[str | int] = []
    at = 0
    while at < len(content):
        if len(found) == limit:
            raise FrameError(f"the list of accepted MIME types has more than {limit} entries", at)
        mime, at = read_mime(content, at)
        found.append(mime)
    return tuple(found)
