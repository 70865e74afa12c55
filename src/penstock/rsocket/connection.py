"""The life of a session: links that come and go, the set-up, the frames of stream 0, timers, and the end."""

from __future__ import annotations

from typing import Final

from ..core.credit import MAX_REQUEST_N
from ..core.halves import DONE
from ..core.replay import Replay
from ..core.streams import StreamTable
from ..core.timers import Timer, TimerTable
from ..errors import (
    FrameError,
    KeepaliveTimeout,
    LimitExceeded,
    LinkLost,
    LocalError,
    PeerClosed,
    ProtocolError,
    ResumeRejected,
    SessionClosed,
    SessionError,
    SetupRejected,
)
from ..events import Closed, Draining, Established, Event, Failed, MetadataPushed, Unlinked
from ..payload import Payload
from ..settings import Settings
from ..wire.codec import Codec
from ..wire.frames import ErrorFrame, Frame, FrameType, KeepaliveFrame, ResumeFrame, ResumeOkFrame
from ..wire.framing import Deframer
from .codes import SETUP_CODES, Code, name_of
from .dialect import Dialect
from .inbound import Inbound
from .keepalive import Keepalive
from .metadata import Router
from .mimes import COMPOSITE
from .outbound import Outbound
from .resume import SessionStore
from .setup import check, setup_frame

__all__ = ["CLOSED", "DRAINING", "NEW", "OPENED", "Connection"]

# The state of the session.
NEW: Final = 0
"""A server waits for SETUP; a client has had no link yet."""
OPENED: Final = 1
"""Streams flow. A client may send before the server has shown that it accepts (false start)."""
DRAINING: Final = 2
"""Open streams may end; there are no new ones of ours."""
CLOSED: Final = 3

# The state of its link.
DOWN: Final = 0
RESUMING: Final = 1
"""A client has sent RESUME, and waits to hear from where to go on."""
UP: Final = 2

_FIRST_COUNTED = int(FrameType.REQUEST_RESPONSE)
_LAST_COUNTED = int(FrameType.ERROR)


class Connection:
    """What both sides of a session have below its verbs.

    Args:
        settings: Limits and timeouts.
        dialect: The protocol version.
        is_client: Whether we opened the connection.
        token: By which the session can be resumed; None: it cannot.
        store: A server's resumable sessions.
        setup: What a client says at set-up.

    Attributes:
        link_wanted: Whether the session has use for a link.

    """

    def __init__(
        self,
        settings: Settings,
        dialect: Dialect,
        is_client: bool,
        token: bytes | None,
        store: SessionStore[Connection] | None,
        setup: Payload,
    ) -> None:
        self._settings = settings
        self._dialect = dialect
        self._is_client = is_client
        self._token = token
        self._store = store
        self._setup = setup
        self._codec: Codec = dialect.codec()
        self._events: list[Event] = []
        self._timers = TimerTable()
        self._state = NEW
        self._link = DOWN
        self._established = False
        self._streams = StreamTable(1 if is_client else 2)
        self._outbound = Outbound(self._codec, dialect.prefix_bytes, settings.fragment_bytes)
        self._inbound = Inbound(settings, self._streams, self._outbound, self._events)
        self._keepalive = Keepalive(self._timers)
        self._router = Router(settings.metadata_mime or COMPOSITE, settings.max_metadata_entries)
        self._inbound.router = self._router
        self._deframer = self._new_deframer(settings.max_frame_bytes if is_client else settings.max_setup_frame_bytes)
        # Positions: what we have received, and what of it we say is safe.
        self._received = 0
        self._reported = -1
        # The position, the stream and the request that the last checkpoint covers, until it is committed.
        self._promised: tuple[int, int, int] | None = None
        self.link_wanted = True
        if token is not None:
            self._outbound.replay = Replay(settings.resume_bytes, dialect.prefix_bytes)

    @property
    def open_streams(self) -> int:
        """How many streams are open, of both sides."""
        return len(self._streams)

    # The link.

    def link_up(self, now: float) -> None:
        """A link is open; output made from now on belongs on it."""
        if not self._is_client:
            self._link = UP
            self._timers.set(Timer.FIRST_FRAME, now + self._settings.first_frame_timeout)
        elif self._state == NEW:
            self._state = OPENED
            self._link = UP
            self._outbound.linked = True
            self._outbound.control(setup_frame(self._dialect, self._settings, self._setup, self._token))
            self._start_keepalive(now)
        elif self._token is not None and self._state != CLOSED:
            # RSocket 1.0, Resuming Operation: the client sends RESUME, and then nothing until it is answered.
            self._link = RESUMING
            replay = self._outbound.replay
            major, minor = self._dialect.version
            frame = ResumeFrame(self._token, self._received, 0 if replay is None else replay.first, major, minor)
            self._outbound.outbox.write(self._codec.frame(frame))
            self._start_keepalive(now)
            self._timers.stop(Timer.KEEPALIVE)

    def link_down(self, now: float, error: Exception | None) -> None:
        """The link is gone; `error` says why unless it ended in order."""
        if self._state == CLOSED:
            return
        lost = error if error is not None else LinkLost("the peer closed the connection")
        if self._token is None or self._state == NEW:
            in_order = error is None and self._state == DRAINING and not self._streams
            self._finish(None if in_order else lost)
            return
        self._suspend()
        if Timer.EXPIRY not in self._timers:
            self._timers.set(Timer.EXPIRY, now + self._settings.resume_timeout)

    def receive(self, data: bytes, now: float) -> None:
        """Take what the link brought. It may be cut anywhere."""
        if self._state == CLOSED:
            return
        self._keepalive.heard = now
        self._deframer.feed(data)
        try:
            while self._deframer.next():
                self._receive_frame(now)
                if self._state == CLOSED:
                    return
        except SetupRejected as error:
            self._abort(error, error.code if isinstance(error.code, int) else Code.INVALID_SETUP)
        except (ProtocolError, LimitExceeded, ResumeRejected) as error:
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
                self._outbound.control(self._keepalive.due(now, self._position()))
            elif timer is Timer.SILENCE and self._keepalive.silent(now):
                self._silent(now)
            elif timer is Timer.REASSEMBLY:
                self._inbound.overdue(now)
            elif timer is Timer.FIRST_FRAME:
                limit = self._settings.first_frame_timeout
                self._abort(SetupRejected(f"no whole first frame came within {limit:g} s"), Code.INVALID_SETUP)
            elif timer is Timer.EXPIRY:
                limit = self._settings.resume_timeout
                self._finish(LinkLost(f"the session was without a connection for {limit:g} s"))
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

    def resume(self, frame: ResumeFrame, now: float) -> None:
        """Go on over a new link, as a client asks; a server's session is told so instead of `link_up`.

        Raises:
            ResumeRejected: One of the sides no longer has what the other lacks. Nothing has changed.

        """
        replay = self._outbound.replay
        if replay is None or self._state == CLOSED:
            raise ResumeRejected("the session cannot be resumed")
        # RSocket 1.0, Resuming Operation: both sides must still have what the other has not received.
        if frame.first_available_client_position > self._received:
            raise ResumeRejected("the client no longer holds what this server has not received")
        again = self._kept(frame.last_received_server_position)
        self._suspend()
        self._outbound.outbox.write(self._codec.frame(ResumeOkFrame(self._received)))
        self._resumed(frame.last_received_server_position, again, now)

    # Frames.

    def _receive_frame(self, now: float) -> None:
        """Take the frame, or the run of frames, on which the deframer stands."""
        deframer = self._deframer
        codec = self._codec
        buffer = deframer.buffer
        start = deframer.start
        if self._link == UP and self._state != NEW:
            run = codec.scan_run(deframer, MAX_REQUEST_N)
            if run is not None:
                self._established = True
                self._received += deframer.end - start - self._dialect.prefix_bytes * (len(run) - 1)
                self._inbound.run(codec.stream_id(buffer, start), run, now)
                return
        try:
            frame = codec.decode(buffer, start, deframer.end)
        except FrameError as error:
            if self._state == NEW:
                raise SetupRejected(f"the first frame is none: {error}", Code.INVALID_SETUP) from error
            if not error.ignorable:
                raise
            self._inbound.stray(now)
            return
        if self._state == NEW:
            self._set_up(frame, now)
        elif self._link == RESUMING:
            self._resume_answered(frame, now)
        elif frame.stream_id == 0:
            self._connection_frame(frame, now)
        else:
            self._established = True
            if _FIRST_COUNTED <= frame.type <= _LAST_COUNTED:
                self._received += deframer.end - start
            self._inbound.frame(frame, now)

    def _set_up(self, frame: Frame, now: float) -> None:
        """Begin the session that the first frame asks for."""
        setup = check(frame, self._dialect, resumable=self._store is not None)
        if setup.token is not None and self._store is not None:
            if not self._store.add(setup.token, self):
                raise SetupRejected("the token is in use, or there are too many sessions", Code.REJECTED_SETUP)
            self._token = setup.token
            self._outbound.replay = Replay(self._settings.resume_bytes, self._dialect.prefix_bytes)
        self._state = OPENED
        self._established = True
        self._outbound.linked = True
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
        if not self._established:
            self._established = True
            mimes = (self._settings.metadata_mime or COMPOSITE, self._settings.data_mime)
            self._events.append(Established(Payload(), *mimes))
        if isinstance(frame, KeepaliveFrame):
            self._keepalive_received(frame)
        elif frame.type == FrameType.METADATA_PUSH:
            self._events.append(MetadataPushed(0, frame.metadata or b""))
        else:
            # RSocket 1.0, Handling the Unexpected 9: a further SETUP, and all else that makes no sense here.
            self._inbound.stray(now)

    def _keepalive_received(self, frame: KeepaliveFrame) -> None:
        limit = self._settings.max_keepalive_bytes
        if len(frame.data) > limit:
            raise LimitExceeded(f"KEEPALIVE with {len(frame.data)} bytes exceeds max_keepalive_bytes ({limit})")
        replay = self._outbound.replay
        if replay is not None:
            if frame.position > replay.end:
                raise ProtocolError(f"KEEPALIVE confirms position {frame.position}; only {replay.end} were sent")
            replay.trim(frame.position)
        answer = self._keepalive.answer(frame, self._position())
        if answer is not None:
            self._outbound.control(answer)

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

    # Resuming.

    def _position(self) -> int:
        """Return the position to report: 0 where the session cannot be resumed."""
        if self._token is None:
            return 0
        return self._received if self._reported < 0 else self._reported

    def _suspend(self) -> None:
        """Go on without a link: what is sent now waits in the replay."""
        self._link = DOWN
        self._keepalive.stop()
        self._outbound.linked = False
        self._outbound.outbox.clear()
        self._deframer = self._new_deframer(self._settings.max_frame_bytes)

    def _resume_answered(self, frame: Frame, now: float) -> None:
        """Take the server's answer to RESUME."""
        if isinstance(frame, ResumeOkFrame):
            position = frame.last_received_client_position
            self._resumed(position, self._kept(position), now)
        elif isinstance(frame, ErrorFrame) and frame.stream_id == 0:
            text = f"{name_of(frame.code)}: {frame.data.decode('utf-8', 'replace')}"
            self._finish(ResumeRejected(f"the server did not resume the session: {text}", frame.code))
        else:
            self._inbound.stray(now)

    def _kept(self, position: int) -> list[bytes]:
        """Return what the peer has not received yet. Raises ResumeRejected where it is not kept."""
        replay = self._outbound.replay
        try:
            return [] if replay is None else replay.since(position)
        except ValueError as error:
            raise ResumeRejected(f"what the peer lacks is gone: {error}") from error

    def _resumed(self, position: int, again: list[bytes], now: float) -> None:
        """Send what the peer lacks, and go on."""
        outbound = self._outbound
        if outbound.replay is not None:
            outbound.replay.trim(position)
        for piece in again:
            outbound.outbox.write(piece)
        outbound.linked = True
        self._link = UP
        self._established = True
        self._timers.stop(Timer.EXPIRY)
        self._start_keepalive(now)

    def _start_keepalive(self, now: float) -> None:
        settings = self._settings
        self._keepalive.start(settings.keepalive_interval, settings.keepalive_lifetime, now, sends=self._is_client)

    def _new_deframer(self, limit: int) -> Deframer:
        return Deframer(self._dialect.prefix_bytes, limit, self._dialect.min_frame_bytes)

    # Ends.

    def _silent(self, now: float) -> None:
        """The peer is taken for dead: its link is, and the session as well unless it can be resumed."""
        error = KeepaliveTimeout(f"nothing was heard of the peer for {now - self._keepalive.heard:.1f} s")
        if self._token is None or self._state == NEW:
            self._abort(error, Code.CONNECTION_ERROR)
        else:
            self.link_down(now, error)
            self._events.append(Unlinked(error))

    def _after(self) -> None:
        """Do what any input, timer or verb may have made due."""
        if self._state == DRAINING and not self._streams:
            self._outbound.control(ErrorFrame(0, Code.CONNECTION_CLOSE, b"all streams are done"))
            self._finish(None)
        if self._inbound.partials:
            deadline = self._inbound.reassembly.deadline()
            if deadline is not None:
                self._timers.set(Timer.REASSEMBLY, deadline)

    def _abort(self, error: Exception, code: int) -> None:
        """Say to the peer why the session ends, as far as it may know, and end it."""
        known = isinstance(error, SessionError) and not isinstance(error, LocalError)
        text = str(error) if known else "this side ended the connection"
        self._outbound.outbox.write(self._codec.frame(ErrorFrame(0, code, text.encode())))
        self._finish(error)

    def _finish(self, error: Exception | None) -> None:
        """End the session for good; every stream fails first."""
        self._state = CLOSED
        self._timers.clear()
        if self._store is not None and self._token is not None:
            self._store.forget(self._token)
        reason = error if error is not None else SessionClosed("the connection was closed")
        for stream in self._streams.all():
            stream.inbound = stream.outbound = DONE
            self._inbound.forget(stream)
            self._events.append(Failed(stream.id, reason))
        self._inbound.reassembly.clear()
        self.link_wanted = False
        self._events.append(Closed(error))
