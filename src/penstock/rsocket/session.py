"""The RSocket engine's verbs: what a session's user may ask of it, in any dialect of the family."""

from __future__ import annotations

from ..core.credit import MAX_REQUEST_N
from ..core.halves import OPEN, Signal
from ..core.replay import Replay
from ..core.streams import Stream
from ..errors import (
    CreditExceeded,
    LeaseMissing,
    LocalError,
    SessionClosed,
    SetupRejected,
    StreamClosed,
    UnsupportedKind,
)
from ..kinds import Kind
from ..payload import Payload, PayloadRun
from ..session import ClientStart
from ..settings import Settings
from ..wire.framing import MAX_FRAME_BYTES, prefixed
from ..wire.rsocket.frames import COMPLETE, RESPOND, Frame, FrameType, KeepaliveFrame
from .codes import Code, wire_of
from .connection import CLOSED, DRAINING, OPENED, Connection
from .dialect import DIALECTS, ENDLESS, RSOCKET_1_0, Dialect
from .link import Links
from .resume import (
    VERSION,
    Checkpoint,
    PartialState,
    SessionStore,
    StreamState,
    decode_checkpoint,
    encode_checkpoint,
)

__all__ = ["RSocketSession", "client"]

_COMPLETE = int(Signal.COMPLETE)
_FAIL = int(Signal.FAIL)
_CANCELED = int(Signal.CANCEL)
_CALL = int(Kind.CALL)
_FIRE = int(Kind.FIRE)
_STREAM = int(Kind.STREAM)
_UPLOAD = int(Kind.UPLOAD)
_CHANNEL = int(Kind.CHANNEL)
_REQUEST_N = int(FrameType.REQUEST_N)


class RSocketSession(Links):
    """A :class:`penstock.session.Session` that speaks RSocket.

    Make one with :meth:`client`, :meth:`server` or :meth:`restore`.
    """

    @classmethod
    def client(
        cls, settings: Settings, setup: Payload, dialect: Dialect = RSOCKET_1_0, token: bytes | None = None
    ) -> RSocketSession:
        """Return a client's session, which sends `setup` as soon as a link is up.

        Args:
            settings: Limits and timeouts.
            setup: What to say to the server.
            dialect: The protocol version.
            token: At least 16 random bytes, for a session that can be resumed; else None.

        """
        return cls(settings, dialect, True, token, None, setup)

    @classmethod
    def server(
        cls, settings: Settings, dialect: Dialect = RSOCKET_1_0, store: SessionStore[Connection] | None = None
    ) -> RSocketSession:
        """Return a server's session, which waits for SETUP; with a `store`, its client may resume it."""
        return cls(settings, dialect, False, None, store, Payload())

    # Verbs.

    def open(
        self, kind: Kind, route: str, payload: Payload, credit: int = 0, done: bool = False, endless: bool = False
    ) -> int:
        """Open a stream and return its id. See :meth:`penstock.session.Session.open`."""
        if self._state != OPENED:
            raise SessionClosed("the connection is not open for new streams")
        type = self._dialect.requests.get(ENDLESS if endless else kind)
        if type is None:
            raise UnsupportedKind(f"{self._dialect.name} has no way to carry {kind.name.lower()}")
        if credit < 1 and (kind == _STREAM or kind == _CHANNEL):
            raise LocalError(f"{kind.name.lower()} needs a credit of at least 1, not {credit}")
        if self._honoring is not None and not self._honoring.take():
            raise LeaseMissing("the peer has given no leave for another request; wait for its next lease")
        metadata = self._router.metadata(route, payload.metadata)
        if metadata is not payload.metadata:
            payload = Payload(payload.data, metadata)
        stream = self._streams.open_ours(kind)
        stream_id = stream.id
        if kind == _CALL or kind == _UPLOAD:
            credit = 1
        elif credit > MAX_REQUEST_N:
            credit = MAX_REQUEST_N
        stream.granted = credit
        flags = 0
        if kind == _FIRE:
            self._streams.close(stream)
        elif done and stream.outbound == OPEN:
            flags = COMPLETE
            stream.end(_COMPLETE, True)
        request_n = 0 if kind == _CALL or kind == _FIRE else stream.granted
        self._outbound.request(type, stream_id, flags, request_n, payload)
        return stream_id

    def send(self, stream_id: int, payload: Payload, done: bool = False) -> int:
        """Send an item, which may be the last, and return the credit that is left."""
        stream = self._sending(stream_id)
        if stream.credit == 0:
            raise CreditExceeded(f"stream {stream_id}: the peer has not asked for another item; wait for CreditGranted")
        stream.credit -= 1
        if stream.kind == _CALL:
            done = True
        elif done and self._own_ids and not payload.data and payload.metadata is None:
            # ReactiveSocket 0.0, Response Frame: with the complete bit, nothing in it means no item.
            self._outbound.item(stream_id, payload, False)
            self.complete(stream_id)
            return stream.credit
        self._outbound.item(stream_id, payload, done)
        if done:
            self._end(stream, _COMPLETE)
        return stream.credit

    def send_run(self, stream_id: int, run: PayloadRun, start: int = 0) -> int:
        """Send the items of `run` from index `start`, as far as credit goes; return how many that were."""
        stream = self._sending(stream_id)
        count = min(stream.credit, len(run) - start)
        if count > 0:
            stream.credit -= count
            self._outbound.run(stream_id, run, start, start + count)
        return count

    def complete(self, stream_id: int) -> None:
        """End our half: no more items come. A half that is over already is left alone."""
        stream = self._streams.get(stream_id)
        if stream is not None and stream.outbound == OPEN:
            self._outbound.complete(stream_id)
            self._end(stream, _COMPLETE)

    def fail(self, stream_id: int, error: Exception) -> None:
        """End the stream, both halves, with an error. See :meth:`penstock.session.Session.fail`."""
        stream = self._streams.get(stream_id)
        if stream is None:
            return
        if stream.outbound != OPEN and stream.ours:
            # RSocket 1.0, Request Stream: a requester whose half is over can only cancel.
            self.cancel(stream_id)
            return
        code, data, metadata = wire_of(error, self._dialect.first_application_code)
        self._outbound.error(stream_id, code, data, metadata)
        self._end(stream, _FAIL)

    def request(self, stream_id: int, count: int) -> None:
        """Ask the peer for `count` more items. A stream that is over is left alone."""
        if count < 1:
            raise LocalError(f"stream {stream_id}: request at least 1 item, not {count}")
        stream = self._streams.get(stream_id)
        if stream is None or stream.inbound != OPEN:
            return
        # The payload that opened a channel counts as one of the items asked for.
        early = min(stream.unrequested, count)
        stream.unrequested -= early
        count = min(count - early, MAX_REQUEST_N - stream.granted)
        if count > 0:
            stream.granted += count
            self._outbound.request_n(stream_id, count)

    def cancel(self, stream_id: int, metadata: bytes | None = None) -> None:
        """Want no more items. A stream that is over is left alone."""
        stream = self._streams.get(stream_id)
        if stream is not None and stream.inbound == OPEN:
            self._outbound.cancel(stream_id, metadata)
            self._inbound.expect_late(stream)
            self._end(stream, _CANCELED)

    def credit(self, stream_id: int) -> int:
        """Return how many items `send` may still take; 0 for a stream that is over."""
        stream = self._streams.get(stream_id)
        return stream.credit if stream is not None and stream.outbound == OPEN else 0

    def push(self, metadata: bytes, stream_id: int = 0) -> None:
        """Send metadata that belongs to the whole connection, or to a stream."""
        if self._state != OPENED:
            raise SessionClosed("the connection is closing")
        if stream_id and not self._own_ids:
            raise UnsupportedKind(f"{self._dialect.name} pushes metadata to connections alone, not to streams")
        self._outbound.control(Frame(FrameType.METADATA_PUSH, stream_id, 0, 0, metadata))

    def rehandshake(self, now: float) -> None:
        """Refuse: the set-up comes once, or again by a new session."""
        raise UnsupportedKind(f"{self._dialect.name} has no way to ask a client again who it is")

    def close(self, now: float, error: Exception | None = None) -> None:
        """End the session: at once with `error`, else when the streams that are open have ended."""
        if self._state == CLOSED:
            return
        if error is not None:
            refusal = error.code if isinstance(error, SetupRejected) else None
            self._abort(error, refusal if isinstance(refusal, int) else Code.CONNECTION_ERROR)
            return
        # RSocket 1.0, Error Codes: CONNECTION_CLOSE lets streams end and new ones be refused. It is said
        # when they have ended, because many peers drop everything as soon as they read it.
        self._state = DRAINING
        self._inbound.draining = True
        self._after()

    # Checkpoints.

    def checkpoint(self, stream_id: int, count: int) -> bytes | None:
        """Return what a new process needs to go on; see :meth:`penstock.session.Session.checkpoint`."""
        replay = self._outbound.replay
        stream = self._streams.get(stream_id)
        if replay is None or self._token is None or self._state != OPENED:
            return None
        self._reported = max(self._reported, 0)
        retained = self._retained(replay)
        state = [StreamState.of(each) for each in self._streams.all() if each.ours]
        if stream is not None and stream.inbound == OPEN and count > 0:
            # The request that `commit` will send: the server may have it, or not, when this is read.
            retained.append(self._codec.request_n_frame(stream_id, count)[self._codec.prefix_bytes :])
            for each in state:
                each.granted += count if each.id == stream_id else 0
        self._promised = (self._received, stream_id, count)
        return encode_checkpoint(
            Checkpoint(
                version=VERSION,
                received=self._received,
                sent=replay.first,
                retained=retained,
                next_id=self._streams.next_id,
                streams=state,
                partials=[PartialState.of(id, partial) for id, partial in self._inbound.reassembly.partials.items()],
            ),
            self._secrets(retained),
        )

    def _retained(self, replay: Replay) -> list[bytes]:
        """Return the frames that the server may not have, without their lengths."""
        deframer = self._new_deframer(MAX_FRAME_BYTES)
        deframer.feed(b"".join(replay.since(replay.first)))
        frames: list[bytes] = []
        while deframer.next():
            frames.append(deframer.buffer[deframer.start : deframer.end])
        return frames

    def _secrets(self, retained: list[bytes]) -> int:
        """Return how many frames lead up to the last one that may hold a secret: only REQUEST_N holds none for sure."""
        count = len(retained)
        while count and self._codec.decode(retained[count - 1], 0, len(retained[count - 1])).type == _REQUEST_N:
            count -= 1
        return count

    def commit(self) -> None:
        """What the last checkpoint covers is safe: tell the peer. See :meth:`penstock.session.Session.commit`."""
        if self._promised is None:
            return
        self._reported, stream_id, count = self._promised
        self._promised = None
        if count > 0:
            self.request(stream_id, count)
        self._outbound.control(KeepaliveFrame(RESPOND if self._is_client else 0, self._reported))

    @classmethod
    def restore(cls, settings: Settings, data: bytes, secret: bytes, dialect: Dialect = RSOCKET_1_0) -> RSocketSession:
        """Return the client's session that `checkpoint` described; it resumes as soon as a link is up.

        Args:
            settings: Limits and timeouts.
            data: What :meth:`checkpoint` returned.
            secret: The session's :attr:`secret`.
            dialect: The protocol version.

        Raises:
            LocalError: `data` is no checkpoint.

        """
        checkpoint = decode_checkpoint(data)
        session = cls(settings, dialect, True, secret, None, Payload())
        session.restore_from(checkpoint)
        return session

    def restore_from(self, checkpoint: Checkpoint) -> None:
        """Take the state of `checkpoint` over, instead of a set-up."""
        self._state = OPENED
        self._unheard = False
        self._received = self._reported = checkpoint.received
        prefix_bytes = self._codec.prefix_bytes
        replay = Replay(self._settings.resume_bytes, prefix_bytes, checkpoint.sent)
        for body in checkpoint.retained:
            replay.keep(prefixed(body, prefix_bytes), len(body), True)
        self._outbound.replay = replay
        self._outbound.position = replay.end
        self._streams.next_id = checkpoint.next_id
        for state in checkpoint.streams:
            stream = self._streams.restore(state.id, Kind(state.kind))
            stream.inbound, stream.outbound = state.inbound, state.outbound
            stream.granted, stream.credit = state.granted, state.credit
        for partial in checkpoint.partials:
            self._inbound.reassembly.begin(partial.stream_id, partial.head(), partial.metadata, partial.data, 0.0)

    def streams(self) -> list[int]:
        """Return the numbers of the streams that this side opened and that are still open."""
        return [stream.id for stream in self._streams.all() if stream.ours]

    def is_ours(self, stream_id: int) -> bool:
        """Return whether a stream of that number is one that this side opens."""
        return not self._streams.may_be_theirs(stream_id)

    def _sending(self, stream_id: int) -> Stream:
        stream = self._streams.get(stream_id)
        if stream is None or stream.outbound != OPEN:
            raise StreamClosed(f"stream {stream_id}: our half is over")
        return stream

    def _end(self, stream: Stream, signal: int) -> None:
        receiving = stream.inbound == OPEN
        if stream.end(signal, True):
            if receiving and signal == _COMPLETE:
                # There is no half-close: what the requester sends before it hears of this is no offence.
                self._inbound.expect_late(stream)
            self._inbound.forget(stream)
            if self._state == DRAINING:
                self._after()


def client(start: ClientStart) -> RSocketSession:
    """Return a client's session. See :func:`penstock.protocols.client_session`."""
    settings = start.settings
    checkpoint = start.checkpoint_with_secret()
    dialect = DIALECTS.get(start.protocol, RSOCKET_1_0)
    if start.messages:
        dialect = dialect.over_messages()
    elif settings.length_counts_itself:
        dialect = dialect.counting_itself()
    if checkpoint is not None:
        return RSocketSession.restore(settings, checkpoint, start.secret, dialect)
    return RSocketSession.client(settings, start.setup, dialect, start.random if settings.resume else None)
