"""The states of a session, which has one link and ends with it."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

__all__ = ["CLOSED", "DRAINING", "LEAVING", "NEW", "OPENED", "TRANSITIONS", "SessionState"]


class SessionState(IntEnum):
    """The state of a session."""

    NEW = 0
    """A server waits for clientHello; a client has had no link yet."""
    OPENED = 1
    """Streams may be opened. A client does not wait for serverHello."""
    DRAINING = 2
    """Open streams may finish. No new streams are opened."""
    LEAVING = 3
    """This side has sent goodbye, and waits for the peer's."""
    CLOSED = 4
    """The session has ended."""


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
"""(State, cause) to next state. Any other combination is a bug in Weirpool."""
