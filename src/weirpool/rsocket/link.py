"""The links of a session: received bytes, timers, link losses, and resuming over another link."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from ..core.link_losses import LinkLosses
from ..core.replay import Replay
from ..core.timers import Timer
from ..core.unfinished import Unfinished
from ..errors import FrameError, KeepaliveTimeout, LimitExceeded, LinkLost, ProtocolError, ResumeRejected, SetupRejected
from ..events import Unlinked
from ..wire.rsocket.codec import Codec
from ..wire.rsocket.frames import ErrorFrame, Frame, FrameType, ResumeFrame, ResumeOkFrame
from .codes import Code, name_of, text_of
from .control import Control
from .dialect import deframer_of
from .inbound import Inbound
from .lifecycle import CLOSED, DRAINING, LEAVING, NEW, Lifecycle

__all__ = ["TRANSITIONS", "Link", "LinkState"]

SHORT_LINK_SECONDS: Final = 1.0
RUN_ITEMS: Final = 2_048
"""Items of a run, so that the plain build decodes one within a turn of the loop."""
ITEMS_OF_FRAME: Final = 64
"""Items of a run that take as much time as a frame of another kind."""


class LinkState(IntEnum):
    """The states of a session's link."""

    DOWN = 0
    """There is no link."""
    HANDSHAKING = 1
    """A server waits for SETUP; a client has sent RESUME and waits for the answer."""
    UP = 2
    """Frames of streams may be sent."""


DOWN, HANDSHAKING, UP = map(int, LinkState)

TRANSITIONS: Final[dict[tuple[LinkState, str], LinkState]] = {
    (LinkState.DOWN, "accepted"): LinkState.HANDSHAKING,
    (LinkState.DOWN, "SETUP sent"): LinkState.UP,
    (LinkState.DOWN, "RESUME sent"): LinkState.HANDSHAKING,
    (LinkState.DOWN, "RESUME received"): LinkState.UP,
    (LinkState.DOWN, "lost"): LinkState.DOWN,
    (LinkState.HANDSHAKING, "SETUP received"): LinkState.UP,
    (LinkState.HANDSHAKING, "RESUME_OK received"): LinkState.UP,
    (LinkState.HANDSHAKING, "lost"): LinkState.DOWN,
    (LinkState.UP, "lost"): LinkState.DOWN,
}
"""(State, cause) to the next state. All other combinations are defects in Weirpool."""

_FIRST_COUNTED = int(FrameType.REQUEST_RESPONSE)
_LAST_COUNTED = int(FrameType.ERROR)


class Link:
    """The successive links of a session.

    Attributes:
        state: A :class:`LinkState` as a number.
        unfinished: The bytes of a frame that has not arrived completely.

    """

    def __init__(self, life: Lifecycle, inbound: Inbound, control: Control) -> None:
        self._life = life
        self._settings = settings = life.settings
        self._timers = life.timers
        self._outbound = outbound = life.outbound
        self._codec: Codec = outbound.codec
        self._inbound = inbound
        self._strays = inbound.strays
        self._control = control
        self._keepalive = control.keepalive
        self.unfinished = Unfinished(life.account, life.timers, settings.frame_timeout)
        self._losses = LinkLosses(SHORT_LINK_SECONDS, settings.keepalive_interval)
        limit = settings.max_frame_bytes if life.is_client else settings.max_setup_frame_bytes
        self._deframer = deframer_of(self._codec, limit)
        # Bytes that were received over an earlier link and will be sent again over this one.
        self._repeated = 0
        self.state = DOWN
        if life.token is not None:
            outbound.replay = Replay(settings.resume_bytes, self._codec.prefix_bytes, account=life.account)

    # The link.

    def link_up(self, now: float) -> None:
        """Start to use a new link. Output from now on is sent over it."""
        life = self._life
        handshake = self._control.handshake
        if not life.is_client:
            self._move("accepted")
            self._timers.set(Timer.FIRST_FRAME, now + self._settings.first_frame_timeout)
        elif life.state == NEW or (handshake is not None and handshake.restart and life.state != CLOSED):
            self._move("SETUP sent")
            self._control.begin(now, [] if life.token is None else self._unreceived(0))
        elif life.token is not None and life.state != CLOSED:
            self._ask_to_resume(life.token, now)

    def link_down(self, now: float, error: Exception | None) -> None:
        """Handle the loss of the link; `error` is None if the peer closed it normally."""
        life = self._life
        if life.state == CLOSED:
            return
        lost = error if error is not None else LinkLost("the peer closed the connection")
        if life.token is None or life.state == NEW or life.state == LEAVING:
            in_order = error is None and self._control.done
            life.finish(None if in_order else lost)
            return
        replay = self._outbound.replay
        losses = self._losses
        if self.state == UP and replay is not None and 0 <= losses.delivered < replay.end:
            losses.lost(now, replay.frame_bytes(losses.delivered))
        self._suspend()
        if losses.too_many and replay is not None:
            text = (
                f"{replay.end - losses.delivered} bytes were sent repeatedly, and each connection was lost before any"
            )
            life.finish(LinkLost(f"{text} of them arrived; send smaller items or fragments, or repair the network"))
        elif Timer.EXPIRY not in self._timers:
            self._timers.set(Timer.EXPIRY, now + self._settings.resume_timeout)

    def receive(self, data: bytes, now: float, frames: int = 0) -> bool:
        """Handle received bytes, which may be split anywhere. See :meth:`weirpool.session.Session.receive`."""
        if self._life.state == CLOSED:
            return False
        self._keepalive.last_received_at = now
        if data:
            self._deframer.feed(data)
        left = frames
        more = False
        try:
            while self._deframer.next():
                left -= self._receive_frame(now)
                if self._life.state == CLOSED:
                    return False
                if left <= 0 < frames:
                    more = self._deframer.pending > 0
                    break
        except SetupRejected as error:
            self._control.abort(error, error.code if isinstance(error.code, int) else Code.INVALID_SETUP)
        except (ProtocolError, LimitExceeded, ResumeRejected) as error:
            # THREATS 2: bytes that do not begin with a frame end the session.
            self._control.abort(error, Code.CONNECTION_ERROR if self._life.state != NEW else Code.INVALID_SETUP)
        if self._life.state == CLOSED:
            return False
        if self._deframer.size or self.unfinished.held:
            self.unfinished.update(self._deframer.held, now, more)
        self._after()
        return more

    def progressed(self, now: float) -> None:
        """Record that waiting output has left the link: the peer could not answer before."""
        self._keepalive.last_received_at = now
        self.unfinished.excuse(now)
        self._losses.progressed(now)

    def handle_timer(self, now: float) -> None:
        """Handle all timers that have expired."""
        settings = self._settings
        for timer in self._timers.expired(now):
            if self._life.state == CLOSED:
                return
            if timer is Timer.KEEPALIVE:
                self._outbound.control(self._keepalive.due(now, self._life.position()))
            elif timer is Timer.SILENCE and self._keepalive.silent(now):
                silence = now - self._keepalive.last_received_at
                self._give_up(KeepaliveTimeout(f"nothing received from the peer for {silence:.1f} s"), now)
            elif timer is Timer.FRAME and self.unfinished.overdue(now):
                limit = settings.frame_timeout
                self._give_up(KeepaliveTimeout(f"the peer stopped within a frame for frame_timeout ({limit:g} s)"), now)
            elif timer is Timer.REASSEMBLY:
                self._strays.overdue(now)
            elif timer is Timer.FIRST_FRAME:
                text = f"no whole first frame came within {settings.first_frame_timeout:g} s"
                self._control.abort(SetupRejected(text), Code.INVALID_SETUP)
            elif timer is Timer.EXPIRY:
                text = f"the session was without a connection for {settings.resume_timeout:g} s"
                self._life.finish(LinkLost(text))
            elif timer is Timer.LEASE and self._life.leases.requester is not None:
                self._life.leases.requester.expire()
            elif timer is Timer.GRANT:
                self._control.grant(now)
        self._after()

    def _after(self) -> None:
        """Update the state after an input or a timer."""
        if self._life.state == DRAINING:
            self._control.close_if_done()
        if self._strays.partials and self._outbound.linked:
            deadline = self._strays.reassembly.deadline()
            if deadline is not None:
                self._timers.set(Timer.REASSEMBLY, deadline)

    # Frames.

    def _receive_frame(self, now: float) -> int:
        """Handle the current frame of the deframer, or the run of frames that begins with it.

        Returns:
            The number of frames that take as much time.

        """
        deframer = self._deframer
        codec = self._codec
        buffer = deframer.buffer
        start = deframer.start
        life = self._life
        if self.state == UP and self._repeated == 0:
            run = codec.scan_run(deframer, RUN_ITEMS)
            if run is not None:
                if not life.established:
                    self._control.establish()
                life.received += deframer.end - start - codec.prefix_bytes * (len(run) - 1)
                self._inbound.run(codec.stream_id(buffer, start), run, now)
                return 1 + len(run) // ITEMS_OF_FRAME
        try:
            frame = codec.decode(buffer, start, deframer.end)
        except FrameError as error:
            if life.state == NEW:
                raise SetupRejected(f"the first frame is malformed: {error}", Code.INVALID_SETUP) from error
            if not error.ignorable and not self._is_ignored(error, buffer, start):
                raise
            stream_id = codec.stream_id(buffer, start)
            if self.state == UP and stream_id and _FIRST_COUNTED <= codec.type(buffer, start) <= _LAST_COUNTED:
                self._is_repeated(deframer.end - start)
            self._strays.stray()
            return 1
        if self.state != UP and self._handshake_frame(frame, now):
            return 1
        if frame.stream_id == 0:
            refusal = self._control.frame(frame, now)
            if refusal is not None:
                self._set_up_refused(refusal, now)
            return 1
        if not life.established:
            self._control.establish()
        if _FIRST_COUNTED <= frame.type <= _LAST_COUNTED and self._is_repeated(deframer.end - start):
            return 1
        self._inbound.frame(frame, now)
        return 1

    def _is_ignored(self, error: FrameError, buffer: bytes, start: int) -> bool:
        """Return whether the frame at `start` is ignored whatever its fields are, so that they may be malformed.

        RSocket 1.0, Handling the Unexpected 9.
        """
        if self.state != UP or error.offset < self._codec.header_bytes:
            return False
        type, stream_id = self._codec.type(buffer, start), self._codec.stream_id(buffer, start)
        if _FIRST_COUNTED <= type <= _LAST_COUNTED or type == FrameType.REQUEST_SUB:
            return self._inbound.ignores(type, stream_id) if stream_id else type != FrameType.ERROR
        if stream_id:
            return type != FrameType.EXT
        if type == FrameType.RESUME:
            return self._life.is_client
        if type == FrameType.LEASE:
            return self._life.leases.requester is None
        return type in (FrameType.SETUP, FrameType.RESUME_OK)

    def _handshake_frame(self, frame: Frame, now: float) -> bool:
        """Handle the frame if it belongs to the handshake of the link; return whether it does."""
        if self._life.state == NEW:
            self._control.set_up(frame, now)
            self._deframer.max_frame_bytes = self._settings.max_frame_bytes
            self._move("SETUP received")
        elif self.state == HANDSHAKING:
            self._resume_answered(frame, now)
        else:
            return False
        return True

    def _is_repeated(self, size: int) -> bool:
        """Count a frame that has a position; return whether it was received before.

        Raises ResumeRejected if the server resumed at another position.
        """
        if self._repeated == 0:
            self._life.received += size
            return False
        self._repeated -= size
        if self._repeated < 0:
            raise ResumeRejected("the server did not resume at the requested position")
        return True

    def _set_up_refused(self, error: SetupRejected, now: float) -> None:
        """End the session. After a repeated set-up, try to resume first: the server may have received the first one."""
        handshake = self._control.handshake
        if Timer.EXPIRY in self._timers and handshake is not None and handshake.refusal is None:
            handshake.refusal = error
            self._relink(error, now)
        else:
            self._life.finish(error)

    # Resuming.

    def _ask_to_resume(self, token: bytes, now: float) -> None:
        """Send RESUME. RSocket 1.0, Resuming Operation: nothing else is sent until it is answered."""
        self._move("RESUME sent")
        replay = self._outbound.replay
        # The server discards output before the position that it receives, so only the safe position is sent. What
        # was received after it will be sent again.
        position = self._life.position()
        self._repeated = self._life.received - position
        frame = ResumeFrame(token, position, 0 if replay is None else replay.first, *self._life.dialect.version)
        self._outbound.outbox.write(self._codec.frame(frame))
        self._control.watch(now)
        self._timers.stop(Timer.KEEPALIVE)

    def resume(self, frame: ResumeFrame, now: float) -> None:
        """Resume a server's session over a new link. Called instead of `link_up`.

        Raises ResumeRejected, and changes nothing, if one side no longer has the data that the other lacks.
        """
        if self._outbound.replay is None or self._life.state >= LEAVING:
            raise ResumeRejected("the session cannot be resumed")
        # RSocket 1.0, Resuming Operation: both sides must still have what the other has not received.
        if frame.first_available_client_position > self._life.received:
            raise ResumeRejected("the client no longer has data that this server has not received")
        # ReactiveSocket 0.2, RESUME Frame: positions are signed, and MUST be >= 0.
        if frame.first_available_client_position < 0:
            raise ResumeRejected("a position must not be negative")
        resend = self._unreceived(frame.last_received_server_position)
        self._suspend()
        self._outbound.outbox.write(self._codec.frame(ResumeOkFrame(self._life.received)))
        self._move("RESUME received")
        self._resumed(frame.last_received_server_position, resend, now)

    def forget_input(self) -> None:
        """Release the received bytes of an incomplete frame: the link is lost, or the session has ended."""
        self._deframer = deframer_of(self._codec, self._settings.max_frame_bytes)
        self.unfinished.drop()

    def _suspend(self) -> None:
        """Continue without a link: output is kept in the replay buffer."""
        self._move("lost")
        self._repeated = 0
        self._keepalive.stop()
        self._timers.stop(Timer.REASSEMBLY)
        self._outbound.linked = False
        self._outbound.outbox.clear()
        self.forget_input()
        self._life.leases.suspend()

    def _resume_answered(self, frame: Frame, now: float) -> None:
        """Handle the server's answer to RESUME."""
        if isinstance(frame, ResumeOkFrame):
            position = frame.last_received_client_position
            resend = self._unreceived(position)
            self._move("RESUME_OK received")
            self._resumed(position, resend, now)
        elif isinstance(frame, ErrorFrame) and frame.stream_id == 0:
            text = f"{name_of(frame.code)}: {text_of(frame.data)}"
            rejected = ResumeRejected(f"the server did not resume the session: {text}", frame.code)
            handshake = self._control.handshake
            refusal = None if handshake is None else handshake.refusal
            if handshake is None or refusal or frame.code != Code.REJECTED_RESUME or not self._can_begin_again():
                self._life.finish(refusal or rejected)
            else:
                # The link was lost before the server received SETUP, so it does not know the session.
                handshake.restart = True
                self._relink(rejected, now)
        else:
            self._strays.stray()

    def _can_begin_again(self) -> bool:
        """Return whether all output of the session can be sent again."""
        replay = self._outbound.replay
        return replay is not None and replay.first == 0

    def _unreceived(self, position: int) -> list[bytes]:
        """Return the output that the peer has not received. Raises ResumeRejected if it is no longer kept."""
        replay = self._outbound.replay
        try:
            return [] if replay is None else replay.since(position)
        except ValueError as error:
            raise ResumeRejected(f"data that the peer lacks is no longer kept: {error}") from error

    def _resumed(self, position: int, resend: list[bytes], now: float) -> None:
        """Send the output that the peer lacks, and continue the session."""
        outbound = self._outbound
        self._losses.linked(now)
        self._losses.deliver(position)
        if outbound.replay is not None:
            outbound.replay.trim(position)
        for piece in resend:
            outbound.outbox.write(piece)
        outbound.linked = True
        self._life.established = True
        self._control.handshake = None
        self._timers.stop(Timer.EXPIRY)
        self._strays.reassembly.restart(now)
        self._control.watch(now)
        # RSocket 1.0, Resuming Operation: leases MUST be restarted by sending one.
        self._control.grant(now)

    def _give_up(self, error: KeepaliveTimeout, now: float) -> None:
        """Give up a link whose peer is silent; end the session if it cannot be resumed."""
        if self._life.token is None or self._life.state == NEW:
            self._control.abort(error, Code.CONNECTION_ERROR)
        else:
            self._relink(error, now)

    def _relink(self, error: Exception, now: float) -> None:
        """Give up the link, and request another one."""
        self.link_down(now, error)
        self._life.events.append(Unlinked(error))

    def _move(self, cause: str) -> None:
        self.state = int(TRANSITIONS[LinkState(self.state), cause])
