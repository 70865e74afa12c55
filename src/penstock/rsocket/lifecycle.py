"""The life of a session: its state, and what its parts share."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Final

from ..core.streams import StreamTable
from ..core.timers import TimerTable
from ..events import Event
from ..settings import Settings
from .dialect import Dialect
from .lease import Leases
from .outbound import Outbound

__all__ = ["CLOSED", "DRAINING", "NEW", "OPENED", "TRANSITIONS", "Lifecycle", "SessionState"]


Finish = Callable[[Exception | None], None]


class SessionState(IntEnum):
    """What a session may do."""

    NEW = 0
    """A server waits for SETUP; a client has had no link yet."""
    OPENED = 1
    """Streams flow. A client may send before the server has shown that it accepts (false start)."""
    DRAINING = 2
    """Open streams may end; this side opens no new ones."""
    CLOSED = 3
    """It is over."""


# Plain integers, because compiled code compares them for every frame.
NEW, OPENED, DRAINING, CLOSED = map(int, SessionState)

TRANSITIONS: Final[dict[tuple[SessionState, str], SessionState]] = {
    (SessionState.NEW, "SETUP"): SessionState.OPENED,
    (SessionState.NEW, "restored"): SessionState.OPENED,
    (SessionState.NEW, "close()"): SessionState.DRAINING,
    (SessionState.NEW, "finished"): SessionState.CLOSED,
    # A client whose first link was lost before the server had answered sends SETUP again.
    (SessionState.OPENED, "SETUP"): SessionState.OPENED,
    (SessionState.OPENED, "close()"): SessionState.DRAINING,
    (SessionState.OPENED, "CONNECTION_CLOSE"): SessionState.DRAINING,
    (SessionState.OPENED, "finished"): SessionState.CLOSED,
    (SessionState.DRAINING, "SETUP"): SessionState.DRAINING,
    (SessionState.DRAINING, "close()"): SessionState.DRAINING,
    (SessionState.DRAINING, "finished"): SessionState.CLOSED,
}
"""The state after each cause, from the state before it. All other combinations are mistakes in Penstock."""


class Lifecycle:
    """Where a session is in its life, and what its parts share.

    Attributes:
        settings: Limits and timeouts.
        dialect: The protocol version.
        is_client: This side opens the connection.
        finish: Ends the session with an error, or None.
        events: Where its parts put what happened.
        timers: Its timers.
        streams: Those that are open.
        outbound: Takes frames to send.
        leases: Of both directions.
        state: A :class:`SessionState` as a number.
        token: By which the session can be resumed; None: it cannot.
        established: The server has accepted the set-up.
        received: The position up to which this side has received.
        reported: The position up to which that is safe; -1: all that was received is.

    """

    def __init__(
        self, settings: Settings, dialect: Dialect, is_client: bool, token: bytes | None, finish: Finish
    ) -> None:
        self.settings = settings
        self.dialect = dialect
        self.is_client = is_client
        self.finish = finish
        self.events: list[Event] = []
        self.timers = TimerTable()
        first_id = 1 if is_client == (settings.client_ids == "odd") else 2
        self.streams = StreamTable(first_id, dialect.own_ids, dialect.half_close)
        self.outbound = Outbound(dialect.codec(), settings.fragment_bytes, dialect.cuts_requests)
        self.leases = Leases(self.timers)
        self.state = NEW
        self.token = token
        self.established = False
        self.received = 0
        self.reported = -1

    def move(self, cause: str) -> None:
        """Go on to the next state."""
        self.state = int(TRANSITIONS[SessionState(self.state), cause])

    def position(self) -> int:
        """Return the position to report: 0 where the session cannot be resumed."""
        if self.token is None:
            return 0
        return self.received if self.reported < 0 else self.reported
