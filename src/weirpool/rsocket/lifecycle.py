"""The state of a session, and the objects that its parts share."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Final

from ..account import Account
from ..core.streams import StreamTable
from ..core.timers import TimerTable
from ..events import Event
from ..settings import Settings
from .dialect import Dialect
from .lease import Leases
from .outbound import Outbound

__all__ = ["CLOSED", "DRAINING", "LEAVING", "NEW", "OPENED", "TRANSITIONS", "Lifecycle", "SessionState"]


Finish = Callable[[Exception | None], None]


FIELD_BYTES: Final = 64
"""More than all fields of a request take in its frame."""


class SessionState(IntEnum):
    """The states of a session."""

    NEW = 0
    """A server waits for SETUP; a client has not had a link yet."""
    OPENED = 1
    """Streams are possible. A client may send before the server has confirmed the set-up (false start)."""
    DRAINING = 2
    """Open streams may end; this side opens no new ones."""
    LEAVING = 3
    """A server has sent CONNECTION_CLOSE. It rejects requests until the client closes the link."""
    CLOSED = 4
    """The session has ended."""


# Plain integers, because compiled code compares them for every frame.
NEW, OPENED, DRAINING, LEAVING, CLOSED = map(int, SessionState)

TRANSITIONS: Final[dict[tuple[SessionState, str], SessionState]] = {
    (SessionState.NEW, "SETUP"): SessionState.OPENED,
    (SessionState.NEW, "restored"): SessionState.OPENED,
    (SessionState.NEW, "close()"): SessionState.DRAINING,
    (SessionState.NEW, "finished"): SessionState.CLOSED,
    # A client whose first link was lost before the server answered sends SETUP again.
    (SessionState.OPENED, "SETUP"): SessionState.OPENED,
    (SessionState.OPENED, "close()"): SessionState.DRAINING,
    (SessionState.OPENED, "CONNECTION_CLOSE"): SessionState.DRAINING,
    (SessionState.OPENED, "finished"): SessionState.CLOSED,
    (SessionState.DRAINING, "SETUP"): SessionState.DRAINING,
    (SessionState.DRAINING, "close()"): SessionState.DRAINING,
    (SessionState.DRAINING, "streams ended"): SessionState.LEAVING,
    (SessionState.DRAINING, "finished"): SessionState.CLOSED,
    (SessionState.LEAVING, "finished"): SessionState.CLOSED,
}
"""(State, cause) to the next state. All other combinations are defects in Weirpool."""


class Lifecycle:
    """The state of a session, and the objects that its parts share.

    Attributes:
        settings: Limits and timeouts.
        account: The bytes that were received and not consumed.
        dialect: The protocol version.
        is_client: Whether this side opens the connection.
        finish: Ends the session with an error, or None.
        events: Events that have not been taken yet.
        timers: The timers.
        streams: The open streams.
        outbound: Sends frames.
        leases: The leases of both directions.
        state: A :class:`SessionState` as a number.
        token: The token to resume the session with; None if it cannot be resumed.
        established: Whether the server has accepted the set-up.
        received: The position up to which this side has received.
        reported: The position up to which received data is safe; -1 if all of it is.

    """

    def __init__(
        self, settings: Settings, dialect: Dialect, is_client: bool, token: bytes | None, finish: Finish
    ) -> None:
        self.settings = settings
        self.account = Account(settings.max_connection_bytes)
        self.dialect = dialect
        self.is_client = is_client
        self.finish = finish
        self.events: list[Event] = []
        self.timers = TimerTable()
        first_id = 1 if is_client == (settings.client_ids == "odd") else 2
        self.streams = StreamTable(first_id, dialect.own_ids, dialect.half_close)
        self.outbound = Outbound(
            dialect.codec(),
            settings.fragment_bytes,
            dialect.fragments_requests,
            settings.max_output_bytes,
            settings.max_frame_bytes - FIELD_BYTES,
        )
        self.leases = Leases(self.timers)
        self.state = NEW
        self.token = token
        self.established = False
        self.received = 0
        self.reported = -1

    def move(self, cause: str) -> None:
        """Change to the next state."""
        self.state = int(TRANSITIONS[SessionState(self.state), cause])

    def position(self) -> int:
        """Return the position to report to the peer; 0 if the session cannot be resumed."""
        if self.token is None:
            return 0
        return self.received if self.reported < 0 else self.reported
