"""The sessions of one server, which its clients can resume."""

from __future__ import annotations

import hmac
from typing import Final, Generic, Protocol, TypeVar

from ..core.ends import Ends

__all__ = ["NOT_KNOWN", "Sessions"]

NOT_KNOWN: Final = "there is no session with this id"


class ResumableSession(Protocol):
    """A session that its client can resume."""

    session_id: str
    peer: str
    identity: bytes


SessionT = TypeVar("SessionT", bound=ResumableSession)


class Sessions(Generic[SessionT]):
    """Sessions by their ids.

    A client has one session. A newer one replaces it only after its first message: otherwise, a peer that knows the
    id of a client could end the session of that client.

    Args:
        limit: The maximum number of sessions.

    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._sessions: dict[str, SessionT] = {}
        self._ends = Ends(limit)

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def full(self) -> bool:
        """Whether the limit is reached."""
        return len(self._sessions) >= self._limit

    def taken(self, session_id: str) -> bool:
        """Return whether any client has a session of that id."""
        return session_id in self._sessions

    def get(self, session_id: str, peer: str, identity: bytes) -> SessionT | None:
        """Return the session of that id, if the same client began it (THREATS 57)."""
        session = self._sessions.get(session_id)
        if session is None or session.peer != peer or not hmac.compare_digest(session.identity, identity):
            return None
        return session

    def add(self, session: SessionT) -> None:
        """Add a new session."""
        self._sessions[session.session_id] = session

    def others(self, session: SessionT) -> list[SessionT]:
        """Return the other sessions of the client, which `session` replaces."""
        return [
            other
            for other in self._sessions.values()
            if other is not session and other.peer == session.peer and other.identity == session.identity
        ]

    def forget(self, session: SessionT, error: Exception | None) -> None:
        """Remove a closed session; `error` is the reason, or None for a normal end."""
        if self._sessions.get(session.session_id) is session:
            del self._sessions[session.session_id]
            self._ends.note(session.session_id.encode(), session.identity, error)

    def reason(self, session_id: str, identity: bytes) -> str:
        """Return why there is no session of that id, in words that its client may see."""
        return self._ends.reason(session_id.encode(), identity) or NOT_KNOWN
