"""A server's session that outlives its process: it sends nothing before its log has all that resuming needs.

Invariant: the log contains

* each of our messages, before it is sent. The next process sends the same bytes with the same number.
* the number of the next expected message, before a message acknowledges those before it. The client drops acknowledged
  messages and cannot send them again.
* that number and the open stream, before the handler of a request starts. The client sends older numbers again, and the
  next process drops them, so no request starts twice or is lost.

The client's acknowledgements are not logged, because its next handshake repeats them. Nor is the input of handlers,
which end with their process: the next process ends each open stream with an error.

The first record of a log contains the whole session. Each later one contains the changes since the one before it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import UNSET, Meta

from ..core.halves import OPEN
from ..core.write_ahead import Logged, WriteAhead, decode_records, digest, without_requests
from ..errors import SetupRejected
from ..events import Event
from ..session import Run, SessionLog
from ..settings import Settings
from ..wire.river.codec import CANCEL, MAX_NUMBER
from .codes import CANCELED, refusal
from .handshake import HandshakeRequest, check_state
from .session import RiverSession
from .sessions import Sessions
from .states import CLOSED, OPENED

__all__ = ["Retained", "StoredRiverSession"]

VERSION: Final = 1

# The open halves of a stream; bits.
SENDING: Final = 1
RECEIVING: Final = 2
_Halves: TypeAlias = Annotated[int, Meta(ge=0, le=SENDING | RECEIVING)]
_Number: TypeAlias = Annotated[int, Meta(ge=0, le=MAX_NUMBER)]
RESTARTED: Final = "the server was restarted; part of this may have been done"


class Opening(msgspec.Struct, array_like=True):
    """How a session began.

    Attributes:
        version: The version of this layout.
        codec: The name of the codec.
        us: The server's id.
        peer: The client's id.
        identity: A digest of the client's identity, as far as its link proves it.
        old: Whether the client speaks v1.1.
        answered_as: The session's id in responses to handshakes.

    """

    version: int
    codec: str
    us: str
    peer: str
    identity: bytes
    old: bool
    answered_as: str


class Record(msgspec.Struct, array_like=True):
    """The changes of a session since the record before.

    Attributes:
        ack: The number of the next expected message.
        first: The number of the first of `messages`.
        messages: The messages sent, encoded.
        opened: Streams that were opened or whose open halves changed: id to open halves.
        ended: Ids of streams that ended.
        opening: How the session began; only in the first record of a log.

    """

    ack: _Number
    first: _Number
    messages: list[bytes]
    opened: dict[str, _Halves]
    ended: list[str]
    opening: Opening | None = None


_decoder = msgspec.msgpack.Decoder(Record)


class Retained:
    """A session restored from the records of its log.

    Args:
        data: The records, encoded.

    Attributes:
        opening: How the session began.
        ack: The number of the next expected message.
        first: The number of the first of `messages`.
        messages: The messages that the client may not have received.
        streams: The open halves of each open stream, by id.

    Raises:
        SessionStoreError: A record is invalid, or the first one does not contain a whole session.

    """

    def __init__(self, data: Iterable[bytes]) -> None:
        records, self.streams = decode_records(_decoder, data, VERSION, "River")
        self.opening: Opening = records[0].opening
        self.first: int = records[0].first
        self.messages: list[bytes] = []
        for record in records:
            self.ack: int = record.ack
            if record.first != self.seq:
                # The messages between were acknowledged before they were logged.
                self.first, self.messages = record.first, []
            self.messages += record.messages

    @property
    def seq(self) -> int:
        """The number of the next message to send."""
        return self.first + len(self.messages)


class StoredRiverSession(RiverSession):
    """A server's session with a log. Its outbox writes to the log before it sends.

    Attributes:
        begin: Starts writing the log. See :meth:`weirpool.core.write_ahead.WriteAhead.begin`.

    """

    def __init__(self, settings: Settings, *arguments: Any) -> None:
        super().__init__(settings, *arguments)
        high_bytes = settings.output_high_bytes
        storage = WriteAhead(self._observe, self._record, self._finish, self._is_open, high_bytes)
        self._outbound.outbox = self._storage = storage
        self.take_output = storage.take
        self.begin = storage.begin
        self._opening: Opening | None = None
        # Streams that an earlier process left open; None: they were ended, or the session is new.
        self._orphans: dict[str, int] | None = None

    # Between processes.

    @property
    def durable(self) -> WriteAhead:
        """The session's outbox, which writes its log."""
        return self._storage

    def _is_open(self) -> bool:
        return self._state == OPENED

    @property
    def full(self) -> bool:
        """Whether reading should pause: too many items are held, or too many requests wait for the disk."""
        settings = self._settings
        return len(self._storage.waiting) >= settings.max_streams or self._inbound.held_bytes > settings.max_held_bytes

    def revive(self, retained: Retained, log: SessionLog, run: Run, sessions: Sessions[RiverSession]) -> None:
        """Restore the session of an earlier process. It then waits for :meth:`resume`."""
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

    def resume(self, request: HandshakeRequest, now: float) -> None:
        """Resume the session over another link. See :meth:`RiverSession.resume`.

        Raises:
            SetupRejected: One side no longer has messages that the other one expects.

        """
        orphans = self._orphans
        if orphans is not None:
            state = request.expected_session_state
            try:
                check_state(state, self.sequence)
            except SetupRejected:
                self.decline()
                raise
            if state is not UNSET:
                # The log does not contain acknowledgements.
                self.sequence.acknowledged(int(state.next_expected_seq))
            self._orphans = None
            if self._sessions is not None:
                self._sessions.add(self)
            for name, open_halves in orphans.items():
                self._end_orphan(name, open_halves)
        super().resume(request, now)

    def decline(self) -> None:
        """Return a stored session to its log. See :meth:`RiverSession.decline`."""
        if self._orphans is not None:
            self._storage.detach()

    def _end_orphan(self, name: str, open_halves: int) -> None:
        """End a stream whose handler ended with the earlier process, after everything that it sent."""
        self._streams.finish(name)
        if open_halves & SENDING:
            body = refusal(self._codec, CANCELED, RESTARTED)
            self._outbound.send_message(self._codec.encoded(name), CANCEL, body)

    # Logged first.

    def take_events(self) -> list[Event]:
        """Return the events since the last call. Requests wait until they are durable, so that none starts twice."""
        ready = self._storage.sift(RiverSession.take_events(self))
        if self._state == CLOSED:
            # The session may just have ended because a record could not be written.
            ready += self._storage.sift(RiverSession.take_events(self))
        return ready

    def serve(self, request: HandshakeRequest, sessions: Sessions[RiverSession], now: float) -> None:
        """Answer a client's first handshake. See :meth:`RiverSession.serve`."""
        super().serve(request, sessions, now)
        # No probation: a restarted server finds the session and its requests in the log.
        self._link.on_probation = False
        self._opening = Opening(
            VERSION, self._codec.name, self.us, self.peer, digest(self.identity), self._outbound.v1_1, self._answered_as
        )

    def close(self, now: float, error: Exception | None = None) -> None:
        """End the session. See :meth:`weirpool.session.Session.close`."""
        if isinstance(error, SetupRejected):
            # The held output contains a response that would accept the handshake.
            self._storage.forget_output()
        super().close(now, error)

    def _finish(self, error: Exception | None) -> None:
        if self._state == CLOSED:
            return
        events, remove_log = self._storage.end()
        super()._finish(error)
        # A request that is not durable must not start: if this process is killed before it removes the log, the next
        # one would start it again.
        self._storage.ready(without_requests(events))
        remove_log()

    # Records.

    def _observe(self) -> Logged | None:
        """Return the state that the log should contain; None before the session has begun."""
        if self._opening is None:
            return None
        streams = {
            stream.name: (SENDING if stream.outbound == OPEN else 0) | (RECEIVING if stream.inbound == OPEN else 0)
            for stream in self._streams.all()
        }
        return Logged(self.sequence.seq, self.sequence.ack, streams)

    def _record(self, now: Logged, before: Logged | None) -> bytes:
        """Return the record of the changes from `before` to `now`, or of the whole session if `before` is None."""
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
