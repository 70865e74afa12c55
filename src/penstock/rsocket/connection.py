"""What a session of the family is made of, the frames of stream 0, and how it ends."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Final

from ..core.halves import DONE
from ..core.replay import Replay
from ..core.streams import StreamTable
from ..core.timers import Timer, TimerTable
from ..errors import (
    KeepaliveTimeout,
    LimitExceeded,
    LocalError,
    PeerClosed,
    ProtocolError,
    SessionClosed,
    SessionError,
    SetupRejected,
)
from ..events import Closed, Draining, Established, Event, Failed, LeaseGranted, MetadataPushed
from ..kinds import Kind
from ..leases import LONGEST, FixedLease, LeasePolicy
from ..payload import Payload
from ..session import Durable
from ..settings import Settings
from ..wire.codec import Codec
from ..wire.framing import Deframer
from ..wire.rsocket.frames import LEASE, STRICT, ErrorFrame, Frame, FrameType, KeepaliveFrame, LeaseFrame
from .codes import SETUP_CODES, Code, name_of, text_of
from .dialect import Dialect
from .extensions.metadata import Router
from .extensions.mimes import is_known
from .handshake import check
from .inbound import Inbound
from .keepalive import Keepalive
from .lease import Granting, Honoring
from .outbound import Outbound
from .resume import SessionStore

__all__ = ["CLOSED", "DRAINING", "NEW", "OPENED", "Connection"]

# The state of the session.
NEW: Final = 0
"""A server waits for SETUP; a client has had no link yet."""
OPENED: Final = 1
"""Streams flow. A client may send before the server has shown that it accepts (false start)."""
DRAINING: Final = 2
"""Open streams may end; there are no new ones of ours."""
CLOSED: Final = 3

ALL: Final = FixedLease(0x7FFFFFFF, LONGEST)
"""Leave for everything, where leases are wanted and nobody has a policy."""


class Connection:
    """What both sides of a session have below its links and verbs.

    Args:
        settings: Limits and timeouts.
        dialect: The protocol version.
        is_client: Whether we opened the connection.
        token: By which the session can be resumed; None: it cannot.
        store: A server's resumable sessions.
        setup: What a client says at set-up.

    Attributes:
        link_wanted: Whether the session has use for a link.
        identity: Who the client is, as far as its link proves it.

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
        self._own_ids = dialect.own_ids
        self._events: list[Event] = []
        self._timers = TimerTable()
        self._state = NEW
        self._link = 0
        self._established = False
        first_id = 1 if is_client == (settings.client_ids == "odd") else 2
        self._streams = StreamTable(first_id, dialect.own_ids, dialect.half_close)
        self._outbound = Outbound(self._codec, settings.fragment_bytes, dialect.cuts_requests)
        self._inbound = Inbound(settings, self._streams, self._outbound, self._events)
        self._inbound.drafts = not dialect.half_close
        self._inbound.first_draft = dialect.own_ids
        self._keepalive = Keepalive(self._timers)
        # Leave for requests of ours, and for the peer's, where leases are used.
        self._honoring: Honoring | None = None
        self._granting: Granting | None = None
        self._router = self._new_router(settings.metadata_mime or dialect.metadata_mime)
        self._deframer = self._new_deframer(settings.max_frame_bytes if is_client else settings.max_setup_frame_bytes)
        # Positions: what we have received, and what of it we say is safe.
        self._received = 0
        self._reported = -1
        # Bytes that have come before, and come again over this link.
        self._repeated = 0
        # A client's set-up can be said again: nobody has answered it. The next link begins with it; and why a server
        # has refused it, maybe because it had read the one before.
        self._unheard = is_client and token is not None
        self._begins_again = False
        self._refusal: SetupRejected | None = None
        # The position, the stream and the request that the last checkpoint covers, until it is committed.
        self._promised: tuple[int, int, int] | None = None
        # When the link came up, and when much output left it last; what the peer had received when it came up, and what
        # links have been lost since it has more.
        self._linked_at = 0.0
        self._moved_at = -inf
        self._worn_at = -1
        self._wear = 0
        self.link_wanted = True
        self.identity = b""
        if token is not None:
            self._outbound.replay = Replay(settings.resume_bytes, self._codec.prefix_bytes)
        if is_client and settings.lease:
            self._use_leases(honor=True, grant=dialect.server_waits)

    @property
    def linked_at(self) -> float | None:
        """None: new sessions are begun by other rules than links."""
        return None

    @property
    def excused(self) -> bool:
        """No: nothing that ends a link is known not to come again."""
        return False

    @property
    def durable(self) -> Durable | None:
        """None: this session ends with its process."""
        return None

    @property
    def full(self) -> bool:
        """Whether nothing more should be read: never, because credit bounds what comes."""
        return False

    def ask_kinds(self, kind_of: Callable[[str], Kind | None]) -> None:
        """Nothing: a request says what it is."""

    @property
    def secret(self) -> bytes:
        """The session's token; empty where it has none."""
        return self._token or b""

    @property
    def open_streams(self) -> int:
        """How many streams are open, of both sides."""
        return len(self._streams)

    @property
    def calls_by_streams(self) -> bool:
        """No: the family has a frame of its own for calls."""
        return False

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

    # The set-up.

    def _set_up(self, frame: Frame, now: float) -> None:
        """Begin the session that the first frame asks for."""
        settings = self._settings
        setup = check(frame, self._dialect, resumable=self._store is not None, leases=bool(settings.lease))
        if setup.token is not None and self._store is not None:
            if not self._store.add(setup.token, self, self.identity):
                raise SetupRejected("the token is in use, or there are too many sessions", Code.REJECTED_SETUP)
            self._token = setup.token
            self._outbound.replay = Replay(settings.resume_bytes, self._codec.prefix_bytes)
        self._state = OPENED
        self._established = True
        self._outbound.linked = True
        self._timers.stop(Timer.FIRST_FRAME)
        self._deframer.max_frame_bytes = settings.max_frame_bytes
        self._start_keepalive(setup.keepalive_ms / 1000, setup.lifetime_ms / 1000, now)
        metadata_mime = setup.metadata_mime.decode("ascii", "replace")
        data_mime = setup.data_mime.decode("ascii", "replace")
        self._router = self._new_router(metadata_mime)
        # ReactiveSocket 0.2, SETUP Frame: S. It means nothing in RSocket 1.0.
        strict = not self._dialect.half_close and bool(setup.flags & STRICT)
        understood = all(is_known(mime) or mime == settings.data_mime for mime in (metadata_mime, data_mime))
        payload = Payload(setup.data, setup.metadata)
        self._events.append(Established(payload, metadata_mime, data_mime, strict, understood))
        if setup.flags & LEASE:
            self._use_leases(honor=self._dialect.server_waits, grant=True)
            self._grant(now)

    def _establish(self) -> None:
        """Note that the server has accepted the set-up: it has said something."""
        self._established = True
        self._unheard = False
        self._timers.stop(Timer.EXPIRY)
        settings = self._settings
        metadata_mime = settings.metadata_mime or self._dialect.metadata_mime
        self._events.append(Established(Payload(), metadata_mime, settings.data_mime))

    def _start_keepalive(self, interval: float, lifetime: float, now: float) -> None:
        """Watch over a new link. Times are in seconds."""
        if self._dialect.keepalive:
            self._keepalive.start(interval, lifetime, now, sends=self._is_client)
        elif self._settings.idle_timeout:
            self._keepalive.start(interval, self._settings.idle_timeout, now, sends=False)

    def _new_router(self, mime: str) -> Router:
        router = Router(mime, self._settings.max_metadata_entries)
        self._inbound.router = router
        return router

    def _new_deframer(self, limit: int) -> Deframer:
        codec = self._codec
        return Deframer(codec.prefix_bytes, limit, codec.header_bytes, codec.counts_itself or None)

    # Leases.

    def _use_leases(self, *, honor: bool, grant: bool) -> None:
        """Let requests of ours, of the peer's, or of both need leases from now on."""
        if honor:
            self._honoring = Honoring(self._timers)
        if grant:
            wanted = self._settings.lease
            policy: LeasePolicy = ALL if isinstance(wanted, bool) else wanted
            self._granting = self._inbound.granting = Granting(policy, self._timers)

    def _grant(self, now: float) -> None:
        """Give the peer a lease, if it is to have one now."""
        if self._granting is not None:
            frame = self._granting.due(now, self._streams.remote)
            if frame is not None:
                self._outbound.control(frame)

    # Frames.

    def _connection_frame(self, frame: Frame, now: float) -> None:
        """Take a frame of stream 0."""
        if isinstance(frame, ErrorFrame):
            self._connection_error(frame, now)
            return
        if not self._established:
            self._establish()
        if isinstance(frame, KeepaliveFrame):
            self._keepalive_received(frame)
        elif isinstance(frame, LeaseFrame) and self._honoring is not None:
            # THREATS 32: the last lease wins, and too many of them are an attack like any other.
            self._inbound.stray(now)
            lease = self._honoring.received(frame, now)
            self._events.append(LeaseGranted(lease.requests, lease.ttl, frame.metadata))
        elif frame.type == FrameType.METADATA_PUSH:
            self._events.append(MetadataPushed(0, frame.metadata or b""))
        else:
            # RSocket 1.0, Handling the Unexpected 9: a further SETUP, and all else that makes no sense here.
            self._inbound.ignored(frame, now)

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
        """Take an error that concerns the connection."""
        code = self._dialect.code_of(frame)
        if code is None:
            # ReactiveSocket 0.0, Error Frame: it belongs to a stream.
            self._inbound.stray(now)
            return
        text = f"{name_of(code)}: {text_of(frame.data)}"
        if code in SETUP_CODES:
            # RSocket 1.0, Handling the Unexpected 9.7 and 9.8: they count for a client before it is established.
            if self._is_client and not self._established:
                self._set_up_refused(SetupRejected(f"the server refused the set-up: {text}", code), now)
            else:
                self._inbound.stray(now)
        elif code == Code.CONNECTION_CLOSE and self._streams:
            if self._state == OPENED:
                self._state = DRAINING
                self._events.append(Draining())
        else:
            self._finish(PeerClosed(f"the peer closed the connection: {text}", code))

    def _position(self) -> int:
        """Return the position to report: 0 where the session cannot be resumed."""
        if self._token is None:
            return 0
        return self._received if self._reported < 0 else self._reported

    def _set_up_refused(self, error: SetupRejected, now: float) -> None:
        """End the session that a server refuses."""
        self._finish(error)

    # Ends.

    def link_down(self, now: float, error: Exception | None) -> None:
        """The link is gone; `error` says why unless it ended in order."""
        raise NotImplementedError

    def _dead(self, now: float) -> KeepaliveTimeout:
        """Return what it means that the peer fell silent."""
        return KeepaliveTimeout(f"nothing was heard of the peer for {now - self._keepalive.heard:.1f} s")

    def _after(self) -> None:
        """Do what any input, timer or verb may have made due."""
        if self._state == DRAINING and not self._streams:
            frame = self._dialect.farewell(Code.CONNECTION_CLOSE, "all streams are done")
            if frame is not None:
                self._outbound.control(frame)
            self._finish(None)
        if self._inbound.partials and self._outbound.linked:
            deadline = self._inbound.reassembly.deadline()
            if deadline is not None:
                self._timers.set(Timer.REASSEMBLY, deadline)

    def _abort(self, error: Exception, code: int) -> None:
        """Say to the peer why the session ends, as far as it may know, and end it."""
        known = isinstance(error, SessionError) and not isinstance(error, LocalError)
        frame = self._dialect.farewell(code, str(error) if known else "this side ended the connection")
        if frame is not None:
            self._outbound.outbox.write(self._codec.frame(frame))
        self._finish(error)

    def _finish(self, error: Exception | None) -> None:
        """End the session for good; every stream fails first."""
        self._state = CLOSED
        if self._store is not None and self._token is not None:
            self._store.forget(self._token, error)
        reason = error if error is not None else SessionClosed("the connection was closed")
        for stream in self._streams.all():
            stream.inbound = stream.outbound = DONE
            self._inbound.forget(stream)
            self._events.append(Failed(stream.id, reason))
        self._inbound.reassembly.clear()
        self.link_wanted = False
        self._events.append(Closed(error))
        self._timers.clear()
