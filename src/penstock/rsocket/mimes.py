"""Well-known MIME types: the RSocket extension that gives the common ones a number."""

from __future__ import annotations

from typing import Final

__all__ = ["COMPOSITE", "NAMES", "NUMBERS", "OCTETS", "ROUTING", "TEXT", "is_known"]

COMPOSITE: Final = "message/x.rsocket.composite-metadata.v0"
ROUTING: Final = "message/x.rsocket.routing.v0"
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
    0x7A: "message/x.rsocket.mime-type.v0",
    0x7B: "message/x.rsocket.accept-mime-types.v0",
    0x7C: "message/x.rsocket.authentication.v0",
    0x7D: "message/x.rsocket.tracing-zipkin.v0",
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
