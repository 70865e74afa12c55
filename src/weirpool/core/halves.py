"""The state of a stream: two halves, each IDLE, then OPEN, then DONE.

A *half* is one direction. Every stream has a requester's half, in which items travel from the side that
opened it, and a responder's half. Rule 1: only the two tables of this file define how the state of a half
changes. Rule 2: this file does not know which of the two sides is the local one.

    kind      requester's half      responder's half
    CALL      the request itself    one item
    FIRE      the request itself    nothing
    STREAM    the request itself    items
    CHANNEL   items                 items
    UPLOAD    items                 one item
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from ..kinds import Kind

__all__ = ["DONE", "IDLE", "INITIAL", "MAX_REQUEST_N", "OPEN", "TERMINAL", "Signal", "add"]

# Plain integers, because compiled code compares them for every frame.
IDLE: Final = 0
OPEN: Final = 1
DONE: Final = 2
MAX_REQUEST_N: Final = 0x7FFFFFFF
"""RSocket 1.0, REQUEST_N: 31 bits. The largest value is an ordinary number and does not mean "unbounded"."""


class Signal(IntEnum):
    """The signals that end a half."""

    COMPLETE = 1
    FAIL = 2
    CANCEL = 3


INITIAL: Final[dict[Kind, tuple[int, int]]] = {
    # kind: (requester's half, responder's half), once the request is sent
    Kind.CALL: (DONE, OPEN),
    Kind.FIRE: (DONE, DONE),
    Kind.STREAM: (DONE, OPEN),
    Kind.CHANNEL: (OPEN, OPEN),
    Kind.UPLOAD: (OPEN, OPEN),
}

TERMINAL: Final[dict[tuple[Signal, bool], tuple[bool, bool]]] = {
    # (signal, sent by the requester): (ends the requester's half, ends the responder's half)
    (Signal.COMPLETE, True): (True, False),
    (Signal.COMPLETE, False): (False, True),
    # RSocket 1.0, Request Channel: an error of either side ends both halves.
    (Signal.FAIL, True): (True, True),
    (Signal.FAIL, False): (True, True),
    # RSocket 1.0, Request Channel: the requester's CANCEL ends the stream; the responder's CANCEL ends only
    # the half in which it receives.
    (Signal.CANCEL, True): (True, True),
    (Signal.CANCEL, False): (True, False),
}
"""In a protocol without half-close (ReactiveSocket 0.2), the responder's COMPLETE ends the same halves as FAIL."""


def add(credit: int, count: int) -> int:
    """Return `credit + count`, where `credit` is how many items a half may still carry; at most 2^31-1.

    RSocket 1.0, Reactive Streams Semantics.
    """
    return min(credit + count, MAX_REQUEST_N)
