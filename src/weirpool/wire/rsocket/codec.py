"""The codec of the RSocket family: converts bytes to frames and back, and runs of items without frame objects.

It implements RSocket 1.0, and ReactiveSocket 0.2 with another table of layouts. The codec of ReactiveSocket 0.0,
which has a different header, is a subclass. Comments name sections of the RSocket 1.0 specification.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct

from ...errors import FrameError, LocalError
from ...payload import PayloadRun
from ..fields import GREATEST_31, u32
from ..framing import Deframer, prefixed
from .frames import HEADER_BYTES, IGNORE, METADATA, NEXT, Frame, FrameType, KeepaliveFrame, RequestNFrame
from .layouts import FLAGS, RSOCKET_V1, TYPE_SHIFT, Layout, Metadata, read_frame, write_frame
from .packing import pack, pack_head, pack_run, take_run

__all__ = ["PIECE_BYTES", "Codec"]

PIECE_BYTES = 60_000
"""Maximum size of joined frames of a run: larger writes cost four times as much on loopback."""

# Types as plain integers, because enum members cost a lookup.
KEEPALIVE = int(FrameType.KEEPALIVE)
REQUEST_RESPONSE = int(FrameType.REQUEST_RESPONSE)
REQUEST_STREAM = int(FrameType.REQUEST_STREAM)
REQUEST_CHANNEL = int(FrameType.REQUEST_CHANNEL)
REQUEST_N = int(FrameType.REQUEST_N)
CANCEL = int(FrameType.CANCEL)
PAYLOAD = int(FrameType.PAYLOAD)

# The offsets of a run are allocated for the number of items that its first item suggests, plus these.
SPARE_ITEMS = 16

TYPES = (1 << 6) - 1
GREATEST_63 = (1 << 63) - 1
# KEEPALIVE Frame: the header, and a position, whose top bit is 0.
KEEPALIVE_BYTES = HEADER_BYTES + 8
_KEEPALIVE = Struct(">IHQ").pack


class Codec:
    """Encodes and decodes RSocket 1.0, and checks the range of every field in both directions.

    A codec has no state, so one object serves any number of sessions. A body is a frame without its length
    prefix; methods whose description mentions the prefix return frames for byte streams.

    Args:
        layouts: The frame types of the dialect.
        counts_itself: Whether the length counts itself. The specifications do not allow this for 3-byte lengths,
            but some peers of 2017 do it.

    Attributes:
        prefix_bytes: The size of the length prefix; see :class:`~weirpool.wire.framing.Deframer`.
        header_bytes: The size of the frame header.
        counts_itself: As the argument.

    """

    __slots__ = ("_forgiving", "_layouts", "_own", "counts_itself", "header_bytes", "prefix_bytes")

    def __init__(self, layouts: Mapping[int, Layout] = RSOCKET_V1, counts_itself: bool = False) -> None:
        self.prefix_bytes = 3
        self.header_bytes = HEADER_BYTES
        self.counts_itself = counts_itself
        self._own = 3 if counts_itself else 0
        self._layouts = layouts
        # ReactiveSocket 0.2: frames with malformed metadata are ignored, CANCEL may have metadata, and integers are
        # signed.
        self._forgiving = layouts[PAYLOAD].metadata is Metadata.FORGIVEN

    def decode(self, buffer: bytes, start: int, end: int) -> Frame:
        """Return the frame whose body is ``buffer[start:end]``.

        Raises:
            FrameError: The bytes are not a valid frame. Ignore them if the error is `ignorable`.
            LocalError: The buffer is too short.

        """
        p = buffer
        if not 0 <= start <= end <= len(buffer):
            raise LocalError(f"cannot read a frame from {start} to {end} of {len(buffer)} bytes")
        if end - start < HEADER_BYTES:
            raise FrameError(f"a frame of {end - start} bytes is shorter than its header of {HEADER_BYTES}")
        if p[start] & 0x80:
            # Frame Header Format: this bit is 0.
            raise FrameError("the top bit of the stream id is set")
        word = p[start + 4] << 8 | p[start + 5]
        type = word >> TYPE_SHIFT
        if type < REQUEST_RESPONSE or type > PAYLOAD or (type == CANCEL and word & METADATA and self._forgiving):
            if type == KEEPALIVE and end - start >= KEEPALIVE_BYTES:
                return _keepalive_frame(buffer, start, end, self._forgiving)
            return read_frame(self._layouts, buffer, start, end)
        frame = Frame.__new__(Frame) if type != REQUEST_N else RequestNFrame.__new__(RequestNFrame)
        frame.type = type
        frame.flags = word & FLAGS
        frame.stream_id = p[start] << 24 | p[start + 1] << 16 | p[start + 2] << 8 | p[start + 3]
        frame.metadata_type = 0
        at = start + HEADER_BYTES
        if type == REQUEST_STREAM or type == REQUEST_CHANNEL or type == REQUEST_N:
            if end - at < 4:
                raise _without_request_n(start, at, end, bool(word & IGNORE))
            count = u32(buffer, at)
            if count > GREATEST_31:
                count = count - 0x1_0000_0000 if self._forgiving else count & GREATEST_31
            frame.request_n = count
            at += 4
        else:
            frame.request_n = 0
        if type == REQUEST_N or type == CANCEL:
            # Bytes after their fields are ignored, and so is their METADATA flag.
            frame.metadata = None
            frame.data = b""
            return frame
        if word & METADATA:
            size = _metadata_bytes(p, start, at, end, self._forgiving)
            frame.metadata = p[at + 3 : at + 3 + size]
            at += 3 + size
        else:
            frame.metadata = None
        frame.data = p[at:end]
        return frame

    def stream_id(self, buffer: bytes, start: int) -> int:
        """Return the stream id of the frame whose body starts at index `start` with a complete header.

        Raises:
            LocalError: The buffer is too short.

        """
        if not 0 <= start <= len(buffer) - self.header_bytes:
            raise LocalError(f"cannot read a frame header at index {start} of {len(buffer)} bytes")
        return u32(buffer, start) & GREATEST_31

    def type(self, buffer: bytes, start: int) -> int:
        """Return the type of the frame whose body starts at index `start` with a complete header.

        Raises:
            LocalError: The buffer is too short.

        """
        return u32(buffer, start + 2) >> TYPE_SHIFT & TYPES

    def encode(self, frame: Frame) -> bytes:
        """Return the body of `frame`.

        Raises:
            LocalError: A field is out of range, or the frame's type does not have it.

        """
        if type(frame) is KeepaliveFrame:
            body = _keepalive_body(frame)
            if body is not None:
                return body
        return write_frame(self._layouts, frame)

    def frame(self, frame: Frame) -> bytes:
        """Return `frame` with its prefix.

        Raises:
            LocalError: As `encode`; or the frame is too long for its prefix.

        """
        return prefixed(self.encode(frame), self.prefix_bytes, self.counts_itself)

    def payload_frame(self, stream_id: int, flags: int, metadata: bytes | None, data: bytes) -> bytes:
        """Return a PAYLOAD with its prefix; the flag METADATA is set if there is `metadata`."""
        return pack(stream_id, PAYLOAD << TYPE_SHIFT | flags, -1, metadata, data, self._own)

    def payload_head(self, stream_id: int, flags: int, metadata: bytes | None, data_bytes: int) -> bytes:
        """Return a PAYLOAD with its prefix but without its data, of which `data_bytes` bytes must follow."""
        return pack_head(stream_id, PAYLOAD << TYPE_SHIFT | flags, metadata, data_bytes, self._own)

    def request_frame(
        self, type: int, stream_id: int, flags: int, request_n: int, metadata: bytes | None, data: bytes
    ) -> bytes:
        """Return a request with its prefix; `request_n` is ignored if its type does not have it."""
        if type != REQUEST_STREAM and type != REQUEST_CHANNEL:
            request_n = -1
        elif request_n < 0:
            raise LocalError(f"the initial request-n is {request_n}; it must be at least 1")
        return pack(stream_id, type << TYPE_SHIFT | flags, request_n, metadata, data, self._own)

    def request_n_frame(self, stream_id: int, count: int) -> bytes:
        """Return a REQUEST_N with its prefix."""
        if count < 0:
            raise LocalError(f"request-n is {count}; it must be at least 1")
        return pack(stream_id, REQUEST_N << TYPE_SHIFT, count, None, b"", self._own)

    def cancel_frame(self, stream_id: int) -> bytes:
        """Return a CANCEL with its prefix."""
        return pack(stream_id, CANCEL << TYPE_SHIFT, -1, None, b"", self._own)

    def scan_run(self, deframer: Deframer, limit: int) -> PayloadRun | None:
        """Read consecutive items of one stream at once.

        Call this after the deframer's `next` has returned True for a PAYLOAD. If the frame and at least the next
        one in the buffer are items of the same stream, and neither fragments nor last items, these items are
        returned, at most `limit`; a run may be shorter than possible. The deframer's `next` then continues
        after the run.

        Returns:
            The run; None if there is none. Then the deframer is unchanged, and its frame must be decoded.

        """
        buffer = deframer.buffer
        p = buffer
        size = deframer.size
        at = deframer.start
        end = deframer.end
        # Usually there is no run, because nothing follows, or a frame of another stream.
        if size - end < 3 + HEADER_BYTES or end - at < HEADER_BYTES or size > GREATEST_31 or limit < 2:
            return None
        stream_id = u32(buffer, at)
        if u32(buffer, end + 3) != stream_id or p[end + 7] >> 2 != PAYLOAD or not 0 < stream_id <= GREATEST_31:
            return None
        # The scan does not support lengths that count themselves.
        if self._own:
            return None
        return take_run(deframer, stream_id, min(limit, (size - at) // (end - at + 3) + SPARE_ITEMS))

    def run_frames(self, stream_id: int, run: PayloadRun, start: int, stop: int) -> list[bytes]:
        """Return the items of `run` from `start` to `stop` as PAYLOADs with NEXT and their prefixes.

        Returns:
            Pieces of at most `PIECE_BYTES` with complete frames; a longer frame is a separate piece.

        Raises:
            LocalError: An item is too long for a frame. Call `fits` first, and fragment longer items.

        """
        return pack_run(stream_id, PAYLOAD << TYPE_SHIFT | NEXT, run, start, stop, PIECE_BYTES, self._own)

    def fits(self, run: PayloadRun, start: int, stop: int, max_bytes: int) -> int:
        """Return how many items of `run`, from `start` to at most `stop`, have at most `max_bytes` bytes each."""
        limit = min(stop, len(run))
        if run.sound and run.size <= max_bytes:
            return max(limit - start, 0)
        view = run.offsets
        for at in range(3 * start, 3 * limit, 3):
            first = view[at]
            if first < 0:
                first = view[at + 1]
            if view[at + 2] - first > max_bytes:
                return at // 3 - start
        return max(limit - start, 0)


def _keepalive_frame(buffer: bytes, start: int, end: int, signed: bool) -> KeepaliveFrame:
    """Return the KEEPALIVE whose body is ``buffer[start:end]``, with at least `KEEPALIVE_BYTES`."""
    p = buffer
    frame = KeepaliveFrame.__new__(KeepaliveFrame)
    frame.type = KEEPALIVE
    frame.flags = (p[start + 4] << 8 | p[start + 5]) & FLAGS
    frame.stream_id = u32(buffer, start)
    frame.request_n = 0
    frame.metadata = None
    frame.metadata_type = 0
    at = start + HEADER_BYTES
    high = u32(buffer, at)
    position = (high & GREATEST_31) << 32 | u32(buffer, at + 4)
    # Of 64 bits, the sign counts -2^63.
    frame.position = position - GREATEST_63 - 1 if signed and high > GREATEST_31 else position
    frame.data = p[at + 8 : end]
    return frame


def _keepalive_body(frame: KeepaliveFrame) -> bytes | None:
    """Return the body of a KEEPALIVE; None if the table must find out what is wrong with it."""
    sound = frame.type == KEEPALIVE and frame.stream_id == 0 and frame.position >= 0 and frame.metadata is None
    if not sound or not 0 <= frame.flags <= FLAGS or frame.position > GREATEST_63:
        return None
    return _KEEPALIVE(0, KEEPALIVE << TYPE_SHIFT | frame.flags, frame.position) + frame.data


def _without_request_n(start: int, at: int, end: int, ignorable: bool) -> FrameError:
    return FrameError(f"a frame of {end - start} bytes ends within its request-n", at - start, ignorable=ignorable)


def _metadata_bytes(p: bytes, start: int, at: int, end: int, forgiving: bool) -> int:
    """Return the length in the metadata header at index `at`. Raises FrameError if it runs past the frame."""
    left = end - at - 3
    size = p[at] << 16 | p[at + 1] << 8 | p[at + 2] if left >= 0 else 0
    if size > left:
        # Metadata Optional Header: a length that exceeds the frame is CONNECTION_ERROR, unless IGNORE is set.
        raise FrameError(
            f"metadata of {size} bytes runs past the frame, of which {max(left, 0)} bytes remain",
            at - start,
            ignorable=forgiving or bool(p[start + 4] << 8 & IGNORE),
        )
    return size
