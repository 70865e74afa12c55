"""A server's session that outlives its process: nothing leaves before all that resuming needs is durable.

Invariant. The log holds, first,

* each message of ours, before it leaves: the next process sends the same bytes under the same number;
* the number of the next message that we expect, before a message leaves that acknowledges what lies before it: the
  client forgets what is acknowledged, and can never send it again;
* the same number, and that the stream is open, before the handler of a request begins: the client sends an older number
  again, and the next process drops it. So no request is begun twice, and none vanishes.

What the client acknowledges is not written down: it says so again in its next handshake. Nor is what a handler
receives, since the handler dies with its process: the next one ends each open stream with an error.

The first record of a log holds the whole session; each of the others holds what has changed since the one before.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec
from msgspec import UNSET

from ..core.halves import OPEN
from ..core.write_ahead import Logged, WriteAhead, decode_records, digest, without_requests
from ..errors import SetupRejected
from ..events import Event
from ..session import Run, SessionLog
from ..settings import Settings
from ..wire.river.codec import CANCEL
from .codes import CANCELED, refusal
from .handshake import HandshakeRequest, check_state
from .session import RiverSession
from .sessions import Sessions
from .states import CLOSED, OPENED

__all__ = ["Retained", "StoredRiverSession"]

VERSION: Final = 1

# What is open of a stream; bits.
SENDING: Final = 1
RECEIVING: Final = 2
RESTARTED: Final = "the server was restarted; part of this may have been done"


class Opening(msgspec.Struct, array_like=True):
    """How a session began.

    Attributes:
        version: Of this layout.
        codec: Of its messages.
        us: The server's id.
        peer: The client's.
        identity: A digest of who the client is, as far as its link proves it.
        old: It speaks v1.1.
        answered_as: What the answers to its handshakes call the session.

    """

    version: int
    codec: str
    us: str
    peer: str
    identity: bytes
    old: bool
    answered_as: str


class Record(msgspec.Struct, array_like=True):
    """What has changed in a session.

    Attributes:
        ack: The number of the next message that is expected.
        first: The number of the first of `messages`.
        messages: What is sent from there on, as it is sent.
        opened: Streams that are open now and were not before, or not so: id, and what is open of them.
        ended: Ids of streams that are open no more.
        opening: How it began; in the first record of a log alone.

    """

    ack: int
    first: int
    messages: list[bytes]
    opened: dict[str, int]
    ended: list[str]
    opening: Opening | None = None


_decoder = msgspec.msgpack.Decoder(Record)


class Retained:
    """What the records of a log add up to.

    Args:
        data: The records.

    Attributes:
        opening: How the session began.
        ack: The number of the next message that is expected.
        first: The number of the first of `messages`.
        messages: What was sent, and the client may not have.
        streams: What is open, by id.

    Raises:
        SessionStoreError: They are not records, or do not begin with a whole session.

    """

    def __init__(self, data: Iterable[bytes]) -> None:
        records, self.streams = decode_records(_decoder, data, VERSION, "River")
        self.opening: Opening = records[0].opening
        self.first: int = records[0].first
        self.messages: list[bytes] = []
        for record in records:
            self.ack: int = record.ack
            if record.first != self.seq:
                # What lies between was acknowledged before it was written down.
                self.first, self.messages = record.first, []
            self.messages += record.messages

    @property
    def seq(self) -> int:
        """The number of the next message that is sent."""
        return self.first + len(self.messages)


class StoredRiverSession(RiverSession):
    """A server's session with a log. Its outbox writes to the log first.

    Attributes:
        begin: Keeps the session in a log from now on. See :meth:`penstock.core.write_ahead.WriteAhead.begin`.

    """

    def __init__(self, settings: Settings, *arguments: Any) -> None:
        super().__init__(settings, *arguments)
        high_bytes = settings.output_high_bytes
        storage = WriteAhead(self._observe, self._record, self._finish, self._is_open, high_bytes)
        self._outbound.outbox = self._storage = storage
        self.take_output = storage.take
        self.begin = storage.begin
        self._opening: Opening | None = None
        # The streams that an earlier process had open; None: they have ended, or there was no such process.
        self._orphans: dict[str, int] | None = None

    # From one process to the next.

    @property
    def durable(self) -> WriteAhead:
        """The session's outbox, which writes its log."""
        return self._storage

    def _is_open(self) -> bool:
        return self._state == OPENED

    @property
    def full(self) -> bool:
        """Whether so much is held, or so many requests wait for the disk, that nothing more should be read."""
        settings = self._settings
        return len(self._storage.waiting) >= settings.max_streams or self._inbound.held_bytes > settings.max_held_bytes

    def revive(self, retained: Retained, log: SessionLog, run: Run, sessions: Sessions[RiverSession]) -> None:
        """Take over what an earlier process left, instead of a handshake; the session waits for :meth:`resume`."""
        opening = retained.opening
        self._opening = opening
        self._outbound.v1_1 = opening.old
        self._answered_as = opening.answered_as
        self._sessions = sessions
        self._orphans = dict(retained.streams)
        sequence = self.sequence
        sequence.seq = retained.first
        for message in retained.messages:
            sequence.sent(message)
        sequence.ack = retained.ack
        self._storage.begin(log, run, Logged(sequence.seq, retained.ack, dict(retained.streams)))

    def resume(self, asked: HandshakeRequest, now: float) -> None:
        """Go on over another link. See :meth:`RiverSession.resume`.

        Raises:
            SetupRejected: The client and the session do not fit together.

        """
        orphans = self._orphans
        if orphans is not None:
            state = asked.expected_session_state
            try:
                check_state(state, self.sequence)
            except SetupRejected:
                self.decline()
                raise
            if state is not UNSET:
                # What the earlier process was told of this is nowhere written down.
                self.sequence.acknowledged(int(state.next_expected_seq))
            self._orphans = None
            if self._sessions is not None:
                self._sessions.add(self)
            for name, open_halves in orphans.items():
                self._end_orphan(name, open_halves)
        super().resume(asked, now)

    def decline(self) -> None:
        """Leave a session on the disk that its client cannot have. See :meth:`RiverSession.decline`."""
        if self._orphans is not None:
            self._storage.detach()

    def _end_orphan(self, name: str, open_halves: int) -> None:
        """End a stream whose handler died with the earlier process, after all that was sent on it."""
        self._streams.finish(name)
        if open_halves & SENDING:
            body = refusal(self._codec, CANCELED, RESTARTED)
            self._outbound.send_message(self._codec.encoded(name), CANCEL, body)

    # Written down first.

    def take_events(self) -> list[Event]:
        """Return what happened; requests once they are durable, so that none is begun twice."""
        ready = self._storage.sift(RiverSession.take_events(self))
        if self._state == CLOSED:
            # A record that could not be written may have ended the session just now.
            ready += self._storage.sift(RiverSession.take_events(self))
        return ready

    def serve(self, asked: HandshakeRequest, sessions: Sessions[RiverSession], now: float) -> None:
        """Answer a client's first handshake. See :meth:`RiverSession.serve`."""
        super().serve(asked, sessions, now)
        # A server that is restarted finds the session, and what its client has requested.
        self._link.probation_bytes = -1
        self._opening = Opening(
            VERSION, self._codec.name, self.us, self.peer, digest(self.identity), self._outbound.v1_1, self._answered_as
        )

    def close(self, now: float, error: Exception | None = None) -> None:
        """End the session. See :meth:`penstock.session.Session.close`."""
        if isinstance(error, SetupRejected):
            # A client would take what is held, an answer to its handshake, for acceptance.
            self._storage.forget_output()
        super().close(now, error)

    def _finish(self, error: Exception | None) -> None:
        if self._state == CLOSED:
            return
        events, remove_log = self._storage.end()
        super()._finish(error)
        # A request that is not durable never begins: a process that finds the log, because we are killed before it is
        # removed, would begin it again.
        self._storage.ready(without_requests(events))
        remove_log()

    # Records.

    def _observe(self) -> Logged | None:
        """Return what the log should hold."""
        if self._opening is None:
            return None
        streams = {
            stream.name: (SENDING if stream.outbound == OPEN else 0) | (RECEIVING if stream.inbound == OPEN else 0)
            for stream in self._streams.all()
        }
        return Logged(self.sequence.seq, self.sequence.ack, streams)

    def _record(self, now: Logged, before: Logged | None) -> bytes:
        """Return the record that leads from `before` to `now`; from None: the whole session."""
        sequence = self.sequence
        first = sequence.first if before is None else max(sequence.first, before.sent)
        return msgspec.msgpack.encode(
            Record(
                ack=now.received,
                first=first,
                messages=sequence.since(first),
                opened=now.opened_since(before),
                ended=now.ended_since(before),
                opening=self._opening if before is None else None,
            )
        )
