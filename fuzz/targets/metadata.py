"""Composite metadata and its entries, routes, MIME types, credentials and traces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from rsocket.extensions.authentication_content import AuthenticationContent
from rsocket.extensions.composite_metadata import CompositeMetadata
from rsocket.extensions.routing import RoutingMetadata
from rsocket.extensions.stream_data_mimetype import StreamDataMimetype, StreamDataMimetypes
from tests.builds import Build

from fuzz.outcomes import attempt, vectors
from fuzz.targets import Difference

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
    module = build.module("weirpool.rsocket.extensions.metadata")
    composite = build.module("weirpool.rsocket.extensions.composite")
    found: list[object] = [attempt(build, module.Router(mime, LIMIT).route, data) for mime in TYPES]
    found.append(attempt(build, composite.mime_of, data))
    decoded = attempt(build, composite.Metadata.decode, data, LIMIT)
    if not isinstance(decoded, tuple):
        assert decoded.encode() == data
        decoded = repr(decoded), repr(decoded.auth), [tuple(entry) for entry in decoded.entries]
    found.append(decoded)
    for name in ("authentication.decode", "tracing.decode", "mimes.decode_mime"):
        part, function = name.split(".")
        read = getattr(build.module(f"weirpool.rsocket.extensions.{part}"), function)
        found.append(repr(attempt(build, read, data)))
    return found


def judge(build: Build, data: bytes, found: Any) -> None:
    """Compare valid composite metadata with rsocket-py, which checks no lengths."""
    ours = attempt(build, build.module("weirpool.rsocket.extensions.composite").Metadata.decode, data, LIMIT)
    if isinstance(ours, tuple):
        return
    try:
        items = CompositeMetadata().parse(data).items
    except Exception:
        # Among them numbers of types, and types of credentials, that it does not know.
        return
    first = {type(item): item for item in reversed(items)}
    routing, mime = first.get(RoutingMetadata), first.get(StreamDataMimetype)
    accept, credentials = first.get(StreamDataMimetypes), first.get(AuthenticationContent)
    pairs = [
        ([_bytes(entry.mime) for entry in ours.entries], [item.encoding for item in items]),
        (list(ours.tags), [tag.decode(errors="replace") for tag in routing.tags] if routing else []),
        (_bytes(ours.mime), mime.data_encoding if mime else None),
        ([_bytes(each) for each in ours.accept], accept.data_encodings if accept else []),
    ]
    if hasattr(ours.auth, "username"):
        shown = credentials.authentication
        pairs.append(((ours.auth.username.encode(), ours.auth.password.encode()), (shown.username, shown.password)))
    if hasattr(ours.auth, "token"):
        pairs.append((ours.auth.token.encode(), credentials.authentication.token))
    wrong = [pair for pair in pairs if pair[0] != pair[1]]
    if wrong:
        raise Difference(f"what is read, and what rsocket-py reads: {wrong}")


def _bytes(mime: Any) -> Any:
    return mime.encode("ascii", "surrogateescape") if isinstance(mime, str) else mime
