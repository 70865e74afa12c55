"""The states of a session, which has one link and ends with it."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

__all__ = ["CLOSED", "DRAINING", "LEAVING", "NEW", "OPENED", "TRANSITIONS", "SessionState"]


class SessionState(IntEnum):
    """What a session may do."""

    NEW = 0
    """A server waits for clientHello; a client has had no link yet."""
    OPENED = 1
    """Streams flow. A client need not wait for serverHello."""
    DRAINING = 2
    """Open streams may end; there are no new ones."""
    LEAVING = 3
    """This side has sent goodbye, and waits for the peer's."""
    CLOSED = 4
    """It is over."""


NEW, OPENED, DRAINING, LEAVING, CLOSED = map(int, SessionState)

TRANSITIONS: Final[dict[tuple[SessionState, str], SessionState]] = {
    (SessionState.NEW, "hello"): SessionState.OPENED,
    (SessionState.NEW, "close()"): SessionState.DRAINING,
    (SessionState.NEW, "finished"): SessionState.CLOSED,
    (SessionState.OPENED, "close()"): SessionState.DRAINING,
    (SessionState.OPENED, "finished"): SessionState.CLOSED,
    (SessionState.DRAINING, "streams ended"): SessionState.LEAVING,
    (SessionState.DRAINING, "finished"): SessionState.CLOSED,
    (SessionState.LEAVING, "finished"): SessionState.CLOSED,
}
"""The state after each cause, from the state before it. All other combinations are mistakes in Penstock."""
