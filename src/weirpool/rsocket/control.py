"""Handles the frames of stream 0: SETUP, KEEPALIVE, LEASE, METADATA_PUSH, ERROR."""

from __future__ import annotations

from typing import Any

from ..core.replay import Replay
from ..core.timers import Timer
from ..errors import LimitExceeded, LocalError, PeerClosed, ProtocolError, SessionError, SetupRejected, UnsupportedKind
from ..events import Draining, Established, LeaseGranted
from ..payload import Payload
from ..texts import cut
from ..wire.rsocket.frames import LEASE, RESPOND, ErrorFrame, Frame, FrameType, KeepaliveFrame, LeaseFrame, SetupFrame
from .codes import SETUP_CODES, Code, name_of, text_of
from .extensions.metadata import Router
from .handshake import Handshake, check, established, setup_frame
from .inbound import Inbound
from .keepalive import Keepalive
from .lifecycle import DRAINING, OPENED, Lifecycle
from .resume import SessionStore

__all__ = ["Control"]


class Control:
    """Sends and receives the frames that concern the connection as a whole.

    Args:
        life: What the parts of the session share.
        inbound: Receives the router for the set-up's metadata type.
        setup: The payload of a client's set-up.
        sessions: A server's resumable sessions.
        session: The session to add to them.

    Attributes:
        keepalive: Monitors the link.
        handshake: The unanswered set-up of a client that can resume; else None.
        greeting: The set-up that a server received; None before, and on a client.

    """

    def __init__(
        self, life: Lifecycle, inbound: Inbound, setup: Payload, sessions: SessionStore[Any] | None, session: Any
    ) -> None:
        self._life = life
        self._settings = life.settings
        self._dialect = life.dialect
        self._events = life.events
        self._timers = life.timers
        self._streams = life.streams
        self._outbound = life.outbound
        self._leases = life.leases
        self._inbound = inbound
        self._strays = inbound.strays
        self._setup = setup
        self._sessions = sessions
        self._session = session
        self.keepalive = Keepalive(life.timers)
        self.handshake = Handshake() if life.is_client and life.token is not None else None
        self.greeting: Established | None = None
        if life.is_client and life.settings.lease:
            life.leases.use(life.settings.lease, request=True, respond=life.dialect.server_needs_leases)

    # The set-up.

    def begin(self, now: float, resend: list[bytes]) -> None:
        """Send SETUP, then `resend`: the frames that were sent after an unanswered SETUP on an earlier link."""
        settings = self._settings
        self._life.move("SETUP")
        self._outbound.linked = True
        self._outbound.control(setup_frame(self._dialect, settings, self._setup, self._life.token))
        self.watch(now)
        for piece in resend:
            self._outbound.outbox.write(piece)
        if self.handshake is not None:
            self.handshake.restart = False
            # Request an answer at once, because only an answer shows that the server has received the set-up.
            self._outbound.control(KeepaliveFrame(RESPOND, self._life.position()))
        self.grant(now)

    def set_up(self, frame: Frame, now: float) -> None:
        """Start the session that the first frame requests, and store it if it is resumable. May raise SetupRejected."""
        sessions = self._sessions
        settings = self._settings
        life = self._life
        setup = check(frame, self._dialect, resumable=sessions is not None, leases=bool(settings.lease))
        if setup.token is not None and sessions is not None:
            if not sessions.add(setup.token, self._session, self._session.identity):
                raise SetupRejected("the resume token is in use, or there are too many sessions", Code.REJECTED_SETUP)
            life.token = setup.token
            self._outbound.replay = Replay(settings.resume_bytes, self._outbound.prefix_bytes, account=life.account)
        life.move("SETUP")
        life.established = True
        self._outbound.linked = True
        self._timers.stop(Timer.FIRST_FRAME)
        self.watch(now, setup)
        self.greeting = greeting = established(setup, settings, self._dialect)
        self._inbound.router = Router(greeting.metadata_mime, settings.max_metadata_entries)
        self._events.append(greeting)
        if setup.flags & LEASE:
            self._leases.use(settings.lease, request=self._dialect.server_needs_leases, respond=True)
            self.grant(now)

    def establish(self) -> None:
        """Report that the server has accepted the set-up, which any frame from it implies."""
        self._life.established = True
        self.handshake = None
        self._timers.stop(Timer.EXPIRY)
        settings = self._settings
        metadata_mime = settings.metadata_mime or self._dialect.metadata_mime
        self._events.append(Established(Payload(), metadata_mime, settings.data_mime))

    def confirm(self) -> None:
        """Request a confirmation that the server has accepted the set-up; `Established` or `Closed` follows."""
        if self._life.established:
            # The answer may have been read before anybody asked. No other frame would report it again.
            self.establish()
        if self._dialect.keepalive:
            self._outbound.control(KeepaliveFrame(RESPOND, self._life.position()))
        elif self._leases.requester is None:
            # ReactiveSocket 0.0, Connection Establishment: a client that requests leases receives one as confirmation.
            raise UnsupportedKind(f"{self._dialect.name} cannot confirm a set-up without leases; set Settings.lease")

    def watch(self, now: float, setup: SetupFrame | None = None) -> None:
        """Start to monitor a new link, with the intervals of `setup` if given, else of the settings."""
        settings = self._settings
        interval, lifetime = settings.keepalive_interval, settings.keepalive_lifetime
        if setup is not None:
            interval, lifetime = setup.keepalive_ms / 1000, setup.lifetime_ms / 1000
        if self._dialect.keepalive:
            self.keepalive.start(interval, lifetime, now, sends=self._life.is_client)
        elif settings.idle_timeout:
            self.keepalive.start(interval, settings.idle_timeout, now, sends=False)

    def grant(self, now: float) -> None:
        """Send a lease if the policy grants one now."""
        responder = self._leases.responder
        frame = None if responder is None else responder.due(now, self._streams.remote)
        if frame is not None:
            self._outbound.control(frame)

    # Frames.

    def frame(self, frame: Frame, now: float) -> SetupRejected | None:
        """Handle a frame of stream 0; return the error if the server rejects the set-up with it.

        Raises LimitExceeded if a frame is too long, and ProtocolError for an invalid position or RESUME.
        """
        if isinstance(frame, ErrorFrame):
            return self._error(frame)
        if not self._life.established:
            self.establish()
        if isinstance(frame, KeepaliveFrame):
            self._keepalive(frame)
        elif isinstance(frame, LeaseFrame) and self._leases.requester is not None:
            # THREATS 32: the last lease is valid.
            lease = self._leases.requester.received(frame, now)
            self._events.append(LeaseGranted(lease.requests, lease.ttl, frame.metadata))
        elif frame.type == FrameType.METADATA_PUSH and frame.metadata is not None:
            self._inbound.pushed(0, frame.metadata)
        elif frame.type == FrameType.RESUME and not self._life.is_client:
            # RSocket 1.0 and ReactiveSocket 0.2, Resume Operation: it SHOULD be answered with ERROR[CONNECTION_ERROR].
            # A client that waits for RESUME_OK would wait forever.
            raise ProtocolError("RESUME came on a connection that is already established")
        else:
            # RSocket 1.0, Handling the Unexpected 9: another SETUP, and all other frames that are invalid here.
            self._strays.ignore(frame)
        return None

    def _keepalive(self, frame: KeepaliveFrame) -> None:
        limit = self._settings.max_keepalive_bytes
        if len(frame.data) > limit:
            raise LimitExceeded(f"a KEEPALIVE with {len(frame.data)} bytes exceeds max_keepalive_bytes ({limit})")
        replay = self._outbound.replay
        if replay is not None:
            if not 0 <= frame.position <= replay.end:
                raise ProtocolError(f"KEEPALIVE confirms position {frame.position}; the last one is {replay.end}")
            replay.trim(frame.position)
        answer = self.keepalive.answer(frame, self._life.position())
        if answer is not None:
            self._outbound.control(answer)

    def _error(self, frame: ErrorFrame) -> SetupRejected | None:
        """Handle an error that concerns the connection."""
        code = self._dialect.code_of(frame)
        if code is None:
            # ReactiveSocket 0.0, Error Frame: it concerns a stream.
            self._strays.stray()
            return None
        text = f"{name_of(code)}: {text_of(frame.data)}"
        if code in SETUP_CODES:
            # RSocket 1.0, Handling the Unexpected 9.7 and 9.8: only valid for a client that is not yet established.
            if self._life.is_client and not self._life.established:
                return SetupRejected(f"the server rejected the set-up: {text}", code)
            self._strays.stray()
        elif code == Code.CONNECTION_CLOSE and self._streams:
            if self._life.state == OPENED:
                self._life.move("CONNECTION_CLOSE")
                self._events.append(Draining())
        else:
            self._life.finish(PeerClosed(f"the peer closed the connection: {text}", code))
        return None

    # Ends.

    def abort(self, error: Exception, code: int) -> None:
        """End the session, and send the reason to the peer unless it is an internal error."""
        public = isinstance(error, SessionError) and not isinstance(error, LocalError)
        text = str(error) if public else "this side ended the connection"
        frame = self._dialect.close_error(code, cut(text.encode(errors="replace"), self._settings.fragment_bytes))
        if frame is not None:
            self._outbound.outbox.write(self._outbound.codec.frame(frame))
        self._life.finish(error)

    @property
    def done(self) -> bool:
        """Whether the session is draining and all streams have ended."""
        return self._life.state == DRAINING and not self._streams

    def close_if_done(self) -> None:
        """Announce the end of a draining session when all streams have ended. A client's session ends with that."""
        if self.done:
            frame = None
            # ReactiveSocket 0.0, Setup Error Frame: only servers send it.
            if self._dialect.keepalive or not self._life.is_client:
                frame = self._dialect.close_error(Code.CONNECTION_CLOSE, b"all streams are done")
            if frame is not None:
                self._outbound.control(frame)
            if frame is None or self._life.is_client or not self._outbound.linked:
                self._life.finish(None)
            else:
                # Requests that the client sent before it reads CONNECTION_CLOSE would be lost with the link.
                self._life.move("streams ended")
