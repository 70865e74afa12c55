"""The RSocket engine: one session, client or server, in any dialect of the family."""

from __future__ import annotations

from typing import Final

from ..core.credit import MAX_REQUEST_N, add
from ..core.halves import DONE, OPEN, Signal
from ..core.streams import Stream, StreamTable
from ..core.timers import Timer, TimerTable
from ..errors import (
    CreditExceeded,
    KeepaliveTimeout,
    LimitExceeded,
    LinkLost,
    LocalError,
    PeerClosed,
    ProtocolError,
    SessionClosed,
    SessionError,
    SetupRejected,
    StreamClosed,
)
from ..events import Closed, Draining, Established, Event, Failed, MetadataPushed
from ..kinds import Kind
from ..payload import Payload, PayloadRun
from ..settings import Settings
from ..wire.codec import Codec
from ..wire.frames import COMPLETE, ErrorFrame, Frame, FrameType, KeepaliveFrame
from ..wire.framing import Deframer
from .codes import SETUP_CODES, Code, name_of, wire_of
from .dialect import RSOCKET_1_0, Dialect
from .inbound import KINDS, Inbound
from .keepalive import Keepalive
from .metadata import Router
from .mimes import COMPOSITE
from .outbound import Outbound
from .setup import check, setup_frame

__all__ = ["RSocketSession"]

# The state of the session as a whole.
NEW: Final = 0
"""A server waits for SETUP; a client has no link yet."""
OPENED: Final = 1
"""Streams flow. A client may send before the server has shown that it accepts (false start)."""
DRAINING: Final = 2
"""Open streams may end; there are no new ones of ours."""
CLOSED: Final = 3

FRAME_TYPES: Final = {kind: type for type, kind in KINDS.items()} | {Kind.UPLOAD: FrameType.REQUEST_CHANNEL}
UNLIMITED: Final = MAX_REQUEST_N

_CALL = int(Kind.CALL)
_STREAM = int(Kind.STREAM)
_UPLOAD = int(Kind.UPLOAD)


class RSocketSession:
    """A :class:`penstock.session.Session` that speaks RSocket.

    Make one with :meth:`client` or :meth:`server`.
    """

    def __init__(self, settings: Settings, dialect: Dialect, *, is_client: bool) -> None:
        self._settings = settings
        self._dialect = dialect
        self._is_client = is_client
        self._setup = Payload()
        self._codec: Codec = dialect.codec()
        self._events: list[Event] = []
        self._timers = TimerTable()
        self._state = NEW
        self._established = False
        self._streams = StreamTable(1 if is_client else 2, settings.max_streams)
        self._outbound = Outbound(self._codec, dialect.prefix_bytes, settings.fragment_bytes)
        self._inbound = Inbound(settings, self._streams, self._outbound, self._events)
        self._keepalive = Keepalive(self._timers)
        self._router = Router(settings.metadata_mime or COMPOSITE, settings.max_metadata_entries)
        self._inbound.router = self._router
        limit = settings.max_frame_bytes if is_client else settings.max_setup_frame_bytes
        self._deframer = Deframer(dialect.prefix_bytes, limit, dialect.min_frame_bytes)
        self.link_wanted = True

    @classmethod
    def client(cls, settings: Settings, setup: Payload, dialect: Dialect = RSOCKET_1_0) -> RSocketSession:
        """Return a client's session, which sends `setup` as soon as a link is up."""
        session = cls(settings, dialect, is_client=True)
        session._setup = setup
        return session

    @classmethod
    def server(cls, settings: Settings, dialect: Dialect = RSOCKET_1_0) -> RSocketSession:
        """Return a server's session, which waits for SETUP."""
        return cls(settings, dialect, is_client=False)

    @property
    def open_streams(self) -> int:
        """How many streams are open, of both sides."""
        return len(self._streams)

    # The link.

    def link_up(self, now: float) -> None:
        """A link is open; output made from now on belongs on it."""
        if self._is_client and self._state == NEW:
            self._state = OPENED
            frame = setup_frame(self._dialect, self._settings, self._setup)
            self._outbound.control(frame)
            self._keepalive.start(self._settings.keepalive_interval, self._settings.keepalive_lifetime, now, sends=True)
        elif self._state == NEW:
            self._timers.set(Timer.FIRST_FRAME, now + self._settings.first_frame_timeout)

    def link_down(self, now: float, error: Exception | None) -> None:
        """The link is gone; `error` says why unless it ended in order."""
        if self._state != CLOSED:
            if error is None and self._state == DRAINING and not self._streams:
                self._finish(None)
            else:
                self._finish(error if error is not None else LinkLost("the peer closed the connection"))

    def receive(self, data: bytes, now: float) -> None:
        """Take what the link brought. It may be cut anywhere."""
        if self._state == CLOSED:
            return
        self._keepalive.heard = now
        deframer = self._deframer
        deframer.feed(data)
        try:
            while deframer.next():
                self._receive_frame(now)
                if self._state == CLOSED:
                    return
        except SetupRejected as error:
            self._abort(error, error.code if isinstance(error.code, int) else Code.INVALID_SETUP)
        except (ProtocolError, LimitExceeded) as error:
            self._abort(error, Code.CONNECTION_ERROR)
        self._after()

    def next_timer(self) -> float | None:
        """Return when to call `handle_timer`, or None. It may be early, never late."""
        return self._timers.next()

    def handle_timer(self, now: float) -> None:
        """Do what is due by now."""
        for timer in self._timers.expired(now):
            if self._state == CLOSED:
                return
            if timer is Timer.KEEPALIVE:
                self._outbound.control(self._keepalive.due(now, 0))
            elif timer is Timer.SILENCE and self._keepalive.silent(now):
                error = KeepaliveTimeout(f"nothing was heard of the peer for {now - self._keepalive.heard:.1f} s")
                self._abort(error, Code.CONNECTION_ERROR)
            elif timer is Timer.REASSEMBLY:
                self._inbound.overdue(now)
            elif timer is Timer.FIRST_FRAME:
                limit = self._settings.first_frame_timeout
                self._abort(SetupRejected(f"no whole first frame came within {limit:g} s"), Code.INVALID_SETUP)
        self._after()

    def take_output(self) -> list[bytes]:
        """Return the bytes to write, in pieces fit for a socket, and forget them."""
        return self._outbound.outbox.take()

    def take_events(self) -> list[Event]:
        """Return what happened since the last call, in order, and forget it."""
        events = self._events
        if not events:
            return events
        taken = events[:]
        events.clear()
        return taken

    # Verbs.

    def open(self, kind: Kind, route: str, payload: Payload, credit: int = 0, *, done: bool = False) -> int:
        """Open a stream and return its id. See :meth:`penstock.session.Session.open`."""
        if self._state != OPENED:
            raise SessionClosed("the connection is not open for new streams")
        if credit < 1 and (kind == _STREAM or kind == Kind.CHANNEL):
            raise LocalError(f"{kind.name.lower()} needs a credit of at least 1, not {credit}")
        metadata = self._router.metadata(route, payload.metadata)
        if metadata is not payload.metadata:
            payload = Payload(payload.data, metadata)
        stream = self._streams.open_ours(kind)
        stream_id = stream.id
        stream.granted = 1 if kind == _CALL or kind == _UPLOAD else min(credit, MAX_REQUEST_N)
        flags = 0
        if kind == Kind.FIRE:
            self._streams.close(stream)
        elif done and stream.outbound == OPEN:
            flags = COMPLETE
            stream.end(Signal.COMPLETE, True)
        self._outbound.request(FRAME_TYPES[kind], stream_id, flags, 0 if kind <= Kind.FIRE else stream.granted, payload)
        return stream_id

    def send(self, stream_id: int, payload: Payload, done: bool = False) -> int:
        """Send an item, which may be the last, and return the credit that is left."""
        stream = self._sending(stream_id)
        if stream.credit == 0:
            raise CreditExceeded(f"stream {stream_id}: the peer has not asked for another item; wait for CreditGranted")
        stream.credit -= 1
        if stream.kind == _CALL:
            done = True
        self._outbound.item(stream_id, payload, done)
        if done:
            self._end(stream, Signal.COMPLETE)
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
            self._end(stream, Signal.COMPLETE)

    def fail(self, stream_id: int, error: Exception) -> None:
        """End the stream, both halves, with an error. See :meth:`penstock.session.Session.fail`."""
        stream = self._streams.get(stream_id)
        if stream is None:
            return
        if stream.outbound != OPEN and stream.ours:
            # RSocket 1.0, Request Stream: a requester whose half is over can only cancel.
            self.cancel(stream_id)
            return
        code, data = wire_of(error)
        self._outbound.error(stream_id, code, data)
        self._end(stream, Signal.FAIL)

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

    def cancel(self, stream_id: int) -> None:
        """Want no more items. A stream that is over is left alone."""
        stream = self._streams.get(stream_id)
        if stream is not None and stream.inbound == OPEN:
            self._outbound.cancel(stream_id)
            self._inbound.expect_late(stream)
            self._end(stream, Signal.CANCEL)

    def credit(self, stream_id: int) -> int:
        """Return how many items `send` may still take; 0 for a stream that is over."""
        stream = self._streams.get(stream_id)
        return stream.credit if stream is not None and stream.outbound == OPEN else 0

    def push(self, metadata: bytes) -> None:
        """Send metadata that belongs to the whole connection."""
        if self._state != OPENED:
            raise SessionClosed("the connection is closing")
        self._outbound.control(Frame(FrameType.METADATA_PUSH, 0, 0, 0, metadata))

    def close(self, now: float, error: Exception | None = None) -> None:
        """End the session: at once with `error`, else when the streams that are open have ended."""
        if self._state == CLOSED:
            return
        if error is not None:
            self._abort(error, Code.CONNECTION_ERROR)
            return
        # RSocket 1.0, Error Codes: CONNECTION_CLOSE lets streams end and new ones be refused. It is said
        # when they have ended, because many peers drop everything as soon as they read it.
        self._state = DRAINING
        self._inbound.draining = True
        self._after()

    # Frames.

    def _receive_frame(self, now: float) -> None:
        """Take the frame, or the run of frames, on which the deframer stands."""
        deframer = self._deframer
        codec = self._codec
        if self._state != NEW:
            buffer, start = deframer.buffer, deframer.start
            run = codec.scan_run(deframer, UNLIMITED)
            if run is not None:
                self._established = True
                self._inbound.run(codec.stream_id(buffer, start), run, now)
                return
        try:
            frame = codec.decode(deframer.buffer, deframer.start, deframer.end)
        except ProtocolError as error:
            if getattr(error, "ignorable", False) and self._state != NEW:
                self._inbound.stray(now)
                return
            if self._state == NEW:
                raise SetupRejected(f"the first frame is none: {error}", Code.INVALID_SETUP) from error
            raise
        if self._state == NEW:
            self._set_up(frame, now)
        elif frame.stream_id == 0:
            self._connection_frame(frame, now)
        else:
            self._established = True
            self._inbound.frame(frame, now)

    def _set_up(self, frame: Frame, now: float) -> None:
        """Begin the session that the first frame asks for."""
        if self._is_client:
            self._inbound.stray(now)
            return
        setup = check(frame, self._dialect)
        self._state = OPENED
        self._established = True
        self._timers.stop(Timer.FIRST_FRAME)
        self._deframer.max_frame_bytes = self._settings.max_frame_bytes
        self._keepalive.start(setup.keepalive_ms / 1000, setup.lifetime_ms / 1000, now, sends=False)
        metadata_mime = setup.metadata_mime.decode("ascii", "replace")
        data_mime = setup.data_mime.decode("ascii", "replace")
        self._router = Router(metadata_mime, self._settings.max_metadata_entries)
        self._inbound.router = self._router
        self._events.append(Established(Payload(setup.data, setup.metadata), metadata_mime, data_mime))

    def _connection_frame(self, frame: Frame, now: float) -> None:
        """Take a frame of stream 0."""
        if isinstance(frame, ErrorFrame):
            self._connection_error(frame, now)
            return
        if self._is_client and not self._established:
            self._established = True
            mimes = (self._settings.metadata_mime or COMPOSITE, self._settings.data_mime)
            self._events.append(Established(Payload(), *mimes))
        if isinstance(frame, KeepaliveFrame):
            if len(frame.data) > self._settings.max_keepalive_bytes:
                limit = self._settings.max_keepalive_bytes
                raise LimitExceeded(f"KEEPALIVE with {len(frame.data)} bytes exceeds max_keepalive_bytes ({limit})")
            answer = self._keepalive.answer(frame, 0, self._settings)
            if answer is not None:
                self._outbound.control(answer)
        elif frame.type == FrameType.METADATA_PUSH:
            self._events.append(MetadataPushed(0, frame.metadata or b""))
        else:
            # RSocket 1.0, Handling the Unexpected 9: a further SETUP, and all else that makes no sense here.
            self._inbound.stray(now)

    def _connection_error(self, frame: ErrorFrame, now: float) -> None:
        """Take an ERROR of stream 0."""
        text = f"{name_of(frame.code)}: {frame.data.decode('utf-8', 'replace')}"
        if frame.code in SETUP_CODES:
            # RSocket 1.0, Handling the Unexpected 9.7 and 9.8: they count for a client before it is established.
            if self._is_client and not self._established:
                self._finish(SetupRejected(f"the server refused the set-up: {text}", frame.code))
            else:
                self._inbound.stray(now)
        elif frame.code == Code.CONNECTION_CLOSE and self._streams:
            if self._state == OPENED:
                self._state = DRAINING
                self._events.append(Draining())
        else:
            self._finish(PeerClosed(f"the peer closed the connection: {text}", frame.code))

    # Ends.

    def _sending(self, stream_id: int) -> Stream:
        stream = self._streams.get(stream_id)
        if stream is None or stream.outbound != OPEN:
            raise StreamClosed(f"stream {stream_id}: our half is over")
        return stream

    def _end(self, stream: Stream, signal: Signal) -> None:
        if stream.end(signal, True):
            self._inbound.forget(stream)
            if self._state == DRAINING:
                self._after()

    def _after(self) -> None:
        """Do what any input, timer or verb may have made due."""
        if self._state == DRAINING and not self._streams:
            self._outbound.control(ErrorFrame(0, Code.CONNECTION_CLOSE, b"all streams are done"))
            self._finish(None)
        if len(self._inbound.reassembly):
            deadline = self._inbound.reassembly.deadline()
            if deadline is not None:
                self._timers.set(Timer.REASSEMBLY, deadline)

    def _abort(self, error: Exception, code: int) -> None:
        """Say to the peer why the session ends, as far as it may know, and end it."""
        known = isinstance(error, SessionError) and not isinstance(error, LocalError)
        text = str(error) if known else "this side ended the connection"
        self._outbound.control(ErrorFrame(0, code, text.encode()))
        self._finish(error)

    def _finish(self, error: Exception | None) -> None:
        """End the session for good; every stream fails first."""
        self._state = CLOSED
        self._timers.clear()
        self._keepalive.stop()
        reason = error if error is not None else SessionClosed("the connection was closed")
        for stream in self._streams.all():
            stream.inbound = stream.outbound = DONE
            self._inbound.forget(stream)
            self._events.append(Failed(stream.id, reason))
        self._inbound.reassembly.clear()
        self.link_wanted = False
        self._events.append(Closed(error))
