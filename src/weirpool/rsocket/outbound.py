"""Sends the frames of streams: fragments large ones, and counts positions for resuming."""

from __future__ import annotations

from typing import Final

from ..core.fragments import fragments
from ..core.outbox import BY_REFERENCE_BYTES, Outbox, too_large
from ..core.replay import Replay
from ..payload import Payload, PayloadRun
from ..texts import cut
from ..wire.rsocket.codec import Codec
from ..wire.rsocket.frames import COMPLETE, FOLLOWS, METADATA, NEXT, ErrorFrame, Frame, FrameType

__all__ = ["Outbound"]

UNLIMITED: Final = 1 << 62


class Outbound:
    """Writes frames to the outbox.

    Args:
        codec: The codec of the dialect.
        fragment_bytes: The maximum size of metadata and data of a frame together.
        fragments_requests: Whether requests may be fragmented too.
        max_item_bytes: The maximum size of an item; see `Settings.max_output_bytes`.
        max_frame_bytes: The maximum size of a request that must not be fragmented.

    Attributes:
        outbox: Frames that wait for the link.
        linked: Whether there is a link; without one, frames are only kept in `replay`.
        position: The bytes of counted frames sent in this session (RSocket 1.0, Implied Position).
        replay: The counted frames, if the session can be resumed.

    """

    def __init__(
        self,
        codec: Codec,
        fragment_bytes: int,
        fragments_requests: bool = True,
        max_item_bytes: int = UNLIMITED,
        max_frame_bytes: int = UNLIMITED,
    ) -> None:
        self.codec = codec
        # Positions do not count length prefixes.
        self.prefix_bytes = codec.prefix_bytes
        self.fragment_bytes = fragment_bytes
        self.fragments_requests = fragments_requests
        self.max_item_bytes = max_item_bytes
        self.max_request_bytes = max_item_bytes if fragments_requests else min(max_item_bytes, max_frame_bytes)
        # Larger items are fragmented, or not sent.
        self._whole_bytes = min(fragment_bytes, max_item_bytes)
        self.outbox = Outbox()
        self.linked = False
        self.position = 0
        self.replay: Replay | None = None

    def control(self, frame: Frame) -> None:
        """Send a frame of the connection, which has no position and is never sent again."""
        if self.linked:
            self.outbox.write(self.codec.frame(frame))

    def check_request(self, payload: Payload) -> None:
        """Raise LocalError if a request is too large to be sent."""
        size = len(payload.data) + (0 if payload.metadata is None else len(payload.metadata))
        if size > self.max_request_bytes:
            setting = "max_output_bytes" if self.max_request_bytes == self.max_item_bytes else "max_frame_bytes"
            raise too_large("a request", size, setting, self.max_request_bytes)

    def request(self, type: int, stream_id: int, flags: int, request_n: int, payload: Payload) -> None:
        """Send a REQUEST_* frame that `check_request` permits; a large payload continues in PAYLOAD frames."""
        size = len(payload.data) + (0 if payload.metadata is None else len(payload.metadata))
        if not self.fragments_requests or size <= self.fragment_bytes:
            self._count(self.codec.request_frame(type, stream_id, flags, request_n, payload.metadata, payload.data), 1)
            return
        first = True
        for metadata, data, follows in fragments(payload, self.fragment_bytes):
            if first:
                # RSocket 1.0, Fragmentation: COMPLETE is set in the last frame, not in frames with FOLLOWS.
                begun = (flags & ~COMPLETE) | FOLLOWS
                self._count(self.codec.request_frame(type, stream_id, begun, request_n, metadata, data), 1)
            else:
                self._fragment(stream_id, flags & COMPLETE, metadata, data, follows)
            first = False

    def item(self, stream_id: int, payload: Payload, done: bool) -> None:
        """Send an item; `done` sets COMPLETE. Raises LocalError if it is too large; nothing was sent."""
        complete = COMPLETE if done else 0
        data = payload.data
        size = len(data)
        if payload.metadata is not None:
            size += len(payload.metadata)
        if size > self._whole_bytes:
            if size > self.max_item_bytes:
                raise too_large("an item", size, "max_output_bytes", self.max_item_bytes)
            for metadata, piece, follows in fragments(payload, self.fragment_bytes):
                self._fragment(stream_id, complete, metadata, piece, follows)
        elif len(data) < BY_REFERENCE_BYTES:
            self._count(self.codec.payload_frame(stream_id, NEXT | complete, payload.metadata, data), 1)
        else:
            self._by_reference(stream_id, NEXT | complete, payload.metadata, data)

    def run(self, stream_id: int, run: PayloadRun, start: int, stop: int) -> None:
        """Send the items of `run` from index `start` to `stop`. Raises LocalError at one that is too large."""
        at = start
        while at < stop:
            fitting = at + self.codec.fits(run, at, stop, self._whole_bytes)
            if fitting > at:
                pieces = self.codec.run_frames(stream_id, run, at, fitting)
                frames = fitting - at
                for piece in pieces:
                    self._count(piece, frames)
                    frames = 0
                at = fitting
            else:
                self.item(stream_id, run.payloads(at, at + 1)[0], False)
                at += 1

    def complete(self, stream_id: int) -> None:
        """Send COMPLETE without an item."""
        self._count(self.codec.payload_frame(stream_id, COMPLETE, None, b""), 1)

    def request_n(self, stream_id: int, count: int) -> None:
        """Send REQUEST_N."""
        self._count(self.codec.request_n_frame(stream_id, count), 1)

    def cancel(self, stream_id: int, metadata: bytes | None = None) -> None:
        """Send CANCEL. Raises LocalError if the dialect does not support metadata there."""
        if metadata is None:
            self._count(self.codec.cancel_frame(stream_id), 1)
        else:
            self._count(self.codec.frame(Frame(FrameType.CANCEL, abs(stream_id), 0, 0, metadata)), 1)

    def error(self, stream_id: int, code: int, data: bytes, metadata: bytes | None = None) -> None:
        """Send ERROR on a stream. Raises LocalError if the dialect does not support metadata there."""
        # An error is text, not a payload: it is not fragmented.
        frame = ErrorFrame(abs(stream_id), code, cut(data, self.fragment_bytes), 0, metadata)
        self._count(self.codec.frame(frame), 1)

    def _fragment(self, stream_id: int, complete: int, metadata: bytes | None, data: bytes, follows: bool) -> None:
        # Later fragments have NEXT too, as in all known peers.
        flags = NEXT | (FOLLOWS if follows else complete)
        if len(data) < BY_REFERENCE_BYTES:
            self._count(self.codec.payload_frame(stream_id, flags, metadata, data), 1)
        else:
            self._by_reference(stream_id, flags, metadata, data)

    def _by_reference(self, stream_id: int, flags: int, metadata: bytes | None, data: bytes) -> None:
        if metadata is not None:
            flags |= METADATA
        self._count(self.codec.payload_head(stream_id, flags, metadata, len(data)), 1)
        self._count(data, 0)

    def _count(self, piece: bytes, frames: int) -> None:
        """Send `piece`, in which `frames` frames begin; 0 if it continues the previous one."""
        size = len(piece) - self.prefix_bytes * frames
        self.position += size
        if self.replay is not None:
            self.replay.keep(piece, size, frames > 0)
        if self.linked:
            self.outbox.write(piece)
