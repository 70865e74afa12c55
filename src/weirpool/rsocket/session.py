"""A session of the RSocket family: the verbs of its user, and its end."""

from __future__ import annotations

from collections.abc import Callable

from ..core.halves import DONE, MAX_REQUEST_N, OPEN, Signal
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
from ..events import Closed, Event, Failed
from ..kinds import Kind
from ..payload import Payload, PayloadRun, payload_of
from ..settings import Settings
from ..wire.rsocket.frames import COMPLETE, RESPOND, Frame, FrameType, KeepaliveFrame, ResumeFrame
from .codes import Code, wire_of
from .control import Control
from .dialect import ENDLESS, RSOCKET_1_0, Dialect
from .inbound import Inbound
from .lifecycle import CLOSED, DRAINING, LEAVING, OPENED, Lifecycle
from .link import Link
from .resume import Checkpoint, SessionStore, decode_checkpoint, restore, take_checkpoint
from .strays import Strays

__all__ = ["RSocketSession"]

# Plain integers, because compiled code compares them for every item.
_COMPLETE, _FAIL, _CANCELED = int(Signal.COMPLETE), int(Signal.FAIL), int(Signal.CANCEL)
_CALL, _FIRE, _STREAM = int(Kind.CALL), int(Kind.FIRE), int(Kind.STREAM)
_UPLOAD, _CHANNEL = int(Kind.UPLOAD), int(Kind.CHANNEL)
_METADATA_PUSH = int(FrameType.METADATA_PUSH)


class RSocketSession:
    """A :class:`weirpool.session.Session` for the RSocket family.

    Create one with :meth:`client`, :meth:`server` or :meth:`restore`.

    Attributes:
        account, link_wanted: See :class:`weirpool.session.Session`.
        identity: The identity of the client that its link has verified.

    """

    def __init__(
        self,
        settings: Settings,
        dialect: Dialect,
        is_client: bool,
        token: bytes | None,
        store: SessionStore[RSocketSession] | None,
        setup: Payload,
    ) -> None:
        self._settings = settings
        self._dialect = dialect
        self._own_ids = dialect.own_ids
        self._requests = dict(dialect.requests)
        # rsocket-py of 2017, a peer of ReactiveSocket 0.2, ignores the initial request-n but not REQUEST_N.
        ignored = settings.lenient and not dialect.half_close and not dialect.own_ids
        self._max_initial_n = 1 if ignored else MAX_REQUEST_N
        self._store = store
        self._life = life = Lifecycle(settings, dialect, is_client, token, self._finish)
        self.account = life.account
        self._events = life.events
        self._streams = life.streams
        self._outbound = life.outbound
        self._leases = life.leases
        self._strays = Strays(life)
        self._inbound = Inbound(life, self._strays)
        self._control = Control(life, self._inbound, setup, store, self)
        self._link = Link(life, self._inbound, self._control)
        # The position, the stream and the request that the last checkpoint covers, until it is committed.
        self._promised: tuple[int, int, int] | None = None
        self.link_wanted = True
        self.identity = b""

    @classmethod
    def client(
        cls, settings: Settings, setup: Payload, dialect: Dialect = RSOCKET_1_0, token: bytes | None = None
    ) -> RSocketSession:
        """Return a client's session, which sends `setup` over its first link.

        A resumable session needs a `token` of at least 16 random bytes.
        """
        return cls(settings, dialect, True, token, None, setup)

    @classmethod
    def server(
        cls, settings: Settings, dialect: Dialect = RSOCKET_1_0, store: SessionStore[RSocketSession] | None = None
    ) -> RSocketSession:
        """Return a server's session, which waits for SETUP. It is resumable if there is a `store`."""
        return cls(settings, dialect, False, None, store, Payload())

    @classmethod
    def restore(cls, settings: Settings, data: bytes, secret: bytes, dialect: Dialect = RSOCKET_1_0) -> RSocketSession:
        """Return the client's session from `data`, the result of :meth:`checkpoint`; it resumes over its first link.

        `secret` is that of the earlier session. Raises LocalError if `data` is not a valid checkpoint.
        """
        checkpoint = decode_checkpoint(data)
        session = cls(settings, dialect, True, secret, None, Payload())
        session.restore_from(checkpoint)
        return session

    def restore_from(self, checkpoint: Checkpoint) -> None:
        """Set the state from `checkpoint`, instead of a set-up."""
        self._control.handshake = None
        restore(checkpoint, self._life, self._strays.reassembly)

    def link_up(self, now: float) -> None:
        """Start to use a new link. See :meth:`weirpool.session.Session.link_up`."""
        self._link.link_up(now)

    def link_down(self, now: float, error: Exception | None) -> None:
        """Handle the loss of the link. See :meth:`weirpool.session.Session.link_down`."""
        self._link.link_down(now, error)

    def resume(self, frame: ResumeFrame, now: float) -> None:
        """Resume over a new link. See :meth:`weirpool.rsocket.link.Link.resume`."""
        self._link.resume(frame, now)

    def receive(self, data: bytes, now: float, frames: int = 0) -> bool:
        """Handle received bytes, which may be split anywhere. See :meth:`weirpool.session.Session.receive`."""
        return self._link.receive(data, now, frames)

    def progressed(self, now: float) -> None:
        """Record that waiting output has left the link."""
        self._link.progressed(now)

    def next_timer(self) -> float | None:
        """Return when to call `handle_timer`, or None. The time may be early, but not late."""
        return self._life.timers.earliest

    def handle_timer(self, now: float) -> None:
        """Handle all timers that have expired."""
        self._link.handle_timer(now)

    def take_output(self) -> list[bytes]:
        """Remove and return the bytes to write, in chunks of suitable size."""
        return self._outbound.outbox.take()

    def take_events(self) -> list[Event]:
        """Remove and return the events since the last call, in order."""
        events = self._events
        if not events:
            return events
        taken = events[:]
        events.clear()
        return taken

    # Facts; see :class:`weirpool.session.Session`.

    linked_at = None
    excused = False
    calls_by_streams = False
    counts_request = True
    durable = None
    item_errors = None
    full = False

    @property
    def secret(self) -> bytes:
        """The session's token; empty if it has none."""
        return self._life.token or b""

    @property
    def requests_left(self) -> int | None:
        """How many requests the peer's lease still allows; None without leases."""
        requester = self._leases.requester
        return None if requester is None else requester.remaining

    @property
    def open_streams(self) -> int:
        """How many streams are open on both sides."""
        return len(self._streams)

    @property
    def refused(self) -> int:
        """How many requests were rejected because of a limit, or without a lease."""
        return self._strays.rejected

    @property
    def ignored(self) -> int:
        """How many frames were ignored."""
        return self._strays.ignored

    def ask_kinds(self, kind_of: Callable[[str], int | None]) -> None:
        """Do nothing, because requests contain their kind."""

    def streams(self) -> list[int]:
        """Return the ids of the open streams that this side opened."""
        return [stream.id for stream in self._streams.all() if stream.ours]

    def is_ours(self, stream_id: int) -> bool:
        """Return whether this side opens the streams with such ids."""
        return not self._streams.may_be_theirs(stream_id)

    # Verbs.

    def open(
        self, kind: Kind, route: str, payload: Payload, credit: int = 0, done: bool = False, endless: bool = False
    ) -> int:
        """Open a stream and return its id. See :meth:`weirpool.session.Session.open`."""
        if self._life.state != OPENED:
            raise SessionClosed("the connection is not open for new streams")
        number = kind
        type = self._requests.get(ENDLESS if endless else kind)
        if type is None:
            raise UnsupportedKind(f"{self._dialect.name} does not support {kind.name.lower()} requests")
        if credit < 1 and (number == _STREAM or number == _CHANNEL):
            raise LocalError(f"{kind.name.lower()} needs a credit of at least 1, not {credit}")
        metadata = self._inbound.router.metadata(route, payload.metadata)
        if metadata is not payload.metadata:
            payload = payload_of(payload.data, metadata)
        self._outbound.check_request(payload)
        if self._leases.requester is not None and not self._leases.requester.take():
            raise LeaseMissing("the peer has not granted a lease for another request; wait for its next lease")
        if number == _FIRE:
            stream_id = self._streams.take_id()
            self._outbound.request(type, stream_id, 0, 0, payload)
            return stream_id
        stream = self._streams.open_ours(kind)
        stream_id = stream.id
        stream.granted = 1 if number == _CALL or number == _UPLOAD else min(credit, MAX_REQUEST_N)
        flags = 0
        if done and stream.outbound == OPEN:
            flags = COMPLETE
            stream.end(_COMPLETE, True)
        request_n = 0 if number == _CALL else stream.granted
        initial_n = min(request_n, self._max_initial_n)
        self._outbound.request(type, stream_id, flags, initial_n, payload)
        if initial_n < request_n:
            self._outbound.request_n(stream_id, request_n - initial_n)
        return stream_id

    def send(self, stream_id: int, payload: Payload, done: bool = False) -> int:
        """Send an item, the last one if `done`, and return the remaining credit."""
        stream = self._sending(stream_id)
        if stream.credit == 0:
            raise CreditExceeded(f"stream {stream_id}: the peer has not requested another item; wait for CreditGranted")
        if stream.kind == _CALL:
            done = True
        elif done and self._own_ids and not payload.data and payload.metadata is None:
            # ReactiveSocket 0.0, Response Frame: an empty response with the complete bit is not an item.
            self._outbound.item(stream_id, payload, False)
            stream.credit -= 1
            self.complete(stream_id)
            return stream.credit
        self._outbound.item(stream_id, payload, done)
        stream.credit -= 1
        if done:
            self._end(stream, _COMPLETE)
        return stream.credit

    def send_run(self, stream_id: int, run: PayloadRun, start: int = 0) -> int:
        """Send the items of `run` from index `start` as far as credit allows; return how many."""
        stream = self._sending(stream_id)
        count = min(stream.credit, len(run) - start)
        if count > 0:
            stream.credit -= count
            self._outbound.run(stream_id, run, start, start + count)
        return count

    def complete(self, stream_id: int) -> None:
        """End our half normally. Does nothing if it has ended."""
        stream = self._streams.get(stream_id)
        if stream is not None and stream.outbound == OPEN:
            self._outbound.complete(stream_id)
            self._end(stream, _COMPLETE)

    def fail(self, stream_id: int, error: Exception) -> None:
        """End both halves of a stream with an error. See :meth:`weirpool.session.Session.fail`."""
        stream = self._streams.get(stream_id)
        if stream is None:
            return
        if stream.only_canceled:
            self.cancel(stream_id)
            return
        code, data, metadata = wire_of(error, self._dialect.first_application_code)
        self._outbound.error(stream_id, code, data, metadata)
        self._end(stream, _FAIL)

    def request(self, stream_id: int, count: int) -> None:
        """Request `count` more items from the peer. Does nothing if its half has ended."""
        if count < 1:
            raise LocalError(f"stream {stream_id}: request at least 1 item, not {count}")
        stream = self._streams.get(stream_id)
        if stream is None or stream.inbound != OPEN:
            return
        # The payload that opened a channel counts as one of the requested items.
        early = min(stream.unrequested, count)
        stream.unrequested -= early
        count = min(count - early, MAX_REQUEST_N - stream.granted)
        if count > 0:
            stream.granted += count
            self._outbound.request_n(stream_id, count)

    def cancel(self, stream_id: int, metadata: bytes | None = None) -> None:
        """Cancel the peer's half. Does nothing if it has ended."""
        stream = self._streams.get(stream_id)
        if stream is not None and stream.inbound == OPEN:
            self._outbound.cancel(stream_id, metadata)
            self._end(stream, _CANCELED)

    def credit(self, stream_id: int) -> int:
        """Return how many more items may be sent; 0 if our half has ended."""
        stream = self._streams.get(stream_id)
        return stream.credit if stream is not None and stream.outbound == OPEN else 0

    def push(self, metadata: bytes, stream_id: int = 0) -> None:
        """Send metadata for the whole connection, or for a stream."""
        if self._life.state != OPENED:
            raise SessionClosed("the connection is closing")
        if stream_id and not self._own_ids:
            raise UnsupportedKind(f"{self._dialect.name} cannot push metadata to a stream, only to the connection")
        self._outbound.control(Frame(_METADATA_PUSH, abs(stream_id), 0, 0, metadata))

    def confirm(self) -> None:
        """Request a confirmation that the server has accepted the set-up; `Established` or `Closed` follows."""
        self._control.confirm()

    def rehandshake(self, now: float) -> None:
        """Raise UnsupportedKind, because only a new session can repeat the set-up."""
        raise UnsupportedKind(f"{self._dialect.name} does not support rehandshakes")

    def shed(self, now: float, error: Exception) -> bool:
        """Drop the largest unfinished item, or unconfirmed output. See :meth:`weirpool.session.Session.shed`."""
        return self._strays.shed(error)

    def close(self, now: float, error: Exception | None = None) -> None:
        """End the session: at once if there is an `error`, else when the open streams have ended."""
        if self._life.state == CLOSED:
            return
        if self._life.state == LEAVING:
            if error is not None:
                self._finish(None)
            return
        if error is not None:
            refusal = error.code if isinstance(error, SetupRejected) else None
            self._control.abort(error, refusal if isinstance(refusal, int) else Code.CONNECTION_ERROR)
            return
        # RSocket 1.0, Error Codes: after CONNECTION_CLOSE, open streams may end and new ones are rejected. It is
        # sent when they have ended, because many peers drop all streams as soon as they receive it.
        self._life.move("close()")
        self._inbound.draining = True
        self._control.close_if_done()

    def checkpoint(self, stream_id: int, count: int) -> bytes | None:
        """Return what a new process needs to continue. See :meth:`weirpool.session.Session.checkpoint`."""
        found = take_checkpoint(self._life, self._strays.partials, stream_id, count)
        if found is not None:
            self._promised = self._life.received, stream_id, count
        return found

    def commit(self) -> None:
        """Report the last checkpoint to the peer as safe. See :meth:`weirpool.session.Session.commit`."""
        if self._promised is None:
            return
        self._life.reported, stream_id, count = self._promised
        self._promised = None
        if count > 0:
            self.request(stream_id, count)
        self._outbound.control(KeepaliveFrame(RESPOND if self._life.is_client else 0, self._life.reported))

    def _finish(self, error: Exception | None) -> None:
        """End the session after all its streams have failed."""
        life = self._life
        if life.state == LEAVING:
            # Nothing was open, so it does not matter how the client disconnects.
            error = None
        life.move("finished")
        if self._store is not None and life.token is not None:
            self._store.remove(life.token, error)
        reason = error if error is not None else SessionClosed("the connection was closed")
        for stream in self._streams.all():
            stream.inbound = stream.outbound = DONE
            self._strays.remove_stream(stream)
            self._events.append(Failed(stream.id, reason))
        self._strays.reassembly.clear()
        if self._outbound.replay is not None:
            self._outbound.replay.drop()
        self._link.forget_input()
        self.link_wanted = False
        self._events.append(Closed(error))
        life.timers.clear()

    def _sending(self, stream_id: int) -> Stream:
        stream = self._streams.get(stream_id)
        if stream is None or stream.outbound != OPEN:
            raise StreamClosed(f"stream {stream_id}: our half has ended")
        return stream

    def _end(self, stream: Stream, signal: int) -> None:
        if stream.end(signal, True):
            self._strays.remove_stream(stream)
            if self._life.state == DRAINING:
                self._control.close_if_done()
