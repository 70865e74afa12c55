"""Composite metadata and its entries, routes, MIME types, credentials and traces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.builds import Build

from fuzz.outcomes import attempt, vectors

LINES: Final = True
WORDS: Final = (b"\xfe\0\0", b"\xfc\0\0", b"\xfa\0\0\1", b"\xfb\0\0", b"\xfd\0\0", b"message/x.rsocket.routing.v0")
LIMIT: Final = 20
TYPES: Final = ("message/x.rsocket.composite-metadata.v0", "message/x.rsocket.routing.v0", "text/plain")


def seeds() -> Iterator[bytes]:
    """Yield the vectors of the extensions."""
    for raw, _ in vectors("rsocket-1.0-extensions"):
        yield raw


def outcome(build: Build, data: bytes) -> object:
    """Return everything that can be read, and whether it is encoded to the same bytes."""
    module = build.module("penstock.rsocket.extensions.metadata")
    composite = build.module("penstock.rsocket.extensions.composite")
    found: list[object] = [attempt(build, module.Router(mime, LIMIT).route, data) for mime in TYPES]
    found.append(attempt(build, composite.mime_of, data))
    decoded = attempt(build, composite.Metadata.decode, data, LIMIT)
    if not isinstance(decoded, tuple):
        assert decoded.encode() == data
        decoded = repr(decoded), repr(decoded.auth), [tuple(entry) for entry in decoded.entries]
    found.append(decoded)
    for name in ("authentication.decode", "tracing.decode", "mimes.decode_mime"):
        part, function = name.split(".")
        read = getattr(build.module(f"penstock.rsocket.extensions.{part}"), function)
        found.append(repr(attempt(build, read, data)))
    return found
