"""The sessions of a server, including those that an earlier process stored."""

from __future__ import annotations

import hmac
from hashlib import sha256
from typing import Final, cast

from ..core.write_ahead import digest
from ..errors import SessionStoreError, SetupRejected
from ..session import SessionLogs
from ..settings import Settings
from .handshake import MISMATCH
from .identity import tag_of
from .session import RiverSession
from .sessions import NOT_KNOWN, Sessions
from .stored import Retained, StoredRiverSession

__all__ = ["StoredSessions"]

NAME_SALT: Final = b"weirpool: the name of a River session's log\0"


class StoredSessions(Sessions[RiverSession]):
    """The sessions of one listener, including those of earlier processes.

    Args:
        settings: Limits and timeouts.
        logs: The logs of the sessions.
        codec: The listener's codec; sessions with another one are unknown to it.

    """

    def __init__(self, settings: Settings, logs: SessionLogs, codec: str) -> None:
        super().__init__(settings.all_sessions)
        self._settings = settings
        self._logs = logs
        self._codec = codec

    @property
    def full(self) -> bool:
        """Whether the limit is reached. Stored sessions count before they are resumed."""
        return super().full or len(self._logs) >= self._settings.all_sessions

    def get(self, session_id: str, peer: str, identity: bytes) -> RiverSession | None:
        """Return the session of that id, also from its log; see :meth:`Sessions.get`.

        Raises:
            SetupRejected: Its log cannot be read.

        """
        if self.taken(session_id):
            return super().get(session_id, peer, identity)
        return self._revive(session_id, peer, identity)

    def add(self, session: RiverSession) -> None:
        """Add a new session and create its log, or add a restored session.

        Raises:
            SetupRejected: Another session's log has its name.

        """
        stored = cast(StoredRiverSession, session)
        if not stored.durable.kept:
            log = self._logs.create(name_of(session.session_id))
            if log is None:
                raise SetupRejected(NOT_KNOWN, MISMATCH)
            stored.begin(log, self._logs.run)
        super().add(session)

    def _revive(self, session_id: str, peer: str, identity: bytes) -> StoredRiverSession | None:
        try:
            found = self._logs.open(name_of(session_id))
        except SessionStoreError as error:
            # Its text names local paths, which a peer must not see.
            raise SetupRejected("the log of the session cannot be read", MISMATCH) from error
        if found is None:
            return None
        log, records = found
        try:
            retained = Retained(records)
        except SessionStoreError as error:
            log.close()
            raise SetupRejected(f"the log of the session cannot be read: {error}", MISMATCH) from error
        opening = retained.opening
        # THREATS 57: the same check as for sessions in memory.
        same = hmac.compare_digest(opening.identity, digest(identity))
        if not same or opening.peer != peer or opening.codec != self._codec:
            log.close()
            return None
        # The tag differs from those of earlier processes, because their messages are in the log.
        tag = f"{tag_of(session_id)}-s{retained.seq}-"
        session = StoredRiverSession(self._settings, self._codec, False, opening.us, peer, session_id, tag)
        session.identity = identity
        session.revive(retained, log, self._logs.run, self)
        return session


def name_of(session_id: str) -> str:
    """Return the name of a session's log. It is a hash, so it cannot be used to resume the session."""
    return sha256(NAME_SALT + session_id.encode("utf-8", "surrogatepass")).hexdigest()
