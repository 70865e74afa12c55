"""Composite metadata for users; `metadata.py` has the fast functions for the route of each request."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from ...errors import FrameError, LocalError
from ...settings import DEFAULT_SETTINGS
from . import authentication, mimes, tracing
from .authentication import Authentication
from .metadata import composite, read_entries, route_tags, routing
from .tracing import TraceContext

__all__ = ["Entry", "Metadata", "mime_of", "request_mime"]

CACHED_MIMES: Final = 1_024
CACHED_BYTES: Final = 256
"""Longer metadata is rarely repeated."""
PUBLIC: Final = frozenset({mimes.ROUTING, mimes.MIME_TYPE, mimes.ACCEPT})
"""Entries that a cache may keep: they contain no secret, and do not differ between the requests for one route."""

# A client's requests for one route usually have the same metadata.
_cached_mimes: dict[bytes, str | None] = {}


class Entry(NamedTuple):
    """One entry of composite metadata. `repr` hides the content, which may be secret.

    Attributes:
        mime: The MIME type of the content; a number if its name is unknown.
        content: The bytes.

    """

    mime: str | int
    content: bytes

    def __repr__(self) -> str:
        return f"Entry({self.mime!r}, <{len(self.content)} bytes>)"


class Metadata:
    """Immutable composite metadata: the route of a request, credentials, the type of its data, and other entries.

    The entries have the order of the arguments. If a type occurs several times, the attribute has the value of the
    first entry, which is also the one that selects the handler; `entries` has all of them.

    Args:
        route: The route of a request.
        tags: All tags of the routing entry, beginning with the route, instead of `route`.
        auth: Credentials: :class:`~weirpool.Simple`, :class:`~weirpool.Bearer` or :class:`~weirpool.Custom`.
        mime: The MIME type of the request's data, if it is not the connection's.
        accept: The acceptable MIME types of the response.
        trace: The position of the request in a trace.
        entries: More entries, as pairs of MIME type and bytes. A MIME type without a name is a number.

    Attributes:
        entries: All entries in order, including those of the other attributes.
        tags, auth, mime, accept, trace: As the arguments; `tags` also contains the route.

    Raises:
        LocalError: A value does not fit into its field, or both `route` and `tags` are given.

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
            raise LocalError("both route and tags are given; pass the route as the first tag")
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
        """The route: the first tag of the routing entry; empty if there is none."""
        return self.tags[0] if self.tags else ""

    def encode(self) -> bytes:
        """Return the composite metadata as bytes. Decoded metadata is encoded to the same bytes.

        Raises:
            LocalError: A MIME type does not have 1 to 128 ASCII characters, or a content is longer than 16 MiB.

        """
        return composite(self.entries)

    def addressed(self, route: str) -> bytes:
        """Return the composite metadata of a request for `route`, which is added as the first entry if it is missing.

        Raises:
            LocalError: The metadata has another route; or as :meth:`encode`.

        """
        if self.tags or not route:
            if route and route != self.route:
                raise LocalError(f"the metadata has route {self.route[:40]!r}, but the request has {route[:40]!r}")
            return self.encode()
        return Metadata(route).encode() + self.encode()

    @classmethod
    def decode(cls, metadata: bytes | None, limit: int = DEFAULT_SETTINGS.max_metadata_entries) -> Metadata:
        """Return the decoded composite metadata; None is decoded as metadata without entries.

        Args:
            metadata: The metadata of a payload, on a connection with composite metadata.
            limit: The maximum number of entries, and of tags or MIME types in an entry.

        Raises:
            FrameError: It is not valid composite metadata, or an entry of an attribute is malformed.

        """
        new = cls.__new__(cls)
        new._fill([Entry(*entry) for entry in read_entries(metadata or b"", limit)], limit, from_peer=True)
        return new

    def _fill(self, entries: list[Entry], limit: int, from_peer: bool = False) -> None:
        """Set the entries, and each attribute from the first entry of its type."""
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
    """Return the MIME type of the data that composite metadata specifies, or None. Raises FrameError."""
    if metadata in _cached_mimes:
        return _cached_mimes[metadata]
    decoded = Metadata.decode(metadata)
    mime = f"0x{decoded.mime:02X}" if isinstance(decoded.mime, int) else decoded.mime
    public = len(decoded.tags) <= 1 and all(entry.mime in PUBLIC for entry in decoded.entries)
    if public and len(metadata) <= CACHED_BYTES:
        if len(_cached_mimes) >= CACHED_MIMES:
            # Strangers cannot occupy the cache for long.
            _cached_mimes.clear()
        _cached_mimes[metadata] = mime
    return mime


def request_mime(metadata_mime: str, metadata: bytes) -> str | None:
    """Return the MIME type of the data that a request's metadata specifies; None if it specifies none.

    `metadata_mime` is the connection's type of metadata. It may be empty, which means composite metadata.
    Raises FrameError if the metadata should be composite and is not.
    """
    return mime_of(metadata) if metadata_mime in ("", mimes.COMPOSITE) else None
