"""The states of a River session and of its link, and the transitions between them.

Tests drive a session along each row of `TRANSITIONS`, and the documentation's diagrams are generated from it. A client
may open streams before its first handshake is accepted, so a new session is open immediately.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

__all__ = ["CLOSED", "DOWN", "DRAINING", "HANDSHAKING", "OPENED", "TRANSITIONS", "UP", "LinkState", "SessionState"]


class SessionState(IntEnum):
    """Whether a session accepts new streams, and whether it has ended."""

    OPENED = 1
    DRAINING = 2
    """Open streams may finish. This side opens no new streams."""
    CLOSED = 3


class LinkState(IntEnum):
    """River, State Transitions: whether there is a link, and whether it carries streams."""

    DOWN = 0
    HANDSHAKING = 1
    """A client has sent its handshake and waits for the response."""
    UP = 2


# Plain integers, because the compiled session compares them for each message.
OPENED, DRAINING, CLOSED = map(int, SessionState)
DOWN, HANDSHAKING, UP = map(int, LinkState)

TRANSITIONS: Final[Mapping[tuple[SessionState | LinkState, str], SessionState | LinkState]] = {
    (SessionState.OPENED, "close, streams are open"): SessionState.DRAINING,
    (SessionState.OPENED, "close, no stream is open"): SessionState.CLOSED,
    (SessionState.OPENED, "error"): SessionState.CLOSED,
    (SessionState.DRAINING, "the last stream has ended"): SessionState.CLOSED,
    (SessionState.DRAINING, "error"): SessionState.CLOSED,
    (LinkState.DOWN, "connected (client)"): LinkState.HANDSHAKING,
    (LinkState.DOWN, "handshake accepted (server)"): LinkState.UP,
    (LinkState.HANDSHAKING, "handshake accepted"): LinkState.UP,
    (LinkState.HANDSHAKING, "handshake refused"): LinkState.DOWN,
    (LinkState.HANDSHAKING, "link lost"): LinkState.DOWN,
    (LinkState.HANDSHAKING, "no answer in time"): LinkState.DOWN,
    (LinkState.UP, "handshake on another link (server)"): LinkState.UP,
    (LinkState.UP, "link lost"): LinkState.DOWN,
    (LinkState.UP, "message out of order"): LinkState.DOWN,
    (LinkState.UP, "silence"): LinkState.DOWN,
    (LinkState.UP, "session closed"): LinkState.DOWN,
}
"""(State, cause) to next state, for sessions and links."""
