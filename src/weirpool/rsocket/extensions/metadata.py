"""Composite metadata and routing: the RSocket extensions for the route of a request."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ...errors import FrameError, LocalError
from .mimes import COMPOSITE, KNOWN, NAMES, NUMBERS, OCTET_STREAM, ROUTING, read_mime, write_mime

__all__ = ["Router", "composite", "entries", "read_entries", "route_tags", "routing"]

MAX_TAG_BYTES: Final = 255
MAX_ENTRY_BYTES: Final = 0xFFFFFF
"""Composite Metadata: lengths have 24 bits."""

CACHED_ROUTES: Final = 1_024
"""Maximum number of cached routes in each direction: more than services have, and a limit for hostile peers."""
CACHED_BYTES: Final = 256
"""Longer metadata contains more than a route, and is rarely repeated."""


def composite(parts: Iterable[tuple[str | int, bytes]]) -> bytes:
    """Encode (MIME type or number, content) pairs as composite metadata. Raises LocalError if one is too long."""
    out = bytearray()
    for mime, content in parts:
        number = NUMBERS.get(mime) if type(mime) is str else None
        if number is not None:
            out.append(KNOWN | number)
        else:
            out += write_mime(mime)
        if len(content) > MAX_ENTRY_BYTES:
            raise LocalError(f"the metadata entry of type {mime!r} is longer than {MAX_ENTRY_BYTES} bytes")
        out += len(content).to_bytes(3, "big")
        out += content
    return bytes(out)


def entries(metadata: bytes, limit: int = 256) -> list[tuple[str, bytes]]:
    """Return the entries of composite metadata with names of types; unknown ones are `0xNN`. See `read_entries`."""
    return [(_name_of(mime), content) for mime, content in read_entries(metadata, limit)]


def _name_of(mime: str | int) -> str:
    if isinstance(mime, int):
        return f"0x{mime:02X}"
    return str(mime) if mime.isascii() else mime.encode("ascii", "surrogateescape").decode("ascii", "replace")


def read_entries(metadata: bytes, limit: int) -> list[tuple[str | int, bytes]]:
    """Decode composite metadata into (MIME type or number, content) pairs, which are encoded to the same bytes.

    Raises FrameError if a length runs past the end, or if there are more than `limit` entries.
    """
    found: list[tuple[str | int, bytes]] = []
    at, end = 0, len(metadata)
    while at < end:
        if len(found) == limit:
            # THREATS: a million empty entries.
            raise FrameError(f"composite metadata has more than {limit} entries", at)
        first = metadata[at]
        mime: str | int
        if first & KNOWN:
            mime = NAMES.get(first & ~KNOWN, first & ~KNOWN)
            at += 1
        else:
            mime, at = read_mime(metadata, at)
        start = at + 3
        if start > end:
            raise FrameError("composite metadata ends within an entry's length", at)
        length = int.from_bytes(metadata[at:start], "big")
        if start + length > end:
            raise FrameError(f"an entry of {length} bytes runs past the composite metadata", at)
        at = start + length
        found.append((mime, metadata[start:at]))
    return found


def routing(*tags: str) -> bytes:
    """Encode `tags` as routing metadata. Raises LocalError if one is longer than 255 bytes of UTF-8."""
    out = bytearray()
    for tag in tags:
        raw = tag.encode()
        if len(raw) > MAX_TAG_BYTES:
            raise LocalError(f"route {tag[:40]!r}... has {len(raw)} bytes of UTF-8; the maximum is {MAX_TAG_BYTES}")
        out.append(len(raw))
        out += raw
    return bytes(out)


def route_tags(content: bytes) -> list[str]:
    """Decode the tags of routing metadata. Raises FrameError if a length runs past the end."""
    tags: list[str] = []
    at = 0
    while at < len(content):
        end = at + 1 + content[at]
        if end > len(content):
            raise FrameError(f"a routing tag of {content[at]} bytes runs past the metadata", at)
        tags.append(content[at + 1 : end].decode("utf-8", "replace"))
        at = end
    return tags


class Router:
    """Writes and reads the route of a request, in the format of the connection's metadata type.

    Args:
        mime: The type of the connection's metadata. If it is neither composite nor routing metadata, the
            metadata is the route in UTF-8.
        limit: The maximum number of entries in composite metadata.

    """

    def __init__(self, mime: str = COMPOSITE, limit: int = 256) -> None:
        self._mime = mime
        self._limit = limit
        # The size of metadata that has only the route, without the route; -1: decoding is as fast as a cache.
        self._bare_bytes = len(self._encode("")) if mime in (COMPOSITE, ROUTING) else -1
        self._encoded: dict[str, bytes] = {}
        self._decoded: dict[bytes, str] = {}

    def metadata(self, route: str, metadata: bytes | None) -> bytes | None:
        """Return the metadata of a request for `route`; other `metadata` becomes an additional entry.

        Raises LocalError if the route is too long, or if the connection's type of metadata cannot contain both.
        """
        if not route:
            return metadata
        head = self._encoded.get(route)
        if head is None:
            head = self._encode(route)
            if len(self._encoded) < CACHED_ROUTES:
                self._encoded[route] = head
        if metadata is None:
            return head
        if self._mime != COMPOSITE:
            raise LocalError(f"metadata of type {self._mime} contains only the route; use {COMPOSITE}")
        return head + composite([(OCTET_STREAM, metadata)])

    def route(self, metadata: bytes | None) -> str:
        """Return the route in a request's metadata, or an empty string.

        Raises FrameError if the metadata is not of the connection's type.
        """
        if metadata is None:
            return ""
        route = self._decoded.get(metadata)
        if route is None:
            route = self._decode(metadata)
            if len(metadata) <= CACHED_BYTES and len(self._decoded) < CACHED_ROUTES and self._is_bare(metadata, route):
                self._decoded[metadata] = route
        return route

    def _is_bare(self, metadata: bytes, route: str) -> bool:
        """Return whether `metadata` has only the route: anything else may be secret, and must not stay in a cache."""
        raw = route.encode()
        return len(metadata) - len(raw) == self._bare_bytes and metadata.endswith(raw)

    def _encode(self, route: str) -> bytes:
        if self._mime == COMPOSITE:
            return composite([(ROUTING, routing(route))])
        return routing(route) if self._mime == ROUTING else route.encode()

    def _decode(self, metadata: bytes) -> str:
        if self._mime == ROUTING:
            tags = route_tags(metadata)
            return tags[0] if tags else ""
        if self._mime != COMPOSITE:
            return metadata.decode("utf-8", "replace")
        for mime, content in read_entries(metadata, self._limit):
            if mime == ROUTING:
                tags = route_tags(content)
                return tags[0] if tags else ""
        return ""
