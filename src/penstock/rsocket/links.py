"""The links of a session, which come and go: what they bring, timers, and going on over another one."""

from __future__ import annotations

from typing import Final

from ..core.credit import MAX_REQUEST_N
from ..core.timers import Timer
from ..errors import (
    FrameError,
    LimitExceeded,
    LinkLost,
    ProtocolError,
    ResumeRejected,
    SetupRejected,
    UnsupportedKind,
)
from ..events import Unlinked
from ..wire.frames import RESPOND, ErrorFrame, Frame, FrameType, KeepaliveFrame, ResumeFrame, ResumeOkFrame
from .codes import Code, name_of, text_of
from .connection import CLOSED, DRAINING, NEW, OPENED, Connection
from .setup import setup_frame

__all__ = ["Links"]

WORN_OUT: Final = 128
"""Links in a row, each lost within `BRIEF` seconds, after which a session ends if the peer has received no more. Those
that lived longer do not count: a collector that waits for its readers confirms nothing for a long time."""
WEIGHT: Final = 16
"""For how many of them one counts that was lost while a large frame moved: eight such links are enough."""
LARGE: Final = 4_096
"""Bytes from which a frame is large. Smaller ones arrive over any link that moves: what is missing then is somebody who
lives long enough to confirm them, such as a collector that is killed eight times in a row."""
BRIEF: Final = 1.0

# The state of the link.
DOWN: Final = 0
RESUMING: Final = 1
"""A client has sent RESUME, and waits to hear from where to go on."""
UP: Final = 2

_FIRST_COUNTED = int(FrameType.REQUEST_RESPONSE)
_LAST_COUNTED = int(FrameType.ERROR)
_REQUEST_RESPONSE = int(FrameType.REQUEST_RESPONSE)
_CANCEL = int(FrameType.CANCEL)
_REQUEST_SUB = int(FrameType.REQUEST_SUB)


class Links(Connection):
    """A connection with its links, but without verbs."""

    def link_up(self, now: float) -> None:
        """A link is open; output made from now on belongs on it."""
        settings = self._settings
        if not self._is_client:
            self._link = UP
            self._timers.set(Timer.FIRST_FRAME, now + settings.first_frame_timeout)
        elif self._state == NEW or (self._begins_again and self._state != CLOSED):
            self._begin(now)
        elif self._token is not None and self._state != CLOSED:
            # RSocket 1.0, Resuming Operation: the client sends RESUME, and then nothing until it is answered.
            self._link = RESUMING
            replay = self._outbound.replay
            major, minor = self._dialect.version
            # The server forgets what lies before the position that it is told. So it is the one that is safe, and what
            # has come behind it comes again.
            position = self._position()
            self._repeated = self._received - position
            frame = ResumeFrame(self._token, position, 0 if replay is None else replay.first, major, minor)
            self._outbound.outbox.write(self._codec.frame(frame))
            self._start_keepalive(settings.keepalive_interval, settings.keepalive_lifetime, now)
            self._timers.stop(Timer.KEEPALIVE)

    def _begin(self, now: float) -> None:
        """Send SETUP, and after it all that was sent before anybody had answered the first one."""
        settings = self._settings
        self._state = max(self._state, OPENED)
        self._begins_again = False
        self._link = UP
        self._outbound.linked = True
        self._outbound.control(setup_frame(self._dialect, settings, self._setup, self._token))
        self._start_keepalive(settings.keepalive_interval, settings.keepalive_lifetime, now)
        if self._token is not None:
            for piece in self._kept(0):
                self._outbound.outbox.write(piece)
            # Until the server is heard, nobody can tell whether it has read the set-up: so it is asked at once.
            self._outbound.control(KeepaliveFrame(RESPOND, self._position()))
        self._grant(now)

    def link_down(self, now: float, error: Exception | None) -> None:
        """The link is gone; `error` says why unless it ended in order."""
        if self._state == CLOSED:
            return
        lost = error if error is not None else LinkLost("the peer closed the connection")
        if self._token is None or self._state == NEW:
            in_order = error is None and self._state == DRAINING and not self._streams
            self._finish(None if in_order else lost)
            return
        self._count_cut(now)
        self._suspend()
        if self._wear >= WORN_OUT and self._outbound.replay is not None:
            size = self._outbound.replay.end - self._worn_at
            text = f"{size} bytes were sent again and again, and each connection was lost before any of it had come"
            self._finish(LinkLost(f"{text}; send smaller items or fragments, or mend the link"))
            return
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
            # THREATS 2: what does not even begin with a frame is no set-up.
            self._abort(error, Code.CONNECTION_ERROR)
        self._after()

    def progressed(self, now: float) -> None:
        """Output that had waited has left the link: the peer's answers may be behind it."""
        self._keepalive.heard = self._moved_at = now

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
            elif timer is Timer.LEASE and self._honoring is not None:
                self._honoring.expire()
            elif timer is Timer.GRANT:
                self._grant(now)
        self._after()

    def confirm(self) -> None:
        """Ask the server for a sign that it has accepted the set-up: `Established` follows, or `Closed`."""
        if not self._dialect.keepalive:
            # ReactiveSocket 0.0, Connection Establishment: a lease is a sign, and one comes to whoever asked for it.
            if self._honoring is None:
                raise UnsupportedKind(f"{self._dialect.name} has no KEEPALIVE to confirm a set-up by; ask for a lease")
            return
        self._outbound.control(KeepaliveFrame(RESPOND, self._position()))

    # Frames.

    def _receive_frame(self, now: float) -> None:
        """Take the frame, or the run of frames, on which the deframer stands."""
        deframer = self._deframer
        codec = self._codec
        buffer = deframer.buffer
        start = deframer.start
        if self._link == UP and self._state != NEW and self._repeated == 0:
            run = codec.scan_run(deframer, MAX_REQUEST_N)
            if run is not None:
                if not self._established:
                    self._establish()
                self._received += deframer.end - start - codec.prefix_bytes * (len(run) - 1)
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
            if not self._established:
                self._establish()
            if _FIRST_COUNTED <= frame.type <= _LAST_COUNTED:
                if self._repeated > 0:
                    self._pass_over(deframer.end - start)
                    return
                self._received += deframer.end - start
            if self._own_ids:
                self._number(frame)
            self._inbound.frame(frame, now)

    def _pass_over(self, size: int) -> None:
        """Drop a frame that has come before. Raises ResumeRejected where the server goes on elsewhere."""
        self._repeated -= size
        if self._repeated < 0:
            raise ResumeRejected("the server did not go on at the position that it was asked for")

    def _number(self, frame: Frame) -> None:
        """Tell streams of the peer's by the sign of their ids.

        ReactiveSocket 0.0, Frame Types: types 0x10 to 0x1F come from a requester. METADATA_PUSH comes from either.
        """
        type = frame.type
        pushed = type == FrameType.METADATA_PUSH and self._streams.get(frame.stream_id) is None
        if _REQUEST_RESPONSE <= type <= _CANCEL or type == _REQUEST_SUB or pushed:
            frame.stream_id = -frame.stream_id

    # Resuming.

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

    def _count_cut(self, now: float) -> None:
        """Count a link that is lost, if the peer lacked something when it came up."""
        replay = self._outbound.replay
        if self._link == UP and replay is not None and 0 <= self._worn_at < replay.end:
            moved = now - self._moved_at <= self._settings.keepalive_interval
            if moved and replay.frame_bytes(self._worn_at) >= LARGE:
                self._wear += WEIGHT
            elif now - self._linked_at < BRIEF:
                self._wear += 1

    def _suspend(self) -> None:
        """Go on without a link: what is sent now waits in the replay."""
        self._link = DOWN
        self._repeated = 0
        self._keepalive.stop()
        self._timers.stop(Timer.REASSEMBLY)
        self._outbound.linked = False
        self._outbound.outbox.clear()
        self._deframer = self._new_deframer(self._settings.max_frame_bytes)
        if self._honoring is not None:
            self._honoring.expire()
        if self._granting is not None:
            self._granting.stop()

    def _resume_answered(self, frame: Frame, now: float) -> None:
        """Take the server's answer to RESUME."""
        if isinstance(frame, ResumeOkFrame):
            position = frame.last_received_client_position
            self._resumed(position, self._kept(position), now)
        elif isinstance(frame, ErrorFrame) and frame.stream_id == 0:
            text = f"{name_of(frame.code)}: {text_of(frame.data)}"
            rejected = ResumeRejected(f"the server did not resume the session: {text}", frame.code)
            if self._refusal is not None:
                self._finish(self._refusal)
            elif frame.code == Code.REJECTED_RESUME and self._can_begin_again():
                # The link was lost before the server had read SETUP: no such session ever was.
                self._begins_again = True
                self._relink(rejected, now)
            else:
                self._finish(rejected)
        else:
            self._inbound.stray(now)

    def _can_begin_again(self) -> bool:
        """Return whether nothing was heard of the server, and all that was ever sent is still here."""
        replay = self._outbound.replay
        return self._unheard and replay is not None and replay.first == 0

    def _set_up_refused(self, error: SetupRejected, now: float) -> None:
        """End the session; but a server may refuse a set-up that is said again because it has read the first one."""
        if Timer.EXPIRY in self._timers and self._refusal is None:
            self._refusal = error
            self._relink(error, now)
        else:
            self._finish(error)

    def _relink(self, error: Exception, now: float) -> None:
        """Give the link up, and try over another one."""
        self.link_down(now, error)
        self._events.append(Unlinked(error))

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
        if position != self._worn_at:
            self._worn_at = position
            self._wear = 0
        self._linked_at = now
        if outbound.replay is not None:
            outbound.replay.trim(position)
        for piece in again:
            outbound.outbox.write(piece)
        outbound.linked = True
        self._link = UP
        self._established = True
        self._unheard = False
        self._timers.stop(Timer.EXPIRY)
        self._inbound.reassembly.restart(now)
        self._start_keepalive(self._settings.keepalive_interval, self._settings.keepalive_lifetime, now)
        # RSocket 1.0, Resuming Operation: leases MUST be restarted by sending one.
        self._grant(now)

    def _silent(self, now: float) -> None:
        """The peer is taken for dead: its link is, and the session as well unless it can be resumed."""
        error = self._dead(now)
        if self._token is None or self._state == NEW:
            self._abort(error, Code.CONNECTION_ERROR)
        else:
            self.link_down(now, error)
            self._events.append(Unlinked(error))
