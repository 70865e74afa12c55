"""Trace contexts in metadata: the extension Tracing (Zipkin), and W3C Trace Context."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ...connection import Carried
from ...errors import FrameError, LocalError
from ...payload import Payload
from .metadata import composite, entries, routing
from .mimes import COMPOSITE, OCTET_STREAM, ROUTING, TRACING

__all__ = ["CompositeCarrier", "TraceContext", "decode", "encode"]

# Tracing (Zipkin), Metadata Contents: the flags, beginning with the highest bit; the two lowest are unused.
IDS: Final = 0x80
DEBUG: Final = 0x40
SAMPLED: Final = 0x20
NOT_SAMPLED: Final = 0x10
WIDE: Final = 0x08
PARENT: Final = 0x04

ID_BYTES: Final = 8
WIDE_ID_BYTES: Final = 16
W3C_SAMPLED: Final = 0x01
"""W3C Trace Context, Trace Flags: the caller may have recorded the trace."""
W3C: Final = "message/x.w3c."
"""The prefix of the MIME type of a W3C header, as in message/x.w3c.traceparent."""
TRACEPARENT: Final = "traceparent"
PLAIN: Final = frozenset(
    (TRACEPARENT, "tracestate", "baggage", "b3", "x-b3-traceid", "x-b3-spanid", "x-b3-sampled", "x-b3-flags")
)
"""The fields of W3C and of B3, whose names Micrometer and Spring use as MIME types."""
_TRACEPARENT: Final = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
MAX_FIELDS: Final = 16
"""Maximum number of fields read from one request. Propagators have one to three."""
MAX_FIELD_BYTES: Final = 8_192
"""Maximum size of a field. W3C Baggage, Limits: 8,192 bytes must be propagated; other fields are shorter."""


@dataclass(frozen=True, slots=True)
class TraceContext:
    """The position of a request in a trace, and whether the trace is recorded.

    Attributes:
        trace_id: The id of the trace, 64 or 128 bits; None, like `span_id`, if only sampling is specified.
        span_id: The id of the request, 64 bits.
        parent_id: The id of the span that caused the request, 64 bits; None at the root of a trace.
        sampled: Whether to record the trace; None lets the receiver decide.
        debug: Whether to record the trace regardless of `sampled`.
        wide: Whether to encode the trace id in 128 bits. Always True if it needs them.

    Raises:
        LocalError: An id is out of range, or is given without the ids that it needs.

    """

    trace_id: int | None = None
    span_id: int | None = None
    parent_id: int | None = None
    sampled: bool | None = None
    debug: bool = False
    wide: bool = False

    def __post_init__(self) -> None:
        if (self.trace_id is None) != (self.span_id is None):
            raise LocalError("trace_id and span_id must both be given, or neither")
        if self.trace_id is None and (self.parent_id is not None or self.wide):
            raise LocalError("parent_id and wide require a trace_id")
        for name, size in (("trace_id", WIDE_ID_BYTES), ("span_id", ID_BYTES), ("parent_id", ID_BYTES)):
            number = getattr(self, name)
            if number is not None and not 0 <= number < 1 << (8 * size):
                raise LocalError(f"{name} must be between 0 and 2^{8 * size} - 1")
        if self.trace_id is not None and self.trace_id >> (8 * ID_BYTES):
            object.__setattr__(self, "wide", True)

    @classmethod
    def from_w3c(cls, trace_id: int, span_id: int, flags: int = 0) -> TraceContext:
        """Return the context of a W3C `traceparent`, or of an OpenTelemetry span; its trace id has 128 bits.

        Args:
            trace_id: 1 to 2^128-1.
            span_id: 1 to 2^64-1.
            flags: The trace flags, of which only "sampled" is used.

        Raises:
            LocalError: An id is 0, which W3C Trace Context calls invalid, or is too large.

        """
        if not (trace_id and span_id):
            raise LocalError("a W3C trace id and span id must not be 0")
        return cls(trace_id, span_id, sampled=bool(flags & W3C_SAMPLED), wide=True)

    def to_w3c(self) -> tuple[int, int, int] | None:
        """Return trace id, span id and trace flags for W3C Trace Context; None if there are no ids.

        A trace id of 64 bits stays the same number.
        """
        if not (self.trace_id and self.span_id):
            return None
        return self.trace_id, self.span_id, W3C_SAMPLED if self.sampled or self.debug else 0


def encode(trace: TraceContext) -> bytes:
    """Return the content of a `message/x.rsocket.tracing-zipkin.v0` entry."""
    flags = DEBUG if trace.debug else 0
    if trace.sampled is not None:
        flags |= SAMPLED if trace.sampled else NOT_SAMPLED
    if trace.trace_id is None or trace.span_id is None:
        return bytes((flags,))
    ids = trace.trace_id.to_bytes(WIDE_ID_BYTES if trace.wide else ID_BYTES, "big")
    ids += trace.span_id.to_bytes(ID_BYTES, "big")
    if trace.parent_id is not None:
        flags |= PARENT
        ids += trace.parent_id.to_bytes(ID_BYTES, "big")
    return bytes((flags | IDS | (WIDE if trace.wide else 0),)) + ids


def decode(content: bytes) -> TraceContext:
    """Return the context in a `message/x.rsocket.tracing-zipkin.v0` entry. Raises FrameError if its length is wrong."""
    if not content:
        raise FrameError("tracing metadata has no flags")
    flags = content[0]
    # "Not Sampled" is ignored if "Sample" is set.
    sampled = True if flags & SAMPLED else False if flags & NOT_SAMPLED else None
    debug = bool(flags & DEBUG)
    has_ids, wide, has_parent = bool(flags & IDS), bool(flags & WIDE), bool(flags & PARENT)
    span_at = 1 + (WIDE_ID_BYTES if wide else ID_BYTES)
    parent_at = span_at + ID_BYTES
    end = (parent_at + (ID_BYTES if has_parent else 0)) if has_ids else 1
    if len(content) != end:
        raise FrameError(f"tracing metadata has {len(content)} bytes; with flags 0x{flags:02X} it must have {end}")
    if not has_ids:
        return TraceContext(sampled=sampled, debug=debug)
    trace_id = int.from_bytes(content[1:span_at], "big")
    span_id = int.from_bytes(content[span_at:parent_at], "big")
    parent_id = int.from_bytes(content[parent_at:end], "big") if has_parent else None
    return TraceContext(trace_id, span_id, parent_id, sampled, debug, wide)


class CompositeCarrier:
    """Carries fields in RSocket's composite metadata. Connections without composite metadata carry no fields.

    A field is written as one entry. It is read from any of three forms, because peers differ: an entry of the MIME type
    `message/x.w3c.NAME`; one of the MIME type NAME, as Micrometer and Spring write it; and the trace of the extension
    Tracing (Zipkin), if there is no `traceparent`.

    Args:
        prefix: The prefix of the MIME types that are written, and read too; empty for Micrometer and Spring.
        zipkin: Write the trace as the extension Tracing (Zipkin) defines, and no other field.

    """

    def __init__(self, prefix: str = W3C, *, zipkin: bool = False) -> None:
        self._prefix = prefix
        self._zipkin = zipkin

    def write(self, request: Carried, fields: Mapping[str, str]) -> None:
        """Add `fields` to the metadata of a request, and its route if it is missing."""
        connection = request.connection
        parts = _zipkin_entries(fields) if self._zipkin else self._entries(fields)
        if not parts or connection.protocol != "rsocket" or connection.metadata_mime not in ("", COMPOSITE):
            return
        payload = request.payload
        # Metadata that contains its route, or needs none, is composite already.
        is_composite = request.routed or not request.route
        own = payload.metadata or b""
        if not is_composite:
            parts.insert(0, (ROUTING, routing(request.route)))
            own = b"" if payload.metadata is None else composite([(OCTET_STREAM, payload.metadata)])
        request.payload = Payload(payload.data, own + composite(parts) if is_composite else composite(parts) + own)
        request.routed = True

    def read(self, request: Carried) -> dict[str, str]:
        """Return the fields among the entries of a request."""
        metadata = request.payload.metadata
        if metadata is None or request.connection.metadata_mime != COMPOSITE:
            return {}
        return self.fields(metadata)

    def fields(self, metadata: bytes) -> dict[str, str]:
        """Return the fields among the entries of composite metadata, of a request or of an item."""
        try:
            found = entries(metadata)
        except FrameError:
            # The route of a request could be read, so only the fields are ignored.
            return {}
        fields: dict[str, str] = {}
        zipkin = ""
        for mime, content in found:
            name = self._name(mime)
            if name and len(content) <= MAX_FIELD_BYTES and len(fields) < MAX_FIELDS:
                fields.setdefault(name, content.decode("ascii", "replace"))
            elif mime == TRACING:
                zipkin = zipkin or _traceparent(content)
        if zipkin:
            fields.setdefault(TRACEPARENT, zipkin)
        return fields

    def _entries(self, fields: Mapping[str, str]) -> list[tuple[str, bytes]]:
        return [(self._prefix + name, value.encode()) for name, value in fields.items()]

    def _name(self, mime: str) -> str:
        """Return the name of the field in an entry; empty if it has none."""
        for prefix in filter(None, (self._prefix, W3C)):
            if mime.startswith(prefix):
                return mime.removeprefix(prefix)
        return mime if mime in PLAIN else ""


def _zipkin_entries(fields: Mapping[str, str]) -> list[tuple[str, bytes]]:
    """Return the trace of a `traceparent` as an entry of the extension; none if there is no valid one."""
    match = _TRACEPARENT.fullmatch(fields.get(TRACEPARENT, ""))
    if match is None:
        return []
    trace_id, span_id, flags = (int(part, 16) for part in match.groups())
    return [(TRACING, encode(TraceContext.from_w3c(trace_id, span_id, flags)))] if trace_id and span_id else []


def _traceparent(content: bytes) -> str:
    """Return the trace of an entry of the extension as a `traceparent`; empty if it has none."""
    try:
        context = decode(content).to_w3c()
    except FrameError:
        return ""
    return "" if context is None else f"00-{context[0]:032x}-{context[1]:016x}-{context[2]:02x}"
