"""A server's session that outlives its process: nothing leaves before all that resuming needs is durable.

The law of this file: what the peer may learn of, a frame of ours or a position that we report, is in the log first;
and so is a request before its handler begins. What a process that was killed had not written down, nobody knows of.

Nobody waits while the disk is written, though. What there is to say by then is one record, whose output and requests
are held until it is durable; what comes up meanwhile is the next record.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from hashlib import sha256
from typing import Final, NamedTuple

from ..core.halves import OPEN
from ..core.replay import Replay
from ..core.streams import Stream
from ..errors import ResumeRejected, SetupRejected
from ..events import Established, Event, Requested
from ..kinds import Kind
from ..payload import Payload
from ..session import Run, SessionLog
from ..settings import Settings
from ..wire.rsocket.frames import Frame, FrameType, ResumeFrame
from .codes import Code
from .connection import CLOSED, OPENED, Connection
from .dialect import DIALECTS, RSOCKET_1_0, Dialect
from .records import PARTIAL, RECEIVING, SENDING, Opening, Record, Retained, encode_record
from .resume import SessionStore
from .session import RSocketSession

__all__ = ["StoredSession", "digest"]

REWRITE_BYTES: Final = 1 << 20
"""A log is written anew when it has grown to twice what it held then, and this much."""

RESTARTED: Final = b"the server was restarted; part of this may have been done"
NEVER_BEGUN: Final = b"the server was restarted before this request had arrived whole"


class _Written(NamedTuple):
    """What a record says that is being written.

    Attributes:
        sent: Up to which position it holds what was sent.
        received: The position that may be reported.
        streams: What is open of each stream.
        anew: It takes the place of all records before it.

    """

    sent: int
    received: int
    streams: dict[int, int]
    anew: bool


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
        self._run: Run | None = None
        self._watcher: Callable[[bool], None] | None = None
        self._opening: Opening | None = None
        self._revived = False
        # What the log holds: the session as a whole, positions, and what is open of each stream.
        self._begun = False
        self._logged_received = 0
        self._logged_sent = 0
        self._logged: dict[int, int] = {}
        self._rewrite_at = 0
        # Its last records may have been written, and not synced, by a process that was killed in between.
        self._unsynced = False
        # What is being written, if anything, and what becomes of the log afterwards, if that is known.
        self._writing: _Written | None = None
        self._afterwards: Callable[[], None] | None = None
        self._crowded = False
        # What the next record shall cover, beside what is in the outbox; what is being written covers; and what is
        # durable, and has not been taken yet.
        self._waiting_events: list[Event] = []
        self._held_output: list[bytes] = []
        self._held_events: list[Event] = []
        self._ready_output: list[bytes] = []
        self._ready_events: list[Event] = []

    # From one process to the next.

    def begin(self, log: SessionLog, run: Run) -> None:
        """Keep the session in `log` from now on, which is written by way of `run`."""
        self._log = log
        self._run = run

    @property
    def durable(self) -> StoredSession:
        """This session. See :class:`penstock.session.Session`."""
        return self

    def watch(self, watcher: Callable[[bool], None]) -> None:
        """Tell `watcher` of what is durable. See :meth:`penstock.session.Durable.watch`."""
        self._watcher = watcher

    @property
    def kept(self) -> bool:
        """Whether another process can go on with it. See :class:`penstock.session.Durable`."""
        return self._log is not None and self._begun and self._state == OPENED

    @property
    def settled(self) -> bool:
        """Whether nothing waits for the disk. See :class:`penstock.session.Durable`."""
        return self._log is None or not (self._writing or self._waiting_events or self._outbound.outbox.size)

    @property
    def withheld(self) -> set[int]:
        """The streams of which events wait for the disk. See :class:`penstock.session.Durable`."""
        return {event.stream_id for event in self._held_events + self._waiting_events}

    @property
    def full(self) -> bool:
        """Whether so many requests wait for the disk that nothing more should be read."""
        return len(self._waiting_events) >= self._settings.max_streams

    def detach(self) -> None:
        """Leave the session to the next process. See :meth:`penstock.session.Durable.detach`."""
        log = self._log
        self._log = None
        self._forget_output()
        self._waiting_events, self._held_events = [], []
        if log is not None:
            self._when_written(log.close)

    @classmethod
    def revive(
        cls,
        settings: Settings,
        retained: Retained,
        log: SessionLog,
        run: Run,
        store: SessionStore[Connection],
        token: bytes,
        identity: bytes,
    ) -> StoredSession:
        """Return the session that an earlier process left; it waits for the client to resume it."""
        dialect = DIALECTS.get(retained.opening.dialect, RSOCKET_1_0)
        session = cls(settings, dialect, False, token, store, Payload())
        session.identity = identity
        session.begin(log, run)
        session.revive_from(retained, log)
        return session

    def revive_from(self, retained: Retained, log: SessionLog) -> None:
        """Take over what `retained` says, instead of a set-up, and end what the earlier process had open."""
        opening = retained.opening
        self._revived = self._begun = self._unsynced = True
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
        """Go on over a new link, as a client asks. See :meth:`penstock.rsocket.link.Links.resume`."""
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
        """Return the bytes to write of which all that they say is durable."""
        if self._log is not None:
            self._secure()
            if self._writing and not self._crowded:
                self._crowd(self._outbound.outbox.size > self._settings.output_high_bytes)
        ready = self._ready_output
        if ready:
            self._ready_output = []
        if self._log is None:
            # Nobody resumes it any more.
            output = RSocketSession.take_output(self)
            return ready + output if ready else output
        return ready

    def take_events(self) -> list[Event]:
        """Return what happened; requests once they are durable, so that none is begun twice."""
        events = RSocketSession.take_events(self)
        if self._log is None:
            return self._take_ready(events)
        # What comes behind a request that waits keeps its place.
        waiting = 0 if self._waiting_events or self._held_events else _first_request(events)
        ready = self._take_ready(events[:waiting])
        if waiting < len(events):
            self._waiting_events += events[waiting:]
            self._secure()
            if self._state == CLOSED:
                self._ready_events += RSocketSession.take_events(self)
            ready += self._take_ready([])
        return ready

    def _set_up(self, frame: Frame, now: float) -> None:
        super()._set_up(frame, now)
        for event in self._events:
            if isinstance(event, Established):
                identity = digest(self.identity)
                self._opening = Opening.of(event, self._dialect.name, identity, self._granting is not None)

    def close(self, now: float, error: Exception | None = None) -> None:
        """End the session. See :meth:`penstock.session.Session.close`."""
        if isinstance(error, SetupRejected):
            # A client would take what is held, a sign of life above all, for acceptance.
            self._forget_output()
        super().close(now, error)

    def _suspend(self) -> None:
        # The next link gets it from the replay.
        self._forget_output()
        super()._suspend()

    def _finish(self, error: Exception | None) -> None:
        log = self._log
        self._log = None
        # Nobody comes back for it: it need not be durable any more.
        self._ready_output += self._held_output
        self._ready_events += self._held_events + self._waiting_events
        self._held_output, self._held_events, self._waiting_events = [], [], []
        super()._finish(error)
        if log is not None:
            self._when_written(log.remove)

    def _take_ready(self, events: list[Event]) -> list[Event]:
        """Return what is durable by now, and `events` behind it."""
        ready = self._ready_events
        if not ready:
            return events
        self._ready_events = []
        return ready + events

    def _forget_output(self) -> None:
        self._held_output, self._ready_output = [], []

    def _crowd(self, crowded: bool) -> None:
        """Tell the watcher whether what waits for the disk is too much."""
        if crowded and self._watcher is not None:
            self._crowded = True
            self._watcher(True)

    def _when_written(self, do: Callable[[], None]) -> None:
        """Let go of the log, as soon as nothing is being written to it."""
        if self._writing:
            self._afterwards = do
        else:
            do()

    def _secure(self) -> None:
        """Begin to write down what has changed, unless something is being written, and hold what may leave then."""
        if self._writing or not (self._outbound.outbox.size or self._waiting_events):
            return
        work = self._write_down()
        self._held_output += RSocketSession.take_output(self)
        self._held_events, self._waiting_events = self._waiting_events, []
        if work is None or self._run is None:
            self._release()
        else:
            self._run(work, self._written)

    def _release(self) -> None:
        """Let go of what was held: it is durable."""
        self._ready_output += self._held_output
        self._ready_events += self._held_events
        self._held_output, self._held_events = [], []

    def _written(self, error: Exception | None) -> None:
        """Go on when a record is durable; where that failed, end the session: nothing of it may leave."""
        written, self._writing = self._writing, None
        log = self._log
        if log is None or written is None:
            if self._afterwards is not None:
                self._afterwards()
                self._afterwards = None
        elif error is not None:
            self._held_output, self._held_events, self._waiting_events = [], [], []
            self._outbound.outbox.clear()
            self._abort(error, Code.CONNECTION_ERROR)
        else:
            self._logged_sent, self._logged_received, self._logged = written.sent, written.received, written.streams
            self._unsynced = False
            if written.anew:
                self._begun = True
                self._rewrite_at = 2 * log.size + REWRITE_BYTES
            self._release()
        self._crowded = False
        if self._watcher is not None:
            self._watcher(False)

    def _write_down(self) -> Callable[[], None] | None:
        """Return what writes down all that has changed, or None where nothing has."""
        log = self._log
        replay = self._outbound.replay
        if log is None or replay is None or self._opening is None:
            return None
        streams = self._open_now()
        anew = not self._begun or log.size > self._rewrite_at
        if anew:
            record = self._record(replay, replay.first, streams, {})
            record.opening = self._opening
        elif (
            self._unsynced
            or replay.end != self._logged_sent
            or self._received != self._logged_received
            or streams != self._logged
        ):
            record = self._record(replay, max(replay.first, self._logged_sent), streams, self._logged)
        else:
            return None
        self._writing = _Written(replay.end, self._received, streams, anew)
        return partial(log.rewrite if anew else log.append, encode_record(record))

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


def _first_request(events: list[Event]) -> int:
    """Return the index of the first request among `events`; their number if there is none."""
    for index, event in enumerate(events):
        if type(event) is Requested:
            return index
    return len(events)


def digest(identity: bytes) -> bytes:
    """Return what is kept of an identity."""
    return sha256(identity).digest()
