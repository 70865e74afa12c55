"""A server's sessions that outlive its process: they send nothing before their log has all that resuming needs.

Invariant: the log contains each frame before it is sent, each position before it is reported, and each request before
its handler starts. No peer and no handler has seen anything that is not in the log of a killed process.
"""

from __future__ import annotations

import hmac
from hashlib import sha256
from typing import Any, Final, cast

import msgspec

from ..core.halves import OPEN
from ..core.replay import Replay
from ..core.write_ahead import Logged, WriteAhead, digest
from ..errors import ResumeRejected, SessionStoreError, SetupRejected
from ..events import Event
from ..payload import Payload
from ..session import Run, SessionLog, SessionLogs
from ..settings import Settings
from ..wire.rsocket.frames import FrameType, ResumeFrame
from .codes import Code
from .dialect import DIALECTS, RSOCKET_1_0
from .extensions.metadata import Router
from .lifecycle import CLOSED, OPENED
from .records import PARTIAL, RECEIVING, SENDING, Opening, Record, Retained
from .resume import SessionStore
from .session import RSocketSession

__all__ = ["StoredSession", "StoredSessions"]

RESTARTED: Final = b"the server was restarted; part of this may have been done"
NEVER_BEGUN: Final = b"the server was restarted before it had received the whole request"
NAME_SALT: Final = b"weirpool: the name of a session's log\0"


class StoredSession(RSocketSession):
    """A server's session whose outbox writes to a log before it sends. Without a log, it is an ordinary session."""

    def __init__(self, settings: Settings, *parts: Any) -> None:
        super().__init__(settings, *parts)
        high_bytes = settings.output_high_bytes
        self._storage = WriteAhead(self._observe, self._record, self._storage_failed, self._is_open, high_bytes)
        self._outbound.outbox = self._storage
        self._opening: Opening | None = None
        # Whether the session was restored from its log and its client has not resumed it yet.
        self._revived = False

    # Between processes.

    def begin(self, log: SessionLog, run: Run) -> None:
        """Start writing the session to `log`; `run` does the writing."""
        self._storage.begin(log, run)

    @property
    def durable(self) -> WriteAhead:  # type: ignore[override]
        """The session's outbox, which writes its log."""
        return self._storage

    def _is_open(self) -> bool:
        return self._life.state == OPENED

    @property
    def full(self) -> bool:  # type: ignore[override]  # a constant in the base class, because it is read after each batch
        """Whether reading should pause: too many requests wait for the disk."""
        return len(self._storage.waiting) >= self._settings.max_streams

    def revive(self, retained: Retained, log: SessionLog, run: Run) -> None:
        """Restore the session of an earlier process; its client must resume it.

        Open streams end, because their handlers and users ended with that process.
        """
        opening = retained.opening
        life = self._life
        life.move("restored")
        life.established = True
        life.received = retained.received
        self._revived = True
        self._opening = opening
        self._inbound.router = Router(opening.metadata_mime, self._settings.max_metadata_entries)
        self._outbound.replay = retained.replay
        retained.replay.belong(self.account)
        self._outbound.position = retained.replay.end
        self._streams.next_id = retained.next_id
        self._storage.begin(log, run, Logged(retained.replay.end, retained.received, dict(retained.streams)))
        if opening.leases:
            self._leases.use(self._settings.lease, request=self._dialect.server_needs_leases, respond=True)
        for stream_id, state in retained.streams.items():
            self._end_orphan(stream_id, state)

    def _end_orphan(self, stream_id: int, state: int) -> None:
        """End a stream of the earlier process, after everything that was sent on it."""
        outbound = self._outbound
        if state == PARTIAL:
            outbound.error(stream_id, Code.REJECTED, NEVER_BEGUN)
            self._strays.ignore_rest(stream_id)
        elif state & SENDING:
            outbound.error(stream_id, Code.CANCELED, RESTARTED)
        else:
            # RSocket 1.0, Request Channel: a side that has completed may only cancel.
            outbound.cancel(stream_id)

    def resume(self, frame: ResumeFrame, now: float) -> None:
        """Resume the session over a new link. See :meth:`weirpool.rsocket.link.Link.resume`."""
        try:
            super().resume(frame, now)
        except ResumeRejected:
            if self._revived:
                self._storage.detach()
            raise
        if self._revived and self._store is not None and self._life.token is not None and self._opening is not None:
            self._revived = False
            self._store.revived(self._life.token, self, self.identity)
            # The acceptor of this process must admit the client, too.
            self._events.append(self._opening.event())

    # Logged first.

    def take_events(self) -> list[Event]:
        """Return the events since the last call. Requests wait until they are durable, so that none starts twice."""
        ready = self._storage.sift(RSocketSession.take_events(self))
        if self._life.state == CLOSED:
            # The session may just have ended because a record could not be written.
            ready += self._storage.sift(RSocketSession.take_events(self))
        return ready

    def close(self, now: float, error: Exception | None = None) -> None:
        """End the session. See :meth:`weirpool.session.Session.close`."""
        if isinstance(error, SetupRejected):
            # A client would take any held output, for example a keepalive, for acceptance.
            self._storage.forget_output()
        super().close(now, error)

    def _finish(self, error: Exception | None) -> None:
        events, remove_log = self._storage.end()
        self._storage.ready(events)
        super()._finish(error)
        remove_log()

    def _storage_failed(self, error: Exception) -> None:
        """End the session without the output and the events that waited for the record."""
        _, remove_log = self._storage.end()
        self._control.abort(error, Code.CONNECTION_ERROR)
        remove_log()

    # Records.

    def _observe(self) -> Logged | None:
        """Return the state that the log should contain; None before the session has begun."""
        replay = self._outbound.replay
        greeting = self._control.greeting
        if self._opening is None and greeting is not None:
            leases = self._leases.responder is not None
            self._opening = Opening.of(greeting, self._dialect.name, digest(self.identity), leases)
        if replay is None or self._opening is None:
            return None
        streams = {
            # A fire-and-forget request has no response.
            stream_id: PARTIAL
            for stream_id, partial in self._strays.partials.items()
            if partial.head.type != FrameType.REQUEST_FNF
        }
        for stream in self._streams.all():
            sending = SENDING if stream.outbound == OPEN else 0
            streams[stream.id] = sending | (RECEIVING if stream.inbound == OPEN else 0)
        return Logged(replay.end, self._life.received, streams)

    def _record(self, now: Logged, before: Logged | None) -> bytes:
        """Return the record of the changes from `before` to `now`, or of the whole session if `before` is None."""
        replay = cast(Replay, self._outbound.replay)
        sent = replay.first if before is None else max(replay.first, before.sent)
        return msgspec.msgpack.encode(
            Record(
                received=now.received,
                sent=sent,
                frames=b"".join(replay.since(sent)),
                next_id=self._streams.next_id,
                opened=now.opened_since(before),
                ended=now.ended_since(before),
                opening=self._opening if before is None else None,
            )
        )


class StoredSessions(SessionStore[RSocketSession]):
    """The resumable sessions of one server, including those of earlier processes.

    Args:
        settings: Limits and timeouts.
        logs: The logs of the sessions.

    """

    def __init__(self, settings: Settings, logs: SessionLogs) -> None:
        super().__init__(settings.all_sessions)
        self._settings = settings
        self._logs = logs

    def add(self, token: bytes, session: RSocketSession, identity: bytes = b"") -> bool:
        """Add `session` and create its log; see :meth:`SessionStore.add`. All stored sessions count."""
        if len(self._logs) >= self._settings.all_sessions or not super().add(token, session, identity):
            return False
        log = self._logs.create(name_of(token))
        if log is None:
            super().remove(token)
            return False
        cast(StoredSession, session).begin(log, self._logs.run)
        return True

    def get(self, token: bytes, identity: bytes = b"") -> RSocketSession:
        """Return the session of that token, also from its log; see :meth:`SessionStore.get`."""
        revived = self._revive(token, identity) if self._find(token) is None else None
        return revived or super().get(token, identity)

    def _revive(self, token: bytes, identity: bytes) -> StoredSession | None:
        try:
            found = self._logs.open(name_of(token))
        except SessionStoreError as error:
            # Its text names local paths, which a peer must not see.
            raise ResumeRejected("the log of the session cannot be read") from error
        if found is None:
            return None
        log, records = found
        try:
            retained = Retained(records, self._settings.resume_bytes, RSOCKET_1_0.codec().prefix_bytes)
        except SessionStoreError as error:
            log.close()
            raise ResumeRejected(f"the log of the session cannot be read: {error}") from error
        # THREATS 28: the same check as for sessions in memory.
        if not hmac.compare_digest(retained.opening.identity, digest(identity)):
            log.close()
            return None
        dialect = DIALECTS.get(retained.opening.dialect, RSOCKET_1_0)
        session = StoredSession(self._settings, dialect, False, token, self, Payload())
        session.identity = identity
        session.revive(retained, log, self._logs.run)
        return session


def name_of(token: bytes) -> str:
    """Return the name of a session's log. It is a hash, so it cannot be used to resume the session."""
    return sha256(NAME_SALT + token).hexdigest()
