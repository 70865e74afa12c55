"""Frames that should not have come: they are counted and ignored, or refused, if possible on their stream only.

RSocket 1.0, Handling the Unexpected: a frame that makes no sense where it comes is ignored. It is counted all the
same, because a peer that sends little else is attacking.
"""

from __future__ import annotations

from typing import Final

from ..core.fragments import Reassembly
from ..core.halves import OPEN, Signal, add
from ..core.rates import Rate
from ..core.streams import Stream
from ..errors import LimitExceeded, ProtocolError
from ..events import Failed
from ..wire.rsocket.frames import Frame, FrameType
from .codes import Code
from .lifecycle import Lifecycle

__all__ = ["RATE_SECONDS", "Strays"]

RATE_SECONDS: Final = 30.0
"""Seconds over which floods are counted."""
STRAY_BYTES: Final = 4096
"""Each time this many bytes of an ignored frame count as one more frame."""

# As the table of halves wants it.
_FAIL = int(Signal.FAIL)


class Strays:
    """What is done about frames that should not have come on the streams of a session.

    Attributes:
        reassembly: Items of which not all fragments are here.
        partials: The same, by stream.

    """

    def __init__(self, life: Lifecycle) -> None:
        self._settings = settings = life.settings
        self._streams = life.streams
        self._outbound = life.outbound
        self._events = life.events
        self._leases = life.leases
        self._late = 0
        self._stray = Rate(settings.max_stray_frames, RATE_SECONDS)
        self.reassembly = Reassembly(settings)
        self.partials = self.reassembly.partials

    # Frames that make no sense.

    def stray(self, now: float, count: int = 1) -> None:
        """Ignore frames that make no sense where they came. Raises LimitExceeded if there are too many of them."""
        if self._late >= count:
            self._late -= count
        elif self._stray.hit(now, count):
            raise LimitExceeded(f"more than max_stray_frames ({self._settings.max_stray_frames}) frames for no stream")

    def ignored(self, frame: Frame, now: float) -> None:
        """Ignore a frame whose type makes no sense here. A large one counts as many (THREATS 14). Raises as `stray`."""
        self.stray(now, 1 + len(frame.data) // STRAY_BYTES)

    def interrupt(self, stream_id: int) -> None:
        """Give up a request whose fragments are interrupted by another frame (THREATS 50)."""
        if stream_id in self.partials and self._streams.get(stream_id) is None:
            self.drop_partial(stream_id, ProtocolError("the request's fragments were interrupted by another frame"))

    def expect_late(self, stream: Stream) -> None:
        """Expect what the peer may send on a stream before it learns that this side has canceled it."""
        self._late = add(self._late, stream.granted)

    def remove_stream(self, stream: Stream) -> None:
        """Drop all that is held for a stream that is over."""
        self._streams.close(stream)
        if self._leases.responder is not None and not stream.ours:
            self._leases.responder.look()
        if stream.id in self.partials:
            self.reassembly.drop(stream.id)

    def refuse(self, stream: Stream, code: int, error: Exception) -> None:
        """End a stream because of what the peer did on it, and tell both sides."""
        if stream.ours and stream.outbound != OPEN:
            # RSocket 1.0, Request Stream: a requester has no ERROR to send, only CANCEL.
            self._outbound.cancel(stream.id)
            self.expect_late(stream)
        else:
            self._outbound.error(stream.id, code, str(error).encode())
        self.fail(stream, error)

    def overdue(self, now: float) -> None:
        """Give up the items whose fragments have taken too long."""
        for stream_id in self.reassembly.overdue(now):
            self.drop_partial(
                stream_id,
                LimitExceeded(f"an item's fragments took longer than {self._settings.reassembly_timeout:g} s"),
            )

    def reject(self, frame: Frame, why: str, now: float) -> None:
        """Answer a request that is not accepted. Raises LimitExceeded when there are too many of them."""
        self.stray(now)
        # No answer to a fire is expected.
        if frame.type != FrameType.REQUEST_FNF:
            self._outbound.error(frame.stream_id, Code.REJECTED, why.encode())

    def overrun(self, stream: Stream) -> None:
        """End a stream on which more items came than were requested."""
        self.refuse(stream, Code.INVALID, ProtocolError(f"stream {stream.id} brought more items than were asked for"))

    def make_room(self) -> None:
        """Give up the oldest unfinished items while all of them hold too much (THREATS 49)."""
        excess = self.reassembly.excess()
        while excess is not None:
            self.drop_partial(*excess)
            excess = self.reassembly.excess()

    def drop_partial(self, stream_id: int, error: Exception) -> None:
        """Give up an unfinished item, and with it its stream, open already or not yet."""
        self.reassembly.drop(stream_id)
        stream = self._streams.get(stream_id)
        if stream is not None:
            self.refuse(stream, Code.INVALID, error)
        else:
            self._outbound.error(stream_id, Code.REJECTED, str(error).encode())

    def fail(self, stream: Stream, error: Exception) -> None:
        """End a stream that the peer has failed, or has misused."""
        stream.end(_FAIL, False)
        self.remove_stream(stream)
        self._events.append(Failed(stream.id, error))
