"""Composite metadata as users write and read it; `metadata.py` has what the route of each request needs, and fast."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple

from ...errors import FrameError, LocalError
from ...settings import DEFAULT_SETTINGS
from . import authentication, mimes, tracing
from .authentication import Authentication
from .metadata import composite, read_entries, route_tags, routing
from .tracing import TraceContext

__all__ = ["Entry", "Metadata", "mime_of", "request_mime"]

CACHED_BYTES: Final = 256
"""Longer metadata hardly comes twice."""


class Entry(NamedTuple):
    """One entry of composite metadata. Its content may be secret, and is not shown.

    Attributes:
        mime: What the content is; a number where we have no name for it.
        content: The bytes.

    """

    mime: str | int
    content: bytes

    def __repr__(self) -> str:
        return f"Entry({self.mime!r}, <{len(self.content)} bytes>)"


class Metadata:
    """Composite metadata: the route of a request, who asks, what its data is, and anything else.

    It is made of what is named here, in this order, and never changes. Where a type occurs more than once, its first
    entry counts, as it does for the route by which a handler is found; `entries` has them all.

    Args:
        route: The handler that a request is for.
        tags: All the tags of routing, the route among them, instead of `route` alone.
        auth: Who asks: :class:`~penstock.Simple`, :class:`~penstock.Bearer` or :class:`~penstock.Custom`.
        mime: The MIME type of the request's data, where it is not the connection's.
        accept: The MIME types that the answer may have.
        trace: Where in a trace the request stands.
        entries: Further entries, as pairs of MIME type and bytes. A number stands for a MIME type without a name.

    Attributes:
        entries: All entries in order, also those that the other attributes tell of.

    Raises:
        LocalError: Something does not fit into its field.

    """

    __slots__ = ("accept", "auth", "entries", "mime", "tags", "trace")

    def __init__(
        self,
        route: str = "",
        *,
        tags: Iterable[str] = (),
        auth: Authentication | None = None,
        mime: str | int | None = None,
        accept: Iterable[str | int] = (),
        trace: TraceContext | None = None,
        entries: Iterable[tuple[str | int, bytes]] = (),
    ) -> None:
        tags, accept = tuple(tags), tuple(accept)
        if route and tags:
            raise LocalError("give the route as the first of the tags, or alone")
        made: list[tuple[str | int, bytes]] = []
        if route or tags:
            made.append((mimes.ROUTING, routing(*(tags or (route,)))))
        if auth is not None:
            made.append((mimes.AUTHENTICATION, authentication.encode(auth)))
        if mime is not None:
            made.append((mimes.MIME_TYPE, mimes.write_mime(mime)))
        if accept:
            made.append((mimes.ACCEPT, mimes.encode_accept(accept)))
        if trace is not None:
            made.append((mimes.TRACING, tracing.encode(trace)))
        found = [
            Entry(mimes.NAMES.get(type, type) if isinstance(type, int) else type, content)
            for type, content in (*made, *entries)
        ]
        self._fill(found, max(len(tags), len(accept), DEFAULT_SETTINGS.max_metadata_entries))

    @property
    def route(self) -> str:
        """The handler that the request is for: the first tag of routing; empty when there is none."""
        return self.tags[0] if self.tags else ""

    def encode(self) -> bytes:
        """Return the composite metadata. What came from a peer is written as it came.

        Raises:
            LocalError: A MIME type is no ASCII of 1 to 128 bytes, or a content is longer than 16 MiB.

        """
        return composite(self.entries)

    def addressed(self, route: str) -> bytes:
        """Return the composite metadata of a request for `route`, which is named first unless it is named already.

        Raises:
            LocalError: Another route is named; or as :meth:`encode`.

        """
        if self.tags or not route:
            if route and route != self.route:
                raise LocalError(f"the metadata names route {self.route[:40]!r}, and the request {route[:40]!r}")
            return self.encode()
        return Metadata(route).encode() + self.encode()

    @classmethod
    def decode(cls, metadata: bytes | None, limit: int = DEFAULT_SETTINGS.max_metadata_entries) -> Metadata:
        """Return what composite metadata says; nothing where there is none.

        Args:
            metadata: The metadata of a payload, of a connection whose metadata is composite.
            limit: How many entries it may have at most, and how many tags or MIME types one of them.

        Raises:
            FrameError: It is no composite metadata, or one of the entries that become attributes is broken.

        """
        new = cls.__new__(cls)
        new._fill([Entry(*entry) for entry in read_entries(metadata or b"", limit)], limit, from_peer=True)
        return new

    def _fill(self, entries: list[Entry], limit: int, from_peer: bool = False) -> None:
        """Take the entries, and set the attributes by the first of each type."""
        self.entries: tuple[Entry, ...] = tuple(entries)
        self.tags: tuple[str, ...] = ()
        self.auth: Authentication | None = None
        self.mime: str | int | None = None
        self.accept: tuple[str | int, ...] = ()
        self.trace: TraceContext | None = None
        seen: set[str | int] = set()
        for index, (mime, content) in enumerate(entries):
            if mime not in seen:
                seen.add(mime)
                try:
                    self._take(mime, content, limit)
                except FrameError as error:
                    if not from_peer:
                        raise LocalError(f"entry {index}, {mime}: {error}") from None
                    start = len(composite(entries[: index + 1])) - len(content)
                    raise FrameError(f"entry {index}, {mime}: {error.message}", start + error.offset) from None

    def _take(self, mime: str | int, content: bytes, limit: int) -> None:
        if mime == mimes.ROUTING:
            tags = route_tags(content)
            if len(tags) > limit:
                raise FrameError(f"routing has more than {limit} tags")
            self.tags = tuple(tags)
        elif mime == mimes.AUTHENTICATION:
            self.auth = authentication.decode(content)
        elif mime == mimes.MIME_TYPE:
            self.mime = mimes.decode_mime(content)
        elif mime == mimes.ACCEPT:
            self.accept = mimes.decode_accept(content, limit)
        elif mime == mimes.TRACING:
            self.trace = tracing.decode(content)

    def __eq__(self, other: object) -> bool:
        return self.entries == other.entries if isinstance(other, Metadata) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.entries)

    def __repr__(self) -> str:
        names = ("tags", "auth", "mime", "accept", "trace", "entries")
        values = ((name, getattr(self, name)) for name in names)
        return f"Metadata({', '.join(f'{name}={value!r}' for name, value in values if value not in (None, ()))})"


def mime_of(metadata: bytes) -> str | None:
    """Return the MIME type that composite metadata gives the data beside it, or None. Raises FrameError."""
    return _cached_mime(metadata) if len(metadata) <= CACHED_BYTES else _mime(metadata)


def _mime(metadata: bytes) -> str | None:
    mime = Metadata.decode(metadata).mime
    return f"0x{mime:02X}" if isinstance(mime, int) else mime


# A client's requests for one route have the same metadata, as a rule.
_cached_mime = lru_cache(maxsize=1_024)(_mime)


def request_mime(metadata_mime: str, metadata: bytes) -> str | None:
    """Return the MIME type that a request's metadata gives the data beside it; None where it gives none.

    `metadata_mime` is that of the connection; a client may leave it empty, which means composite metadata.
    Raises FrameError if the metadata is not composite, and should be.
    """
    return mime_of(metadata) if metadata_mime in ("", mimes.COMPOSITE) else None
