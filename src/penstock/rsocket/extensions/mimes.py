"""Well-known MIME types: the RSocket extension that gives the common ones a number."""

from __future__ import annotations

from typing import Final

from . import numbered

__all__ = [
    "ACCEPT",
    "AUTHENTICATION",
    "COMPOSITE",
    "MIME_TYPE",
    "NAMES",
    "NUMBERS",
    "OCTETS",
    "ROUTING",
    "TEXT",
    "TRACING",
    "LiteralMime",
    "is_known",
    "read_mime",
    "write_mime",
]

MIME_TYPE: Final = "message/x.rsocket.mime-type.v0"
ACCEPT: Final = "message/x.rsocket.accept-mime-types.v0"
AUTHENTICATION: Final = "message/x.rsocket.authentication.v0"
TRACING: Final = "message/x.rsocket.tracing-zipkin.v0"
ROUTING: Final = "message/x.rsocket.routing.v0"
COMPOSITE: Final = "message/x.rsocket.composite-metadata.v0"
OCTETS: Final = "application/octet-stream"
TEXT: Final = "text/plain"

NAMES: Final[dict[int, str]] = dict(
    enumerate(
        (
            "application/avro",
            "application/cbor",
            "application/graphql",
            "application/gzip",
            "application/javascript",
            "application/json",
            OCTETS,
            "application/pdf",
            "application/vnd.apache.thrift.binary",
            "application/vnd.google.protobuf",
            "application/xml",
            "application/zip",
            "audio/aac",
            "audio/mp3",
            "audio/mp4",
            "audio/mpeg3",
            "audio/mpeg",
            "audio/ogg",
            "audio/opus",
            "audio/vorbis",
            "image/bmp",
            "image/gif",
            "image/heic-sequence",
            "image/heic",
            "image/heif-sequence",
            "image/heif",
            "image/jpeg",
            "image/png",
            "image/tiff",
            "multipart/mixed",
            "text/css",
            "text/csv",
            "text/html",
            TEXT,
            "text/xml",
            "video/H264",
            "video/H265",
            "video/VP8",
            "application/x-hessian",
            "application/x-java-object",
            "application/cloudevents+json",
            "application/x-capnp",
            "application/x-flatbuffers",
        )
    )
) | {
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
    """Whether a MIME type is one that people know; peers of 2016 call text by its encoding."""
    kind = name.partition(";")[0].strip().lower()
    return kind in _LOWER or kind in ("utf-8", "")


_LOWER: Final = frozenset(name.lower() for name in NUMBERS)


class LiteralMime(str):
    """A MIME type that a peer spelled out although it has a number. It is that string, and is written as it came."""

    __slots__ = ()


def read_mime(data: bytes, at: int) -> tuple[str | int, int]:
    """Return the MIME type at offset `at`, a number where we have no name for it, and the offset behind it.

    Raises:
        FrameError: `data` ends before it does.

    """
    mime, end = numbered.read(data, at, "MIME type")
    if isinstance(mime, int):
        return NAMES.get(mime, mime), end
    return LiteralMime(mime) if mime in NUMBERS else mime, end


def write_mime(mime: str | int) -> bytes:
    """Return the bytes of a MIME type: its number where it has one, unless it is :class:`LiteralMime`.

    Raises:
        LocalError: It is no ASCII of 1 to 128 bytes, or no number from 0 to 127.

    """
    known = mime if isinstance(mime, int | LiteralMime) else NUMBERS.get(mime, mime)
    return numbered.write(known, "MIME type")
