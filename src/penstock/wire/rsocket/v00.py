"""The codec of ReactiveSocket 0.0. Comments name sections of its document.

Frames have the types and flags of RSocket 1.0 where those mean the same: RESPONSE is PAYLOAD, and has NEXT unless
it is nothing but COMPLETE. Nothing here is compiled: peers of that year are few.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...errors import FrameError, LocalError
from ...payload import PayloadRun
from ..codec import PIECE_BYTES, Codec
from ..fields import Reader, check, put
from ..framing import prefixed
from .frames import (
    COMPLETE,
    FOLLOWS,
    IGNORE,
    LEASE,
    METADATA,
    NEXT,
    ErrorFrame,
    ExtFrame,
    Frame,
    FrameType,
    LeaseFrame,
    RequestNFrame,
    SetupFrame,
)
from .layouts import UNKNOWN, Field, Layout, read_body, write_body
from .layouts import Metadata as How

__all__ = ["FOREIGN", "REACTIVESOCKET_V00", "ReactiveSocketV00", "name_of"]

# Frame Header Format: version, flags, 16 bits of type, 64 bits of stream id.
HEADER_BYTES: Final = 12
VERSION: Final = 0
FOREIGN: Final = 0x10000
"""Added to the number of a type that is not in the table, so that it is not taken for one of another dialect."""
ERROR_CODE: Final = 0x201
"""APPLICATION_ERROR: ERROR has no code here, and this one says no more."""

TYPES: Final = {
    # Frame Types. The note on the picture of REQUEST_N, "Frame Type = SETUP", is a slip.
    0x0001: FrameType.SETUP,
    0x0002: FrameType.SETUP_ERROR,
    0x0003: FrameType.LEASE,
    0x0011: FrameType.REQUEST_RESPONSE,
    0x0012: FrameType.REQUEST_FNF,
    0x0013: FrameType.REQUEST_STREAM,
    0x0014: FrameType.REQUEST_SUB,
    0x0015: FrameType.REQUEST_N,
    0x0016: FrameType.CANCEL,
    0x0020: FrameType.PAYLOAD,
    0x0021: FrameType.ERROR,
    0x0031: FrameType.METADATA_PUSH,
    0xFFFF: FrameType.EXT,
}
NUMBERS: Final = {int(type): number for number, type in TYPES.items()}
REQUESTS_N: Final = frozenset({FrameType.REQUEST_STREAM, FrameType.REQUEST_SUB})

FLAGS: Final = ((IGNORE, 0x80), (METADATA, 0x40))
"""Flags of every type: ours, and the bit on the wire."""
TYPE_FLAGS: Final = {
    int(FrameType.SETUP): (*FLAGS, (LEASE, 0x20)),
    int(FrameType.PAYLOAD): (*FLAGS, (FOLLOWS, 0x20), (COMPLETE, 0x10)),
}

_REQUEST_N = (Field("request_n", 64),)
_STREAM = Layout(Frame, _REQUEST_N, How.TYPED, data=True, flags=("metadata",))
_PLAIN = Layout(Frame, (), How.TYPED, data=True, flags=("metadata",))
_BARE = Layout(Frame, (), How.TYPED, flags=("metadata",))

REACTIVESOCKET_V00: Final[Mapping[int, Layout]] = {
    FrameType.SETUP: Layout(
        SetupFrame,
        (Field("metadata_mime", 8, counted=True), Field("data_mime", 8, counted=True)),
        How.TYPED,
        data=True,
        flags=("metadata", "lease"),
    ),
    FrameType.SETUP_ERROR: Layout(ErrorFrame, (Field("code", 32),), How.TYPED, data=True, flags=("metadata",)),
    FrameType.LEASE: Layout(
        LeaseFrame, (Field("ttl_ns", 64), Field("number_of_requests", 64)), How.TYPED, flags=("metadata",)
    ),
    FrameType.REQUEST_RESPONSE: _PLAIN,
    FrameType.REQUEST_FNF: _PLAIN,
    FrameType.REQUEST_STREAM: _STREAM,
    FrameType.REQUEST_SUB: _STREAM,
    FrameType.REQUEST_N: Layout(RequestNFrame, _REQUEST_N, How.TYPED, flags=("metadata",)),
    FrameType.CANCEL: _BARE,
    FrameType.PAYLOAD: Layout(Frame, (), How.TYPED, data=True, flags=("metadata", "follows", "complete")),
    FrameType.ERROR: Layout(ErrorFrame, (), How.TYPED, data=True, flags=("metadata",)),
    FrameType.METADATA_PUSH: _BARE,
    # Extension Frame: the common header with its stream id is kept before the extended type.
    FrameType.EXT: Layout(ExtFrame, (Field("extended_type", 32),), data=True, flags=("metadata",)),
}


def name_of(type: int) -> str:
    """Return the document's name of a frame type, or its number in hex when it has none."""
    if type == FrameType.PAYLOAD:
        return "RESPONSE"
    return FrameType(type).name if type in REACTIVESOCKET_V00 else f"0x{type & ~FOREIGN:04X}"


class ReactiveSocketV00(Codec):
    """ReactiveSocket 0.0 on the wire.

    Stream ids are read as they stand. In what is written the sign of a stream id does not travel: a session
    tells streams by it that the peer opened, because either side may use any number (see
    :class:`penstock.core.streams.StreamTable`).

    Args:
        prefix_bytes: 4 on transports that carry a stream of bytes; 3 where messages are carried, which have no
            prefix of their own and get one like all other messages.

    """

    __slots__ = ()

    def __init__(self, prefix_bytes: int = 4) -> None:
        Codec.__init__(self, prefix_bytes, HEADER_BYTES)

    def decode(self, buffer: bytes, start: int, end: int) -> Frame:
        """Return the frame whose body is ``buffer[start:end]``; see :meth:`Codec.decode`."""
        if not 0 <= start <= end <= len(buffer):
            raise LocalError(f"a frame from {start} to {end} was asked of {len(buffer)} bytes")
        if end - start < HEADER_BYTES:
            raise FrameError(f"a frame of {end - start} bytes is shorter than its header of {HEADER_BYTES}")
        if buffer[start] != VERSION:
            raise FrameError(f"the header says version {buffer[start]}, and ReactiveSocket 0.0 has {VERSION}")
        stream_id = int.from_bytes(buffer[start + 4 : start + HEADER_BYTES], "big")
        if stream_id >> 63:
            raise FrameError("the top bit of the stream id is set", 4)
        bits = buffer[start + 1]
        ignorable = bool(bits & 0x80)
        number = int.from_bytes(buffer[start + 2 : start + 4], "big")
        type = TYPES.get(number, FOREIGN | number)
        layout = REACTIVESOCKET_V00.get(type, UNKNOWN)
        if layout is UNKNOWN and not ignorable:
            raise FrameError(f"no frame has type 0x{number:04X}", 2)
        frame = layout.new(type)
        frame.stream_id = stream_id
        for flag, bit in TYPE_FLAGS.get(type, FLAGS):
            if bits & bit:
                frame.flags |= flag
        read_body(layout, frame, Reader(buffer, start, start + HEADER_BYTES, end, name_of(type), ignorable))
        return _completed(frame)

    def stream_id(self, buffer: bytes, start: int) -> int:
        """Return the stream id of the frame that starts at index `start`; see :meth:`Codec.stream_id`."""
        if not 0 <= start <= len(buffer) - HEADER_BYTES:
            raise LocalError(f"a frame header at {start} was asked of {len(buffer)} bytes")
        return int.from_bytes(buffer[start + 4 : start + HEADER_BYTES], "big") & (1 << 63) - 1

    def encode(self, frame: Frame) -> bytes:
        """Return the body of `frame`; see :meth:`Codec.encode`."""
        type = frame.type
        name = name_of(type)
        number = NUMBERS.get(type, type & ~FOREIGN)
        if type not in REACTIVESOCKET_V00 and not type & FOREIGN:
            raise LocalError(f"ReactiveSocket 0.0 has no {FrameType(type).name}")
        flags, body = write_body(REACTIVESOCKET_V00.get(type, UNKNOWN), frame, name)
        bits = sum(bit for flag, bit in TYPE_FLAGS.get(type, FLAGS) if flags & flag)
        stream_id = put(abs(frame.stream_id), 63, f"the stream id of {name}")
        return bytes((VERSION, bits)) + put(number, 16, "a frame type") + stream_id + body

    def frame(self, frame: Frame) -> bytes:
        """Return `frame` with its prefix; see :meth:`Codec.frame`."""
        return prefixed(self.encode(frame), self.prefix_bytes)

    def payload_frame(self, stream_id: int, flags: int, metadata: bytes | None, data: bytes) -> bytes:
        """Return a RESPONSE with its prefix; see :meth:`Codec.payload_frame`."""
        return self.frame(Frame(FrameType.PAYLOAD, stream_id, flags, 0, metadata, data))

    def payload_head(self, stream_id: int, flags: int, metadata: bytes | None, data_bytes: int) -> bytes:
        """Return a RESPONSE with its prefix, up to its data; see :meth:`Codec.payload_head`."""
        body = self.encode(Frame(FrameType.PAYLOAD, stream_id, flags, 0, metadata))
        length = len(body) + data_bytes + (4 if self.prefix_bytes == 4 else 0)
        bits = 31 if self.prefix_bytes == 4 else 24
        return check(length, bits, "the length of a frame").to_bytes(self.prefix_bytes, "big") + body

    def request_frame(
        self, type: int, stream_id: int, flags: int, request_n: int, metadata: bytes | None, data: bytes
    ) -> bytes:
        """Return a request with its prefix; see :meth:`Codec.request_frame`."""
        # Requests have no COMPLETE and no FOLLOWS.
        return self.frame(Frame(type, stream_id, 0, request_n if type in REQUESTS_N else 0, metadata, data))

    def request_n_frame(self, stream_id: int, count: int) -> bytes:
        """Return a REQUEST_N with its prefix; see :meth:`Codec.request_n_frame`."""
        return self.frame(RequestNFrame(stream_id, check(count, 63, "request-n")))

    def cancel_frame(self, stream_id: int) -> bytes:
        """Return a CANCEL with its prefix; see :meth:`Codec.cancel_frame`."""
        return self.frame(Frame(FrameType.CANCEL, stream_id))

    def run_frames(self, stream_id: int, run: PayloadRun, start: int, stop: int) -> list[bytes]:
        """Return items as RESPONSEs, glued into pieces; see :meth:`Codec.run_frames`."""
        pieces: list[bytes] = []
        frames: list[bytes] = []
        size = 0
        for payload in run.payloads(start, stop):
            frame = self.payload_frame(stream_id, NEXT, payload.metadata, payload.data)
            if frames and size + len(frame) > PIECE_BYTES:
                pieces.append(b"".join(frames))
                frames, size = [], 0
            frames.append(frame)
            size += len(frame)
        return [*pieces, b"".join(frames)] if frames else pieces


def _completed(frame: Frame) -> Frame:
    """Return `frame` with what its type implies here, and other dialects say."""
    if frame.type == FrameType.PAYLOAD:
        # Response Frame: with the complete bit and an empty body it is no item.
        if not frame.flags & COMPLETE or frame.data or frame.metadata is not None:
            frame.flags |= NEXT
    elif frame.type == FrameType.ERROR and isinstance(frame, ErrorFrame):
        frame.code = ERROR_CODE
    elif isinstance(frame, SetupFrame):
        frame.major = frame.minor = VERSION
    return frame
