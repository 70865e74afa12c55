"""What is wrong with what arrives on streams: it is ignored and counted, or refused, on its stream alone if possible.

RSocket 1.0, Handling the Unexpected: what makes no sense where it comes is ignored. We count it all the
same, because a peer that sends little else is an attack.
"""

from __future__ import annotations

from typing import Final

from ..core.credit import add
from ..core.fragments import Reassembly
from ..core.halves import OPEN, Signal
from ..core.rates import Rate
from ..core.streams import Stream, StreamTable
from ..errors import LimitExceeded, ProtocolError
from ..events import Event, Failed
from ..payload import Payload
from ..settings import Settings
from ..wire.rsocket.frames import Frame, FrameType
from .codes import Code
from .lease import Granting
from .outbound import Outbound

__all__ = ["RATE_SECONDS", "Refusing"]

RATE_SECONDS: Final = 30.0
"""Over how many seconds floods are counted."""
STRAY_BYTES: Final = 4096
"""So many bytes of a frame that is ignored count as a frame of their own."""

# As the table of halves wants it.
_FAIL = int(Signal.FAIL)


class Refusing:
    """The streams of a session, and what is done about what should not have come on them.

    Args:
        settings: Limits.
        streams: The session's streams.
        outbound: For the frames that answer.
        events: Where to put what happened.

    Attributes:
        granting: Without leave of its, requests are refused; None: they need none.
        reassembly: Items of which not all fragments are here.
        partials: The same, by stream.

    """

    __slots__ = (
        "_events",
        "_late",
        "_max_metadata_bytes",
        "_outbound",
        "_settings",
        "_stray",
        "_streams",
        "granting",
        "partials",
        "reassembly",
    )

    def __init__(self, settings: Settings, streams: StreamTable, outbound: Outbound, events: list[Event]) -> None:
        self._settings = settings
        self._streams = streams
        self._outbound = outbound
        self._events = events
        self._late = 0
        self._stray = Rate(settings.max_stray_frames, RATE_SECONDS)
        self._max_metadata_bytes = settings.max_metadata_bytes
        self.reassembly = Reassembly(settings)
        self.partials = self.reassembly.partials
        self.granting: Granting | None = None

    # Frames that make no sense.

    def stray(self, now: float, count: int = 1) -> None:
        """Ignore frames that make no sense where they came.

        Raises:
            LimitExceeded: There are too many of them.

        """
        if self._late >= count:
            self._late -= count
        elif self._stray.hit(now, count):
            raise LimitExceeded(f"more than max_stray_frames ({self._settings.max_stray_frames}) frames for no stream")

    def ignored(self, frame: Frame, now: float) -> None:
        """Ignore a frame of a type that makes no sense here; a large one counts as many (THREATS 14).

        Raises:
            LimitExceeded: There are too many of them.

        """
        self.stray(now, 1 + len(frame.data) // STRAY_BYTES)

    def _interrupt(self, stream_id: int) -> None:
        """Give up a request that is half there, and was interrupted by what is no part of it (THREATS 50)."""
        if stream_id in self.partials and self._streams.get(stream_id) is None:
            self._drop_partial(stream_id, ProtocolError("the request's fragments were interrupted by another frame"))

    def expect_late(self, stream: Stream) -> None:
        """Expect what the peer may send on a stream before it learns that we canceled it."""
        self._late = add(self._late, stream.granted)

    def forget(self, stream: Stream) -> None:
        """Drop all that is held for a stream that is over."""
        self._streams.close(stream)
        if self.granting is not None and not stream.ours:
            self.granting.look()
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
        self._fail(stream, error)

    def overdue(self, now: float) -> None:
        """Give up the items whose fragments have taken too long."""
        for stream_id in self.reassembly.overdue(now):
            self._drop_partial(
                stream_id,
                LimitExceeded(f"an item's fragments took longer than {self._settings.reassembly_timeout:g} s"),
            )

    def _reject(self, frame: Frame, why: str, now: float) -> None:
        self.stray(now)
        # Nobody waits for an answer to what was fired.
        if frame.type != FrameType.REQUEST_FNF:
            self._outbound.error(frame.stream_id, Code.REJECTED, why.encode())

    def _overrun(self, stream: Stream) -> None:
        self.refuse(stream, Code.INVALID, ProtocolError(f"stream {stream.id} brought more items than were asked for"))

    def _make_room(self) -> None:
        """Give up the oldest unfinished items while all of them hold too much (THREATS 49)."""
        excess = self.reassembly.excess()
        while excess is not None:
            self._drop_partial(*excess)
            excess = self.reassembly.excess()

    def _drop_partial(self, stream_id: int, error: Exception) -> None:
        """Give up an unfinished item, and with it its stream, open already or not yet."""
        self.reassembly.drop(stream_id)
        stream = self._streams.get(stream_id)
        if stream is not None:
            self.refuse(stream, Code.INVALID, error)
        else:
            self._outbound.error(stream_id, Code.REJECTED, str(error).encode())

    def _check_metadata(self, payload: Payload) -> None:
        limit = self._max_metadata_bytes
        metadata = payload.metadata
        if metadata is not None and len(metadata) > limit:
            raise LimitExceeded(f"metadata of {len(metadata)} bytes exceeds max_metadata_bytes ({limit})")

    def _fail(self, stream: Stream, error: Exception) -> None:
        stream.end(_FAIL, False)
        self.forget(stream)
        self._events.append(Failed(stream.id, error))
