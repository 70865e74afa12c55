"""The sessions of a server, those included that an earlier process has left."""

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
from .sessions import Sessions
from .stored import Retained, StoredRiverSession

__all__ = ["StoredSessions"]

NAME_SALT: Final = b"penstock: the name of a River session's log\0"


class StoredSessions(Sessions[RiverSession]):
    """The sessions of one listener, those of earlier processes included.

    Args:
        settings: Limits and timeouts.
        logs: What is kept of them.
        codec: Of the listener: sessions of another one are not known here.

    """

    def __init__(self, settings: Settings, logs: SessionLogs, codec: str) -> None:
        super().__init__(settings.all_sessions)
        self._settings = settings
        self._logs = logs
        self._codec = codec

    @property
    def full(self) -> bool:
        """Whether there is no room for another one. Sessions that nobody has resumed yet count, too."""
        return super().full or len(self._logs) >= self._settings.all_sessions

    def get(self, session_id: str, peer: str, identity: bytes) -> RiverSession | None:
        """Return the session of that id; see :meth:`Sessions.get`. An earlier process may have begun it.

        Raises:
            SetupRejected: What was kept of it cannot be read.

        """
        if self.taken(session_id):
            return super().get(session_id, peer, identity)
        return self._revive(session_id, peer, identity)

    def add(self, session: RiverSession) -> None:
        """Keep a new session, or one that an earlier process began.

        Raises:
            SetupRejected: Somebody else's log has its name.

        """
        stored = cast(StoredRiverSession, session)
        if not stored.durable.kept:
            log = self._logs.create(name_of(session.session_id))
            if log is None:
                raise SetupRejected("the session that the client would go on with is not known here", MISMATCH)
            stored.begin(log, self._logs.run)
        super().add(session)

    def _revive(self, session_id: str, peer: str, identity: bytes) -> StoredRiverSession | None:
        try:
            found = self._logs.open(name_of(session_id))
        except SessionStoreError as error:
            # Its text names places on our disk, which are none of the peer's business.
            raise SetupRejected("what was kept of the session cannot be read", MISMATCH) from error
        if found is None:
            return None
        log, records = found
        try:
            retained = Retained(records)
        except SessionStoreError as error:
            log.close()
            raise SetupRejected(f"what was kept of the session cannot be read: {error}", MISMATCH) from error
        opening = retained.opening
        # THREATS 57: as for those in memory.
        same = hmac.compare_digest(opening.identity, digest(identity))
        if not same or opening.peer != peer or opening.codec != self._codec:
            log.close()
            return None
        # Ids differ from those of the earlier processes, because what those have sent is in the log.
        tag = f"{tag_of(session_id)}-s{retained.seq}-"
        session = StoredRiverSession(self._settings, self._codec, False, opening.us, peer, session_id, tag)
        session.identity = identity
        session.revive(retained, log, self._logs.run, self)
        return session


def name_of(session_id: str) -> str:
    """Return what the log of a session is called: whoever reads it cannot resume the session by it."""
    return sha256(NAME_SALT + session_id.encode("utf-8", "surrogatepass")).hexdigest()
