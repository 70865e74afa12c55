"""The trace context of a request, as given by --trace."""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING, Any, Final

from ..errors import LocalError

if TYPE_CHECKING:
    from .. import TraceContext

__all__ = ["WORDS", "b3", "trace_context"]

WORDS: Final = ("sampled", "unsampled", "debug", "undecided")
"""Sampling decisions for a new trace."""

_B3 = re.compile(r"([0-9a-f]{32}|[0-9a-f]{16})-([0-9a-f]{16})(?:-([01d]))?(?:-([0-9a-f]{16}))?")
"""B3 Propagation, Single Header: trace id, span id, sampling state, parent span id."""
_W3C = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
"""W3C Trace Context, traceparent Header."""

_SAMPLING: Final[dict[str | None, dict[str, Any]]] = {
    "sampled": {"sampled": True},
    "unsampled": {"sampled": False},
    "debug": {"debug": True},
    "undecided": {},
    "1": {"sampled": True},
    "0": {"sampled": False},
    "d": {"debug": True},
    None: {},
}


def trace_context(text: str) -> TraceContext:
    """Return a new trace context, or the one in the value of a `b3` or `traceparent` header.

    Raises:
        LocalError: `text` is neither.

    """
    from .. import TraceContext

    if text in WORDS:
        # An id of 0 is invalid.
        return TraceContext(secrets.randbits(128) | 1, secrets.randbits(64) | 1, wide=True, **_SAMPLING[text])
    if found := _W3C.fullmatch(text):
        return TraceContext.from_w3c(int(found[1], 16), int(found[2], 16), int(found[3], 16))
    if found := _B3.fullmatch(text):
        parent = None if found[4] is None else int(found[4], 16)
        ids = int(found[1], 16), int(found[2], 16), parent
        return TraceContext(*ids, wide=len(found[1]) == 32, **_SAMPLING[found[3]])
    raise LocalError(f"{text!r} is not a trace; use {', '.join(WORDS)}, or the value of a b3 or traceparent header")


def b3(trace: TraceContext) -> str:
    """Return the value of a `b3` header for a trace context."""
    state = "-d" if trace.debug else "" if trace.sampled is None else f"-{int(trace.sampled)}"
    parent = "" if trace.parent_id is None else f"-{trace.parent_id:016x}"
    return f"{trace.trace_id:0{32 if trace.wide else 16}x}-{trace.span_id:016x}{state}{parent}"
