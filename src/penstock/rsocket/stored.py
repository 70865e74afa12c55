"""Server sessions that outlive their process: output is sent after everything that resuming needs is durable.

Invariant: frames and reported positions are in the log before they are sent, and requests before their handlers
start. If a process is killed, no peer has seen anything that it had not recorded.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from hashlib import sha256
from typing import Any, Final, cast

from ..core.halves import OPEN
from ..core.replay import Replay
from ..core.streams import Stream
from ..core.write_ahead import Logged, WriteAhead, digest
from ..errors import ResumeRejected, SessionStoreError, SetupRejected
from ..events import Event
from ..kinds import Kind
from ..payload import Payload
from ..session import Run, SessionLog, SessionLogs
from ..settings import Settings
from ..wire.rsocket.frames import FrameType, ResumeFrame
from .codes import Code
from .dialect import DIALECTS, RSOCKET_1_0
from .extensions.metadata import Router
from .lifecycle import CLOSED, OPENED
from .records import PARTIAL, RECEIVING, SENDING, Opening, Record, Retained, encode_record
from .resume import SessionStore
from .session import RSocketSession

__all__ = ["StoredSession", "StoredSessions"]

RESTARTED: Final = b"the server was restarted; part of this may have been done"
NEVER_BEGUN: Final = b"the server was restarted before this request had arrived completely"
NAME_SALT: Final = b"penstock: the name of a session's log\0"


class StoredSession(RSocketSession):
    """A server's session with a write-ahead log. Without a log, it is like any other session."""

    def __init__(self, settings: Settings, *parts: Any) -> None:
        super().__init__(settings, *parts)
        self._storage = WriteAhead(self._observe, self._record, self._storage_failed, settings.output_high_bytes)
        self._outbound.outbox = self._storage
        self._opening: Opening | None = None
        # True if an earlier process started the session and its client has not resumed it yet.
        self._revived = False

    # Handover between processes.

    def begin(self, log: SessionLog, run: Run) -> None:
        """Record the session in `log` from now on, and call `run` to write."""
        self._storage.begin(log, run)

    @property
    def durable(self) -> StoredSession:  # type: ignore[override]
        """This session. See :class:`penstock.session.Session`."""
        return self

    def watch(self, watcher: Callable[[bool], None]) -> None:
        """Set the callback for changes. See :meth:`penstock.session.Durable.watch`."""
        self._storage.watch(watcher)

    @property
    def kept(self) -> bool:
        """Whether another process can resume the session. See :class:`penstock.session.Durable`."""
        return self._storage.log is not None and self._storage.begun and self._life.state == OPENED

    @property
    def settled(self) -> bool:
        """Whether everything is durable. See :class:`penstock.session.Durable`."""
        return self._storage.settled

    @property
    def withheld(self) -> set[int]:
        """The streams with events that wait for the disk. See :class:`penstock.session.Durable`."""
        return self._storage.withheld

    @property
    def full(self) -> bool:  # type: ignore[override]  # asked after each batch: a constant where nothing waits
        """Whether to stop reading because too many requests wait for the disk."""
        return len(self._storage.waiting) >= self._settings.max_streams

    def detach(self) -> None:
        """Release the session for the next process. See :meth:`penstock.session.Durable.detach`."""
        self._storage.detach()

    def revive(self, retained: Retained, log: SessionLog, run: Run) -> None:
        """Set the state from the log of an earlier process, instead of a set-up; the client must resume the session.

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
        self._outbound.position = retained.replay.end
        self._streams.next_id = retained.next_id
        self._storage.begin(log, run, Logged(retained.replay.end, retained.received, dict(retained.streams)))
        if opening.leases:
            self._leases.use(self._settings.lease, request=self._dialect.server_needs_leases, respond=True)
        for stream_id, state in retained.streams.items():
            self._end_orphan(stream_id, state)

    def _end_orphan(self, stream_id: int, state: int) -> None:
        """End a stream of the earlier process, after the output that was sent on it."""
        outbound = self._outbound
        if state == PARTIAL:
            outbound.error(stream_id, Code.REJECTED, NEVER_BEGUN)
        elif state & SENDING:
            outbound.error(stream_id, Code.CANCELED, RESTARTED)
        else:
            # RSocket 1.0, Request Channel: a side that has completed may only cancel.
            outbound.cancel(stream_id)
        if state & RECEIVING:
            # Allow the items that the peer sends before it receives this.
            stream = Stream(stream_id, Kind.CHANNEL, not self._streams.may_be_theirs(stream_id))
            stream.granted = self._settings.max_credit
            self._strays.expect_late(stream)

    def resume(self, frame: ResumeFrame, now: float) -> None:
        """Resume over a new link. See :meth:`penstock.rsocket.link.Link.resume`."""
        try:
            super().resume(frame, now)
        except ResumeRejected:
            if self._revived:
                self.detach()
            raise
        if self._revived and self._store is not None and self._life.token is not None and self._opening is not None:
            self._revived = False
            self._store.revived(self._life.token, self, self.identity)
            # The acceptor of this process must accept the client, as that of the earlier process did.
            self._events.append(self._opening.event())

    # Write-ahead.

    def take_events(self) -> list[Event]:
        """Remove and return the events; requests when they are durable, so that none is started twice."""
        ready = self._storage.sift(RSocketSession.take_events(self))
        if self._life.state == CLOSED:
            # A failed write may have ended the session in `sift`.
            ready += self._storage.sift(RSocketSession.take_events(self))
        return ready

    def close(self, now: float, error: Exception | None = None) -> None:
        """End the session. See :meth:`penstock.session.Session.close`."""
        if isinstance(error, SetupRejected):
            # A client would take any withheld output, such as a KEEPALIVE, for acceptance.
            self._storage.forget_output()
        super().close(now, error)

    def _finish(self, error: Exception | None) -> None:
        events, remove_log = self._storage.end()
        self._storage.ready(events)
        super()._finish(error)
        remove_log()

    def _storage_failed(self, error: Exception) -> None:
        """End the session. Output and events that waited for the record are discarded."""
        _, remove_log = self._storage.end()
        self._control.abort(error, Code.CONNECTION_ERROR)
        remove_log()

    # Records.

    def _observe(self) -> Logged | None:
        """Return what the log should hold."""
        replay = self._outbound.replay
        greeting = self._control.greeting
        if self._opening is None and greeting is not None:
            leases = self._leases.responder is not None
            self._opening = Opening.of(greeting, self._dialect.name, digest(self.identity), leases)
        if replay is None or self._opening is None:
            return None
        streams = {
            # Nobody waits for an answer to what was fired.
            stream_id: PARTIAL
            for stream_id, partial in self._strays.partials.items()
            if partial.head.type != FrameType.REQUEST_FNF
        }
        for stream in self._streams.all():
            sending = SENDING if stream.outbound == OPEN else 0
            streams[stream.id] = sending | (RECEIVING if stream.inbound == OPEN else 0)
        return Logged(replay.end, self._life.received, streams)

    def _record(self, now: Logged, before: Logged | None) -> bytes:
        """Return the record that leads from `before` to `now`; from None: the whole session."""
        replay = cast(Replay, self._outbound.replay)
        sent = replay.first if before is None else max(replay.first, before.sent)
        record = Record(
            received=now.received,
            sent=sent,
            frames=b"".join(replay.since(sent)),
            next_id=self._streams.next_id,
            opened=now.opened_since(before),
            ended=now.ended_since(before),
            opening=self._opening if before is None else None,
        )
        return encode_record(record)


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
        revived = self._revive(token, identity) if self._find(token) is None else None
        return revived or super().get(token, identity)

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
        dialect = DIALECTS.get(retained.opening.dialect, RSOCKET_1_0)
        session = StoredSession(self._settings, dialect, False, token, self, Payload())
        session.identity = identity
        session.revive(retained, log, self._logs.run)
        return session


def name_of(token: bytes) -> str:
    """Return what the log of a session is called: whoever reads it cannot resume the session by it."""
    return sha256(NAME_SALT + token).hexdigest()
