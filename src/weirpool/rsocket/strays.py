"""Unexpected frames: they are ignored, or answered with an error, if possible on their stream only.

RSocket 1.0, Handling the Unexpected: a frame that is invalid in the current state MUST be ignored, in whatever number:
all items within the credit may be under way when this side ends a stream. Ignoring a frame takes time, as handling one
does, so a flood of them only delays its sender.
"""

from __future__ import annotations

from ..core.fragments import Reassembly
from ..core.halves import Signal
from ..core.streams import Stream
from ..errors import LimitExceeded, ProtocolError
from ..events import Failed
from ..wire.rsocket.frames import FOLLOWS, IGNORE, Frame, FrameType
from .codes import Code
from .lifecycle import Lifecycle

__all__ = ["Strays"]

# Plain integers, as `Stream.end` requires, and frames have them.
_FAIL, _EXT = int(Signal.FAIL), int(FrameType.EXT)


class Strays:
    """Handles unexpected frames on the streams of a session.

    Attributes:
        ignored: How many frames were ignored.
        rejected: How many requests were rejected because of a limit, or without a lease.
        reassembly: Incomplete items.
        partials: The same items by stream.
        refused: The streams of requests that were refused before their last fragment.

    """

    def __init__(self, life: Lifecycle) -> None:
        self._settings = settings = life.settings
        self._streams = life.streams
        self._outbound = life.outbound
        self._events = life.events
        self._leases = life.leases
        self.ignored = 0
        self.rejected = 0
        self.reassembly = Reassembly(settings, life.account)
        self.partials = self.reassembly.partials
        self.refused: dict[int, None] = {}

    # Invalid frames.

    def stray(self, count: int = 1) -> None:
        """Ignore frames that are invalid in the current state (THREATS 42)."""
        self.ignored += count

    def ignore(self, frame: Frame) -> None:
        """Ignore a frame whose type is invalid here. Raises ProtocolError for an extension that must not be ignored."""
        if frame.type == _EXT and not frame.flags & IGNORE:
            # RSocket 1.0, Frame Header Format: a frame that is not understood is ignored only if IGNORE is set.
            raise ProtocolError("an extension frame without the flag IGNORE is not supported")
        self.stray()

    def interrupt(self, stream_id: int) -> None:
        """Reject a request whose fragments are interrupted by another frame (THREATS 50)."""
        if stream_id in self.partials and self._streams.get(stream_id) is None:
            self.drop_partial(stream_id, ProtocolError("the request's fragments were interrupted by another frame"))

    def remove_stream(self, stream: Stream) -> None:
        """Remove a stream that has ended."""
        self._streams.close(stream)
        if self._leases.responder is not None and not stream.ours:
            self._leases.responder.reconsider()
        if self.partials and stream.id in self.partials:
            self.reassembly.drop(stream.id)

    def refuse(self, stream: Stream, code: int, error: Exception) -> None:
        """End a stream because the peer violated the protocol, and inform both sides."""
        if stream.only_canceled:
            self._outbound.cancel(stream.id)
        else:
            self._outbound.error(stream.id, code, str(error).encode())
        self.fail(stream, error)

    def overdue(self, now: float) -> None:
        """Reject the items whose fragments have taken too long."""
        for stream_id in self.reassembly.overdue(now):
            self.drop_partial(
                stream_id,
                LimitExceeded(f"an item's fragments took longer than {self._settings.reassembly_timeout:g} s"),
            )

    def reject(self, stream_id: int, frame: Frame, why: str) -> None:
        """Reject a request. Any number of them is answered (THREATS 107)."""
        self.rejected += 1
        if frame.flags & FOLLOWS:
            self.ignore_rest(stream_id)
        # A fire has no response.
        if frame.type != FrameType.REQUEST_FNF:
            self._outbound.error(stream_id, Code.REJECTED, why.encode())

    def overrun(self, stream: Stream) -> None:
        """End a stream on which more items arrived than were requested."""
        self.refuse(stream, Code.INVALID, ProtocolError(f"stream {stream.id}: more items arrived than were requested"))

    def enforce_limits(self) -> None:
        """Reject the oldest unfinished items while all of them together exceed a limit (THREATS 49)."""
        excess = self.reassembly.excess()
        while excess is not None:
            self.drop_partial(*excess)
            excess = self.reassembly.excess()

    def shed(self, error: Exception) -> bool:
        """Drop the largest unfinished item, or the output that the peer has not confirmed if that is larger.

        Returns False if there is neither.
        """
        replay = self._outbound.replay
        largest = self.reassembly.largest()
        retained = 0 if replay is None else replay.held
        if replay is not None and retained > (0 if largest is None else self.partials[largest].held):
            # Without it, the session continues over this link, but cannot be resumed from before.
            replay.drop()
        elif largest is not None:
            self.drop_partial(largest, error)
        else:
            return False
        return True

    def drop_partial(self, stream_id: int, error: Exception, code: int = Code.REJECTED) -> None:
        """Drop an unfinished item, and end its stream or refuse its request with `code`."""
        self.reassembly.drop(stream_id)
        stream = self._streams.get(stream_id)
        if stream is not None:
            self.refuse(stream, Code.INVALID, error)
        else:
            self._outbound.error(stream_id, code, str(error).encode())
            self.ignore_rest(stream_id)

    def ignore_rest(self, stream_id: int) -> None:
        """Ignore the fragments that follow of a refused request. Of too many such requests, the oldest is forgotten."""
        self.refused[stream_id] = None
        if len(self.refused) > self._settings.max_streams:
            del self.refused[next(iter(self.refused))]

    def ignore_fragment(self, stream_id: int, frame: Frame) -> None:
        """Ignore a fragment of a refused request. After the last one, its stream may be used again."""
        self.stray()
        if not frame.flags & FOLLOWS:
            self.refused.pop(stream_id, None)

    def fail(self, stream: Stream, error: Exception) -> None:
        """End a stream after an error of the peer."""
        stream.end(_FAIL, False)
        self.remove_stream(stream)
        self._events.append(Failed(stream.id, error))
