"""The resumable sessions of a server, those included that an earlier process has left."""

from __future__ import annotations

import hmac
from hashlib import sha256
from typing import Final, cast

from ..errors import ResumeRejected, SessionStoreError
from ..session import SessionLogs
from ..settings import Settings
from .dialect import RSOCKET_1_0
from .records import Retained, digest
from .resume import SessionStore
from .session import RSocketSession
from .stored import StoredSession

__all__ = ["StoredSessions"]

NAME_SALT: Final = b"penstock: the name of a session's log\0"


class StoredSessions(SessionStore[RSocketSession]):
    """The resumable sessions of one server, those of earlier processes included.

    Args:
        settings: Limits and timeouts.
        logs: What is kept of them.

    """

    def __init__(self, settings: Settings, logs: SessionLogs) -> None:
        super().__init__(settings.all_sessions)
        self._settings = settings
        self._logs = logs

    def add(self, token: bytes, session: RSocketSession, identity: bytes = b"") -> bool:
        """Keep `session`; see :meth:`SessionStore.add`. Sessions that nobody has resumed yet count, too."""
        if len(self._logs) >= self._settings.all_sessions or not super().add(token, session, identity):
            return False
        log = self._logs.create(name_of(token))
        if log is None:
            super().remove(token)
            return False
        cast(StoredSession, session).begin(log, self._logs.run)
        return True

    def get(self, token: bytes, identity: bytes = b"") -> RSocketSession:
        """Return the session of that token; see :meth:`SessionStore.get`. An earlier process may have begun it."""
        if self._find(token) is None:
            revived = self._revive(token, identity)
            if revived is not None:
                return revived
        return super().get(token, identity)

    def _revive(self, token: bytes, identity: bytes) -> StoredSession | None:
        try:
            found = self._logs.open(name_of(token))
        except SessionStoreError as error:
            # Its text names local paths, which a peer must not learn.
            raise ResumeRejected("what was kept of the session cannot be read") from error
        if found is None:
            return None
        log, records = found
        try:
            retained = Retained(records, self._settings.resume_bytes, RSOCKET_1_0.codec().prefix_bytes)
        except SessionStoreError as error:
            log.close()
            raise ResumeRejected(f"what was kept of the session cannot be read: {error}") from error
        # THREATS 28: as for those in memory.
        if not hmac.compare_digest(retained.opening.identity, digest(identity)):
            log.close()
            return None
        return StoredSession.revive(self._settings, retained, log, self._logs.run, self, token, identity)


def name_of(token: bytes) -> str:
    """Return what the log of a session is called: whoever reads it cannot resume the session by it."""
    return sha256(NAME_SALT + token).hexdigest()
