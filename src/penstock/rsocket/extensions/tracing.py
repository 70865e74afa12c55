"""Tracing (Zipkin): the extension that carries where in a trace a request stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ...errors import FrameError, LocalError

__all__ = ["TraceContext", "decode", "encode"]

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
    """Return what a `message/x.rsocket.tracing-zipkin.v0` entry says.

    Raises:
        FrameError: It is shorter or longer than its flags say.

    """
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
