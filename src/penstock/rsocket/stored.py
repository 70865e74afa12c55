"""A server's sessions that outlive its process: nothing leaves before all that resuming needs is durable.

The law of this file: what the peer may learn of, a frame of ours or a position that we report, is in the log first;
and so is a request before its handler begins. What a process that was killed had not written down, nobody knows of.
"""

from __future__ import annotations

import hmac
from hashlib import sha256
from typing import Final, cast

from ..core.halves import OPEN
from ..core.replay import Replay
from ..core.streams import Stream
from ..errors import ResumeRejected, SessionStoreError
from ..events import Established, Event, Requested
from ..kinds import Kind
from ..payload import Payload
from ..session import SessionLog, SessionLogs
from ..settings import Settings
from ..wire.frames import Frame, FrameType, ResumeFrame
from .codes import Code
from .connection import OPENED, Connection
from .dialect import DIALECTS, RSOCKET_1_0, Dialect
from .records import PARTIAL, RECEIVING, SENDING, Opening, Record, Retained, encode_record
from .resume import SessionStore
from .session import RSocketSession

__all__ = ["StoredSession", "StoredSessions"]

REWRITE_BYTES: Final = 1 << 20
"""A log is written anew when it has grown to twice what it held then, and this much."""
NAME_SALT: Final = b"penstock: the name of a session's log\0"

RESTARTED: Final = b"the server was restarted; part of this may have been done"
NEVER_BEGUN: Final = b"the server was restarted before this request had arrived whole"


class StoredSession(RSocketSession):
    """A server's session with a log. Without a log, its client does not resume, and it is like any other."""

    def __init__(
        self,
        settings: Settings,
        dialect: Dialect,
        is_client: bool,
        token: bytes | None,
        store: SessionStore[Connection] | None,
        setup: Payload,
    ) -> None:
        super().__init__(settings, dialect, is_client, token, store, setup)
        self._log: SessionLog | None = None
        self._opening: Opening | None = None
        self._revived = False
        # What the log holds: the session as a whole, positions, and what is open of each stream.
        self._begun = False
        self._logged_received = 0
        self._logged_sent = 0
        self._logged: dict[int, int] = {}
        self._rewrite_at = 0

    # From one process to the next.

    def begin(self, log: SessionLog) -> None:
        """Keep the session in `log` from now on."""
        self._log = log

    @property
    def kept(self) -> bool:
        """Whether another process can go on with it. See :class:`penstock.session.Kept`."""
        return self._log is not None and self._begun and self._state == OPENED

    def leave(self) -> None:
        """Let go of the session. See :meth:`penstock.session.Kept.leave`."""
        log = self._log
        self._log = None
        if log is not None:
            log.close()

    @classmethod
    def revive(
        cls,
        settings: Settings,
        retained: Retained,
        log: SessionLog,
        store: SessionStore[Connection],
        token: bytes,
        identity: bytes,
    ) -> StoredSession:
        """Return the session that an earlier process left; it waits for the client to resume it."""
        dialect = DIALECTS.get(retained.opening.dialect, RSOCKET_1_0)
        session = cls(settings, dialect, False, token, store, Payload())
        session.identity = identity
        session.revive_from(retained, log)
        return session

    def revive_from(self, retained: Retained, log: SessionLog) -> None:
        """Take over what `retained` says, instead of a set-up, and end what the earlier process had open."""
        opening = retained.opening
        self._log = log
        self._revived = self._begun = True
        self._state = OPENED
        self._established = True
        self._opening = opening
        self._router = self._new_router(opening.metadata_mime)
        self._received = self._logged_received = retained.received
        self._outbound.replay = retained.replay
        self._outbound.position = self._logged_sent = retained.replay.end
        self._streams.next_id = retained.next_id
        self._logged = dict(retained.streams)
        self._rewrite_at = 2 * log.size + REWRITE_BYTES
        if opening.leases:
            self._use_leases(honor=self._dialect.server_waits, grant=True)
        for stream_id, state in retained.streams.items():
            self._end_orphan(stream_id, state)

    def _end_orphan(self, stream_id: int, state: int) -> None:
        """End a stream whose handler, or whose user, died with the earlier process, behind all that was sent on it."""
        outbound = self._outbound
        if state == PARTIAL:
            outbound.error(stream_id, Code.REJECTED, NEVER_BEGUN)
        elif state & SENDING:
            outbound.error(stream_id, Code.CANCELED, RESTARTED)
        else:
            # RSocket 1.0, Request Channel: whoever has completed may only cancel.
            outbound.cancel(stream_id)
        if state & RECEIVING:
            # What the peer sends before it hears of this is no offence.
            stream = Stream(stream_id, Kind.CHANNEL, not self._streams.may_be_theirs(stream_id))
            stream.granted = self._settings.max_credit
            self._inbound.expect_late(stream)

    def resume(self, frame: ResumeFrame, now: float) -> None:
        """Go on over a new link, as a client asks. See :meth:`penstock.rsocket.links.Links.resume`."""
        try:
            super().resume(frame, now)
        except ResumeRejected:
            if self._revived and self._log is not None:
                self._log.close()
            raise
        if self._revived and self._store is not None and self._token is not None and self._opening is not None:
            self._revived = False
            self._store.revived(self._token, self, self.identity)
            # Whoever accepted this client in the earlier process is asked again.
            self._events.append(self._opening.event())

    # Written down first.

    def take_output(self) -> list[bytes]:
        """Return the bytes to write, once what they say is durable."""
        if self._log is not None and self._outbound.outbox.size:
            self._secure()
        return RSocketSession.take_output(self)

    def take_events(self) -> list[Event]:
        """Return what happened; requests once they are durable, so that none is begun twice."""
        events = RSocketSession.take_events(self)
        if self._log is not None:
            for event in events:
                if type(event) is Requested:
                    return events if self._secure() else RSocketSession.take_events(self)
        return events

    def _set_up(self, frame: Frame, now: float) -> None:
        super()._set_up(frame, now)
        for event in self._events:
            if isinstance(event, Established):
                identity = digest(self.identity)
                self._opening = Opening.of(event, self._dialect.name, identity, self._granting is not None)

    def _finish(self, error: Exception | None) -> None:
        log = self._log
        self._log = None
        super()._finish(error)
        if log is not None:
            log.remove()

    def _secure(self) -> bool:
        """Write down what has changed; where that fails, end the session: nothing of it may leave."""
        try:
            self._write_down()
        except SessionStoreError as error:
            self._outbound.outbox.clear()
            self._abort(error, Code.CONNECTION_ERROR)
            return False
        return True

    def _write_down(self) -> None:
        log = self._log
        replay = self._outbound.replay
        if log is None or replay is None or self._opening is None:
            return
        streams = self._open_now()
        if not self._begun or log.size > self._rewrite_at:
            record = self._record(replay, replay.first, streams, {})
            record.opening = self._opening
            log.rewrite(encode_record(record))
            self._begun = True
            self._rewrite_at = 2 * log.size + REWRITE_BYTES
        elif replay.end != self._logged_sent or self._received != self._logged_received or streams != self._logged:
            log.append(encode_record(self._record(replay, max(replay.first, self._logged_sent), streams, self._logged)))
        self._logged_sent = replay.end
        self._logged_received = self._received
        self._logged = streams

    def _record(self, replay: Replay, sent: int, streams: dict[int, int], before: dict[int, int]) -> Record:
        """Return what was sent from position `sent` on, and what is open of `streams` that was not `before`."""
        return Record(
            received=self._received,
            sent=sent,
            frames=b"".join(replay.since(sent)),
            next_id=self._streams.next_id,
            opened={id: state for id, state in streams.items() if before.get(id) != state},
            ended=[id for id in before if id not in streams],
        )

    def _open_now(self) -> dict[int, int]:
        """Return what is open of each stream."""
        streams = {
            # Nobody waits for an answer to what was fired.
            stream_id: PARTIAL
            for stream_id, partial in self._inbound.partials.items()
            if partial.head.type != FrameType.REQUEST_FNF
        }
        for stream in self._streams.all():
            sending = SENDING if stream.outbound == OPEN else 0
            streams[stream.id] = sending | (RECEIVING if stream.inbound == OPEN else 0)
        return streams


class StoredSessions(SessionStore[Connection]):
    """The resumable sessions of one server, those of earlier processes included.

    Args:
        settings: Limits and timeouts.
        logs: What is kept of them.

    """

    def __init__(self, settings: Settings, logs: SessionLogs) -> None:
        super().__init__(settings.max_sessions)
        self._settings = settings
        self._logs = logs

    def add(self, token: bytes, session: Connection, identity: bytes = b"") -> bool:
        """Keep `session`; see :meth:`SessionStore.add`. Sessions that nobody has resumed yet count, too."""
        if len(self._logs) >= self._settings.max_sessions or not super().add(token, session, identity):
            return False
        log = self._logs.create(name_of(token))
        if log is None:
            super().forget(token)
            return False
        cast(StoredSession, session).begin(log)
        return True

    def get(self, token: bytes, identity: bytes = b"") -> Connection:
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
            # Its text names places on our disk, which are none of the peer's business.
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
        return StoredSession.revive(self._settings, retained, log, self, token, identity)


def name_of(token: bytes) -> str:
    """Return what the log of a session is called: whoever reads it cannot resume the session by it."""
    return sha256(NAME_SALT + token).hexdigest()


def digest(identity: bytes) -> bytes:
    """Return what is kept of an identity."""
    return sha256(identity).digest()
