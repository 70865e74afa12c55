"""The sessions of one server, which its clients may come back to."""

from __future__ import annotations

import hmac
from typing import Final, Generic, Protocol, TypeVar

from ..core.ends import Ends

__all__ = ["Sessions"]

NOT_KNOWN: Final = "the session that the client would go on with is not known here"


class ResumableSession(Protocol):
    """A session that its client may resume."""

    session_id: str
    peer: str
    identity: bytes


SessionT = TypeVar("SessionT", bound=ResumableSession)


class Sessions(Generic[SessionT]):
    """Sessions by their ids.

    A session is its client's only one. Which of two it is, is settled when the newer one has brought a message: before
    that, whoever knows a client's id could end its session.

    Args:
        limit: Sessions at most.

    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._sessions: dict[str, SessionT] = {}
        self._ends = Ends(limit)

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def full(self) -> bool:
        """Whether there is no room for another one."""
        return len(self._sessions) >= self._limit

    def taken(self, session_id: str) -> bool:
        """Whether there is a session of that id, whoever has it."""
        return session_id in self._sessions

    def get(self, session_id: str, peer: str, identity: bytes) -> SessionT | None:
        """Return the session of that id, for the client that began it (THREATS 57)."""
        session = self._sessions.get(session_id)
        if session is None or session.peer != peer or not hmac.compare_digest(session.identity, identity):
            return None
        return session

    def add(self, session: SessionT) -> None:
        """Keep a new session."""
        self._sessions[session.session_id] = session

    def others(self, session: SessionT) -> list[SessionT]:
        """Return the other sessions of its client, which are to end: `session` has brought a message."""
        return [
            other
            for other in self._sessions.values()
            if other is not session and other.peer == session.peer and other.identity == session.identity
        ]

    def forget(self, session: SessionT, error: Exception | None) -> None:
        """Forget a session that is over; `error` says why, if not in order."""
        if self._sessions.get(session.session_id) is session:
            del self._sessions[session.session_id]
            self._ends.note(session.session_id.encode(), session.identity, error)

    def reason(self, session_id: str, identity: bytes) -> str:
        """Return why there is no session of that id, as far as its client may know."""
        return self._ends.reason(session_id.encode(), identity) or NOT_KNOWN
