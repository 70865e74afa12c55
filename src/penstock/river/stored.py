"""A server's session that outlives its process: nothing leaves before all that resuming needs is durable.

Invariant. The log holds, first,

* each message of ours, before it leaves: the next process sends the same bytes under the same number;
* the number of the next message that we expect, before a message leaves that acknowledges what lies before it: the
  client forgets what is acknowledged, and can never send it again;
* the same number, and that the stream is open, before the handler of a request begins: the client sends an older number
  again, and the next process drops it. So no request is begun twice, and none vanishes.

What the client acknowledges is not written down: it says so again in its next handshake. Nor is what a handler
receives, since the handler dies with its process: the next one ends each open stream with an error.

Nobody waits while the disk is written. What there is to say by then is one record, whose output and requests are held
until it is durable; what comes up meanwhile is the next record.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from hashlib import sha256
from typing import Final, NamedTuple

from msgspec import UNSET

from ..core.halves import OPEN
from ..errors import SetupRejected
from ..events import Event, Requested
from ..session import Run, SessionLog
from ..settings import Settings
from ..wire.river.codec import CANCEL
from .codes import CANCELED, refusal
from .connection import CLOSED, OPENED
from .handshake import HandshakeRequest, check_state
from .records import RECEIVING, SENDING, VERSION, Opening, Record, Retained, encode_record
from .session import RiverSession, tag_of
from .sessions import Sessions

__all__ = ["StoredRiverSession", "digest"]

REWRITE_BYTES: Final = 1 << 20
"""A log is rewritten when it has grown to twice what it held then, and this much."""
RESTARTED: Final = "the server was restarted; part of this may have been done"


class _Written(NamedTuple):
    """What a record says that is being written.

    Attributes:
        sent: The number of the first message that it does not hold.
        received: The number that may be acknowledged.
        streams: What is open of each stream.
        whole: It takes the place of all records before it.

    """

    sent: int
    received: int
    streams: dict[str, int]
    whole: bool


class StoredRiverSession(RiverSession):
    """A server's session with a log."""

    def __init__(
        self,
        settings: Settings,
        codec: str,
        is_client: bool,
        us: str,
        peer: str,
        session_id: str,
        tag: str,
        metadata: bytes = b"",
    ) -> None:
        super().__init__(settings, codec, is_client, us, peer, session_id, tag, metadata)
        self._log: SessionLog | None = None
        self._run: Run | None = None
        self._watcher: Callable[[bool], None] | None = None
        self._beginning: Opening | None = None
        # What an earlier process had open; None: this one has taken it over, or there was none.
        self._orphans: dict[str, int] | None = None
        # What the log holds.
        self._begun = False
        self._logged_sent = 0
        self._logged_received = 0
        self._logged: dict[str, int] = {}
        self._rewrite_at = 0
        # Its last records may have been written, and not synced, by a process that was killed in between.
        self._unsynced = False
        # What is being written, if anything, and what becomes of the log afterwards, if that is known.
        self._writing: _Written | None = None
        self._afterwards: Callable[[], None] | None = None
        self._crowded = False
        # Events that the next record covers; what the record covers that is being written; and what is durable.
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
    def durable(self) -> StoredRiverSession:
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
        return self._log is None or not (self._writing or self._waiting_events or self._outbox.size)

    @property
    def withheld(self) -> set[int]:
        """The streams of which events wait for the disk. See :class:`penstock.session.Durable`."""
        return {event.stream_id for event in self._held_events + self._waiting_events}

    @property
    def full(self) -> bool:
        """Whether so much is held, or so many requests wait for the disk, that nothing more should be read."""
        crowded = len(self._waiting_events) >= self._settings.max_streams
        return crowded or self._held_bytes > self._settings.max_held_bytes

    def detach(self) -> None:
        """Leave the session to the next process. See :meth:`penstock.session.Durable.detach`."""
        log, self._log = self._log, None
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
        sessions: Sessions[RiverSession],
        session_id: str,
        identity: bytes,
    ) -> StoredRiverSession:
        """Return the session that an earlier process left; it waits for :meth:`come_back`."""
        opening = retained.opening
        # Ids differ from those of the earlier processes: whatever left them is in the log.
        tag = f"{tag_of(session_id)}-s{retained.seq}-"
        session = cls(settings, opening.codec, False, opening.us, opening.peer, session_id, tag)
        session.identity = identity
        session.begin(log, run)
        session.revive_from(retained, log, sessions)
        return session

    def revive_from(self, retained: Retained, log: SessionLog, sessions: Sessions[RiverSession]) -> None:
        """Take over what `retained` says, instead of a handshake."""
        opening = retained.opening
        self._begun = self._established = self._unsynced = True
        self._beginning = opening
        self._old = opening.old
        self._answered_as = opening.answered_as
        self._sessions = sessions
        self._sequence.seq = retained.first
        for message in retained.messages:
            self._sequence.sent(message)
        self._sequence.ack = self._logged_received = retained.ack
        self._logged_sent = self._sequence.seq
        self._logged = dict(retained.streams)
        self._rewrite_at = 2 * log.size + REWRITE_BYTES
        self._orphans = dict(retained.streams)

    def come_back(self, asked: HandshakeRequest, now: float) -> None:
        """Go on over another link. See :meth:`RiverSession.come_back`.

        Raises:
            SetupRejected: The client and the session do not fit together.

        """
        orphans = self._orphans
        if orphans is not None:
            state = asked.expected_session_state
            try:
                check_state(state, self._sequence)
            except SetupRejected:
                self.decline()
                raise
            if state is not UNSET:
                # What the earlier process was told of this is nowhere written down.
                self._sequence.acknowledged(int(state.next_expected_seq))
            self._orphans = None
            if self._sessions is not None:
                self._sessions.add(self)
            for name, open_halves in orphans.items():
                self._end_orphan(name, open_halves)
        super().come_back(asked, now)

    def decline(self) -> None:
        """Leave a session on the disk that its client cannot have. See :meth:`RiverSession.decline`."""
        if self._orphans is not None:
            self.detach()

    def _end_orphan(self, name: str, open_halves: int) -> None:
        """End a stream whose handler died with the earlier process, behind all that was sent on it."""
        self._streams.finish(name)
        if open_halves & SENDING:
            self._post(self._codec.encoded(name), CANCEL, refusal(self._codec, CANCELED, RESTARTED))

    # Written down first.

    def take_output(self) -> list[bytes]:
        """Return the bytes to write of which all that they say is durable."""
        if self._log is not None:
            self._secure()
            if self._writing and not self._crowded:
                self._crowd(self._outbox.size > self._settings.output_high_bytes)
        ready = self._ready_output
        if ready:
            self._ready_output = []
        if self._log is None:
            # Nobody resumes it any more.
            return ready + RiverSession.take_output(self)
        return ready

    def take_events(self) -> list[Event]:
        """Return what happened; requests once they are durable, so that none is begun twice."""
        events = RiverSession.take_events(self)
        if self._log is None:
            return self._take_ready(events)
        # What comes behind a request that waits keeps its place.
        waiting = 0 if self._waiting_events or self._held_events else _first_request(events)
        ready = self._take_ready(events[:waiting])
        if waiting < len(events):
            self._waiting_events += events[waiting:]
            self._secure()
            if self._state == CLOSED:
                self._ready_events += RiverSession.take_events(self)
            ready += self._take_ready([])
        return ready

    def _serve(self, asked: HandshakeRequest, sessions: Sessions[RiverSession], now: float) -> None:
        super()._serve(asked, sessions, now)
        # A server that is restarted finds the session, and what its client has asked for.
        self._unproven = False
        self._beginning = Opening(
            VERSION, self._codec.name, self.us, self.peer, digest(self.identity), self._old, self._answered_as
        )

    def close(self, now: float, error: Exception | None = None) -> None:
        """End the session. See :meth:`penstock.session.Session.close`."""
        if isinstance(error, SetupRejected):
            # A client would take what is held, an answer to its handshake, for acceptance.
            self._forget_output()
        super().close(now, error)

    def _suspend(self, now: float) -> None:
        # The next link gets all that is not acknowledged.
        self._forget_output()
        super()._suspend(now)

    def _finish(self, error: Exception | None) -> None:
        if self._state == CLOSED:
            return
        log, self._log = self._log, None
        # Nobody comes back for it: output need not be durable any more. A request that is not durable never begins: a
        # process that finds the log, because we are killed before it is removed, would begin it again.
        self._ready_output += self._held_output
        unbegun = _without_requests(self._held_events + self._waiting_events)
        self._held_output, self._held_events, self._waiting_events = [], [], []
        super()._finish(error)
        self._ready_events += unbegun
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
        if self._writing or not (self._outbox.size or self._waiting_events):
            return
        work = self._write_down()
        self._held_output += RiverSession.take_output(self)
        self._held_events, self._waiting_events = self._waiting_events, []
        if work is None or self._run is None:
            self._let_go()
        else:
            self._run(work, self._written)

    def _let_go(self) -> None:
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
            self._forget_output()
            self._outbox.clear()
            self._finish(error)
        else:
            self._logged_sent, self._logged_received, self._logged = written.sent, written.received, written.streams
            self._unsynced = False
            if written.whole:
                self._begun = True
                self._rewrite_at = 2 * log.size + REWRITE_BYTES
            self._let_go()
        self._crowded = False
        if self._watcher is not None:
            self._watcher(False)

    def _write_down(self) -> Callable[[], None] | None:
        """Return what writes down all that has changed, or None where nothing has."""
        log, sequence = self._log, self._sequence
        if log is None or self._beginning is None:
            return None
        streams = self._open_now()
        whole = not self._begun or log.size > self._rewrite_at
        if whole:
            record = self._record(sequence.first, streams, {})
            record.opening = self._beginning
        elif (
            self._unsynced
            or sequence.seq != self._logged_sent
            or sequence.ack != self._logged_received
            or streams != self._logged
        ):
            record = self._record(max(sequence.first, self._logged_sent), streams, self._logged)
        else:
            return None
        self._writing = _Written(sequence.seq, sequence.ack, streams, whole)
        return partial(log.rewrite if whole else log.append, encode_record(record))

    def _record(self, first: int, streams: dict[str, int], before: dict[str, int]) -> Record:
        """Return what was sent from number `first` on, and what is open of `streams` that was not `before`."""
        return Record(
            ack=self._sequence.ack,
            first=first,
            messages=self._sequence.since(first),
            opened={name: state for name, state in streams.items() if before.get(name) != state},
            ended=[name for name in before if name not in streams],
        )

    def _open_now(self) -> dict[str, int]:
        """Return what is open of each stream."""
        return {
            stream.name: (SENDING if stream.outbound == OPEN else 0) | (RECEIVING if stream.inbound == OPEN else 0)
            for stream in self._streams.all()
        }


def _first_request(events: list[Event]) -> int:
    """Return the index of the first request among `events`; their number if there is none."""
    for index, event in enumerate(events):
        if type(event) is Requested:
            return index
    return len(events)


def _without_requests(events: list[Event]) -> list[Event]:
    """Return `events` without those of streams that are requested among them."""
    unbegun = {event.stream_id for event in events if type(event) is Requested}
    return [event for event in events if event.stream_id not in unbegun]


def digest(identity: bytes) -> bytes:
    """Return what is kept of an identity."""
    return sha256(identity).digest()
