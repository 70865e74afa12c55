"""Where in a trace a request stands: the extension Tracing (Zipkin), and W3C Trace Context as entries of metadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ...connection import Carried
from ...errors import FrameError, LocalError
from ...payload import Payload
from .metadata import composite, entries, routing
from .mimes import COMPOSITE, OCTETS, ROUTING

__all__ = ["CompositeCarrier", "TraceContext", "decode", "encode"]

# Tracing (Zipkin), Metadata Contents: the flags from the highest bit on; the two lowest are not used.
IDS: Final = 0x80
DEBUG: Final = 0x40
SAMPLED: Final = 0x20
NOT_SAMPLED: Final = 0x10
WIDE: Final = 0x08
PARENT: Final = 0x04

ID_BYTES: Final = 8
WIDE_ID_BYTES: Final = 16
W3C_SAMPLED: Final = 0x01
"""W3C Trace Context, Trace Flags: the caller may have recorded this."""
W3C: Final = "message/x.w3c."
"""What stands before the name of a W3C header in the MIME type of its entry: message/x.w3c.traceparent."""
FIELDS: Final = 16
"""Fields that are taken from one request: propagators have one to three."""
FIELD_BYTES: Final = 8_192
"""One of them; W3C Baggage, Limits: baggage of 8,192 bytes must be passed on, and the others are shorter."""


@dataclass(frozen=True, slots=True)
class TraceContext:
    """Where in a trace a request stands, and whether it is to be recorded.

    Attributes:
        trace_id: The whole trace, 64 or 128 bits; None, as `span_id`, to speak only of sampling.
        span_id: The request, 64 bits.
        parent_id: What caused the request, 64 bits; None at the root of a trace.
        sampled: Whether it is to be recorded; None leaves that to whoever receives it.
        debug: It is to be recorded whatever `sampled` says.
        wide: The trace id travels in 128 bits. It does so anyway when it needs them.

    Raises:
        LocalError: An id is out of range, or stands without those that it needs.

    """

    trace_id: int | None = None
    span_id: int | None = None
    parent_id: int | None = None
    sampled: bool | None = None
    debug: bool = False
    wide: bool = False

    def __post_init__(self) -> None:
        if (self.trace_id is None) != (self.span_id is None):
            raise LocalError("a trace has a trace_id and a span_id, or neither")
        if self.trace_id is None and (self.parent_id is not None or self.wide):
            raise LocalError("parent_id and wide mean nothing without a trace_id")
        for name, size in (("trace_id", WIDE_ID_BYTES), ("span_id", ID_BYTES), ("parent_id", ID_BYTES)):
            number = getattr(self, name)
            if number is not None and not 0 <= number < 1 << (8 * size):
                raise LocalError(f"{name} must lie between 0 and 2^{8 * size} - 1")
        if self.trace_id is not None and self.trace_id >> (8 * ID_BYTES):
            object.__setattr__(self, "wide", True)

    @classmethod
    def from_w3c(cls, trace_id: int, span_id: int, flags: int = 0) -> TraceContext:
        """Return what a W3C `traceparent`, or a span of OpenTelemetry, says; its trace id has 128 bits.

        Args:
            trace_id: 1 to 2^128-1.
            span_id: 1 to 2^64-1.
            flags: The trace flags, of which only "sampled" counts.

        Raises:
            LocalError: An id is 0, which W3C Trace Context calls invalid, or is too large.

        """
        if not (trace_id and span_id):
            raise LocalError("a W3C trace id and span id must not be 0: this is no trace")
        return cls(trace_id, span_id, sampled=bool(flags & W3C_SAMPLED), wide=True)

    def to_w3c(self) -> tuple[int, int, int] | None:
        """Return trace id, span id and trace flags as W3C Trace Context has them; None where there are no ids.

        A trace id of 64 bits is the same number there.
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
    """Return what a `message/x.rsocket.tracing-zipkin.v0` entry says. Raises FrameError for a wrong length."""
    if not content:
        raise FrameError("tracing metadata has no flags")
    flags = content[0]
    # Not Sampled is ignored where Sample is set.
    sampled = True if flags & SAMPLED else False if flags & NOT_SAMPLED else None
    debug = bool(flags & DEBUG)
    has_ids, wide, has_parent = bool(flags & IDS), bool(flags & WIDE), bool(flags & PARENT)
    span_at = 1 + (WIDE_ID_BYTES if wide else ID_BYTES)
    parent_at = span_at + ID_BYTES
    end = (parent_at + (ID_BYTES if has_parent else 0)) if has_ids else 1
    if len(content) != end:
        raise FrameError(f"tracing metadata is {len(content)} bytes; its flags 0x{flags:02X} say {end}")
    if not has_ids:
        return TraceContext(sampled=sampled, debug=debug)
    trace_id = int.from_bytes(content[1:span_at], "big")
    span_id = int.from_bytes(content[span_at:parent_at], "big")
    parent_id = int.from_bytes(content[parent_at:end], "big") if has_parent else None
    return TraceContext(trace_id, span_id, parent_id, sampled, debug, wide)


class CompositeCarrier:
    """Carries each field as an entry of RSocket's composite metadata.

    The MIME type of an entry is `prefix` and the field's name, its content the field's value. A connection whose
    metadata is of another kind carries nothing.

    Args:
        prefix: What the MIME types begin with.

    """

    def __init__(self, prefix: str = W3C) -> None:
        self._prefix = prefix

    def write(self, request: Carried, fields: Mapping[str, str]) -> None:
        """Put `fields` beside the route and the request's own metadata."""
        connection = request.connection
        if not fields or connection.protocol != "rsocket" or connection.metadata_mime not in ("", COMPOSITE):
            return
        payload = request.payload
        parts = [(self._prefix + name, value.encode()) for name, value in fields.items()]
        # Metadata that names its route, or needs none, is composite already.
        whole = request.routed or not request.route
        own = payload.metadata or b""
        if not whole:
            parts.insert(0, (ROUTING, routing(request.route)))
            own = b"" if payload.metadata is None else composite([(OCTETS, payload.metadata)])
        request.payload = Payload(payload.data, own + composite(parts) if whole else composite(parts) + own)
        request.routed = True

    def read(self, request: Carried) -> dict[str, str]:
        """Return the fields among the entries of a request."""
        metadata = request.payload.metadata
        if metadata is None or request.connection.metadata_mime != COMPOSITE:
            return {}
        try:
            found = entries(metadata)
        except FrameError:
            # The route was there to be read, and what is behind it concerns nobody else.
            return {}
        fields: dict[str, str] = {}
        for mime, content in found:
            if mime.startswith(self._prefix) and len(content) <= FIELD_BYTES and len(fields) < FIELDS:
                fields.setdefault(mime.removeprefix(self._prefix), content.decode("ascii", "replace"))
        return fields
