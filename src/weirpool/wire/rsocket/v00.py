"""The codec of ReactiveSocket 0.0. Comments name sections of its specification.

Decoded frames have the types and flags of RSocket 1.0 with the same meaning: RESPONSE is PAYLOAD, with NEXT unless
it has only COMPLETE. There is a fast path for the frequent types. It leaves unusual frames to the table of layouts.
"""

from __future__ import annotations

from array import array

from ...errors import FrameError, LocalError
from ...payload import PayloadRun
from ..fields import GREATEST_31, check, u32
from ..framing import Deframer
from .codec import PIECE_BYTES, Codec
from .frames import COMPLETE, NEXT, Frame, FrameType, RequestNFrame
from .v00_layouts import (
    FOREIGN,
    HEADER_BYTES,
    NUMBERS,
    REACTIVESOCKET_V00,
    TYPES,
    VERSION,
    name_of,
    read_frame,
    write_frame,
)

__all__ = ["FOREIGN", "REACTIVESOCKET_V00", "ReactiveSocketV00", "name_of"]

METADATA_BYTES = 4
"""Metadata Optional Header: a byte for the application, and a length that counts these four bytes."""

# The frequent types as plain integers: those of `frames`, then (N_) those on the wire.
REQUEST_RESPONSE = int(FrameType.REQUEST_RESPONSE)
REQUEST_SUB = int(FrameType.REQUEST_SUB)
PAYLOAD = int(FrameType.PAYLOAD)
N_REQUEST_RESPONSE = NUMBERS[REQUEST_RESPONSE]
N_REQUEST_STREAM = NUMBERS[FrameType.REQUEST_STREAM]
N_REQUEST_SUB = NUMBERS[REQUEST_SUB]
N_REQUEST_N = NUMBERS[FrameType.REQUEST_N]
N_CANCEL = NUMBERS[FrameType.CANCEL]
N_RESPONSE = NUMBERS[PAYLOAD]
# Header bits of all types, and of RESPONSE. The flag in RSocket 1.0 is the bit shifted by two to the left.
IGNORE_BIT = 0x80
METADATA_BIT = 0x40
FOLLOWS_BIT = 0x20
COMPLETE_BIT = 0x10
FLAG_SHIFT = 2
GREATEST_64 = (1 << 64) - 1
# As in `codec`.
SPARE_ITEMS = 16


class ReactiveSocketV00(Codec):
    """Encodes and decodes ReactiveSocket 0.0.

    Stream ids have 64 bits without a sign, so decoded ones are not negative. The sign of an argument `stream_id` is not
    encoded: sessions use negative ids for streams that the peer opened, because both sides may use the same ids (see
    :class:`weirpool.core.streams.StreamTable`).

    Args:
        prefix_bytes: 4 on byte streams; 3 on message transports, which add a prefix of that size to the messages of
            all dialects.

    """

    __slots__ = ()

    def __init__(self, prefix_bytes: int = 4) -> None:
        Codec.__init__(self, REACTIVESOCKET_V00)
        self.prefix_bytes = prefix_bytes
        self.header_bytes = HEADER_BYTES

    def decode(self, buffer: bytes, start: int, end: int) -> Frame:
        """Return the frame whose body is ``buffer[start:end]``; see :meth:`Codec.decode`."""
        if not 0 <= start <= end <= len(buffer):
            raise LocalError(f"cannot read a frame from {start} to {end} of {len(buffer)} bytes")
        if end - start < HEADER_BYTES:
            raise FrameError(f"a frame of {end - start} bytes is shorter than its header of {HEADER_BYTES}")
        p = buffer
        number = p[start + 2] << 8 | p[start + 3]
        if p[start] == VERSION and (N_REQUEST_RESPONSE <= number <= N_CANCEL or number == N_RESPONSE):
            frame = _frequent(p, start, end, number)
            if frame is not None:
                return frame
        return read_frame(buffer, start, end)

    def stream_id(self, buffer: bytes, start: int) -> int:
        """Return the stream id of the frame that starts at index `start`; see :meth:`Codec.stream_id`."""
        if not 0 <= start <= len(buffer) - HEADER_BYTES:
            raise LocalError(f"cannot read a frame header at index {start} of {len(buffer)} bytes")
        p = buffer
        return _long(p, start + 4)

    def type(self, buffer: bytes, start: int) -> int:
        """Return the type of the frame that starts at index `start`; see :meth:`Codec.type`."""
        number = u32(buffer, start) & 0xFFFF
        return TYPES.get(number, FOREIGN | number)

    def encode(self, frame: Frame) -> bytes:
        """Return the body of `frame`; see :meth:`Codec.encode`."""
        return write_frame(frame)

    def payload_frame(self, stream_id: int, flags: int, metadata: bytes | None, data: bytes) -> bytes:
        """Return a RESPONSE with its prefix; see :meth:`Codec.payload_frame`."""
        return _head(self.prefix_bytes, N_RESPONSE, flags, stream_id, -1, metadata, len(data)) + data

    def payload_head(self, stream_id: int, flags: int, metadata: bytes | None, data_bytes: int) -> bytes:
        """Return a RESPONSE with its prefix but without its data; see :meth:`Codec.payload_head`."""
        return _head(self.prefix_bytes, N_RESPONSE, flags, stream_id, -1, metadata, data_bytes)

    def request_frame(
        self, type: int, stream_id: int, flags: int, request_n: int, metadata: bytes | None, data: bytes
    ) -> bytes:
        """Return a request with its prefix; see :meth:`Codec.request_frame`."""
        number = N_REQUEST_SUB if type == REQUEST_SUB else type - REQUEST_RESPONSE + N_REQUEST_RESPONSE
        if not N_REQUEST_RESPONSE <= number <= N_REQUEST_STREAM and type != REQUEST_SUB:
            raise LocalError(f"ReactiveSocket 0.0 does not have requests of type {name_of(type)}")
        if number < N_REQUEST_STREAM:
            request_n = -1
        elif request_n < 0:
            raise LocalError(f"the initial request-n is {request_n}; it must be at least 1")
        # Requests have neither COMPLETE nor FOLLOWS.
        head = _head(self.prefix_bytes, number, 0, stream_id, request_n, metadata, len(data))
        return head + data

    def request_n_frame(self, stream_id: int, count: int) -> bytes:
        """Return a REQUEST_N with its prefix; see :meth:`Codec.request_n_frame`."""
        if count < 0:
            raise LocalError(f"request-n is {count}; it must be at least 1")
        return _head(self.prefix_bytes, N_REQUEST_N, 0, stream_id, count, None, 0)

    def cancel_frame(self, stream_id: int) -> bytes:
        """Return a CANCEL with its prefix; see :meth:`Codec.cancel_frame`."""
        return _head(self.prefix_bytes, N_CANCEL, 0, stream_id, -1, None, 0)

    def scan_run(self, deframer: Deframer, limit: int) -> PayloadRun | None:
        """Read consecutive items of one stream at once; see :meth:`Codec.scan_run`."""
        p = deframer.buffer
        size = deframer.size
        at = deframer.start
        end = deframer.end
        following = end + self.prefix_bytes
        # Usually there is no run, because nothing follows, or a frame of another stream.
        if size - following < HEADER_BYTES or end - at < HEADER_BYTES or size > GREATEST_31 or limit < 2:
            return None
        if not _same_stream(p, at, following) or _word(p, at + 4) | _word(p, at + 8) == 0:
            return None
        return _scan(deframer, min(limit, (size - at) // (following - at) + SPARE_ITEMS))

    def run_frames(self, stream_id: int, run: PayloadRun, start: int, stop: int) -> list[bytes]:
        """Return items as RESPONSEs, joined into pieces; see :meth:`Codec.run_frames`."""
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


def _head(
    prefix: int, number: int, flags: int, stream_id: int, request_n: int, metadata: bytes | None, data_bytes: int
) -> bytes:
    """Return a frame without its data, of which `data_bytes` bytes follow. Raises LocalError if a value is too large.

    `number` is the type on the wire; `request_n` is -1 if the type has none. METADATA is set if there is metadata.
    """
    bits = flags >> FLAG_SHIFT & (IGNORE_BIT | FOLLOWS_BIT | COMPLETE_BIT)
    if stream_id < 0:
        stream_id = -stream_id
    metadata_bytes = 0 if metadata is None else METADATA_BYTES + len(metadata)
    at = prefix + HEADER_BYTES + (8 if request_n >= 0 else 0)
    # Framing Format: a length of 4 bytes counts itself, and its top bit is reserved.
    length = at + metadata_bytes + data_bytes - (0 if prefix == 4 else prefix)
    if stream_id > GREATEST_64 or data_bytes < 0 or length >> (8 * prefix - prefix // 4) or metadata_bytes >> 24:
        _refuse(prefix, stream_id, length, metadata_bytes)
    head = bytearray(at + (0 if metadata is None else METADATA_BYTES))
    q = head
    q[0] = length >> 8 * prefix - 8 & 0xFF
    q[prefix - 3] = length >> 16 & 0xFF
    q[prefix - 2] = length >> 8 & 0xFF
    q[prefix - 1] = length & 0xFF
    q[prefix + 1] = bits if metadata is None else bits | METADATA_BIT
    q[prefix + 3] = number
    _put(q, prefix + 4, stream_id)
    if request_n >= 0:
        _put(q, prefix + HEADER_BYTES, request_n)
    if metadata is None:
        return bytes(q[:at])
    q[at + 1] = metadata_bytes >> 16
    q[at + 2] = metadata_bytes >> 8 & 0xFF
    q[at + 3] = metadata_bytes & 0xFF
    return bytes(q[: at + METADATA_BYTES]) + metadata


def _put(q: bytearray, at: int, value: int) -> None:
    """Write 64 bits to index `at`."""
    for shift in range(8):
        q[at + 7 - shift] = value >> 8 * shift & 0xFF


def _refuse(prefix: int, stream_id: int, length: int, metadata_bytes: int) -> None:
    """Raise a LocalError that names the field whose value is out of range."""
    check(stream_id, 64, "a stream id")
    check(metadata_bytes, 24, "the length of a frame's metadata")
    check(length, 31 if prefix == 4 else 24, "the length of a frame")
    raise LocalError("the size of a frame's data must not be negative")


def _word(p: bytes, at: int) -> int:
    """Return the 32-bit integer at index `at`. The caller has checked the length."""
    high = p[at]
    return high << 24 | p[at + 1] << 16 | p[at + 2] << 8 | p[at + 3]


def _long(p: bytes, at: int) -> int:
    """Return the 64-bit integer at index `at`. The caller has checked the length."""
    high = _word(p, at)
    return high << 32 | _word(p, at + 4)


def _frequent(p: bytes, start: int, end: int, number: int) -> Frame | None:
    """Return a frame of one of the frequent types, with a complete header; None if `read_frame` must check it."""
    bits = p[start + 1]
    at = start + HEADER_BYTES
    if N_REQUEST_STREAM <= number <= N_REQUEST_N:
        at += 8
    middle = at
    if bits & METADATA_BIT and end >= at + METADATA_BYTES:
        middle += p[at + 1] << 16 | p[at + 2] << 8 | p[at + 3]
    if middle > end or (bits & METADATA_BIT and middle < at + METADATA_BYTES):
        return None
    frame = Frame.__new__(Frame) if number != N_REQUEST_N else RequestNFrame.__new__(RequestNFrame)
    # Frame Types: those up to CANCEL have the order of RSocket 1.0, except for REQUEST_SUB.
    frame.type = REQUEST_RESPONSE + number - N_REQUEST_RESPONSE
    frame.flags = (bits & (IGNORE_BIT | METADATA_BIT)) << FLAG_SHIFT
    frame.stream_id = _long(p, start + 4)
    if at > start + HEADER_BYTES:
        frame.request_n = _long(p, at - 8)
    else:
        frame.request_n = 0
    frame.metadata_type = 0
    if bits & METADATA_BIT:
        frame.metadata_type = p[at]
        frame.metadata = p[at + METADATA_BYTES : middle]
    else:
        frame.metadata = None
    # Trailing bytes after a frame without data are ignored.
    frame.data = b"" if number == N_REQUEST_N or number == N_CANCEL else p[middle:end]
    if number == N_REQUEST_SUB:
        frame.type = REQUEST_SUB
    elif number == N_RESPONSE:
        frame.type = PAYLOAD
        frame.flags |= (bits & (FOLLOWS_BIT | COMPLETE_BIT)) << FLAG_SHIFT
        # Response Frame: an empty body with the complete bit is not an item.
        if not frame.flags & COMPLETE or frame.data or frame.metadata is not None:
            frame.flags |= NEXT
    return frame


def _scan(deframer: Deframer, limit: int) -> PayloadRun | None:
    """Read at most `limit` items of one stream from the deframer; None if there are fewer than two."""
    p = deframer.buffer
    gap = deframer.prefix
    at = first = taken = deframer.start
    end = taken_end = deframer.end
    offsets = array("i", bytes(12 * limit))
    view = offsets
    count = 0
    carried = 0
    while count < limit:
        # The header is complete: the caller has checked the first frame, and the end of this loop checks the others.
        middle = _item_data(p, at, end)
        if middle < 0 or not _same_stream(p, first, at):
            break
        metadata = at + HEADER_BYTES + METADATA_BYTES if p[at + 1] & METADATA_BIT else -1
        view[3 * count] = metadata
        view[3 * count + 1] = middle
        view[3 * count + 2] = end
        count += 1
        carried += end - (middle if metadata < 0 else metadata)
        taken = at
        taken_end = end
        if deframer.size - end < gap + HEADER_BYTES:
            break
        # Frame Header Format: a length of 4 bytes counts itself, and its top bit is reserved.
        length = (_word(p, end) & GREATEST_31) - 4 if gap == 4 else p[end] << 16 | p[end + 1] << 8 | p[end + 2]
        at = end + gap
        if length < HEADER_BYTES or length > deframer.max_frame_bytes or length > deframer.size - at:
            break
        end = at + length
    if count < 2:
        return None
    deframer.start = taken
    deframer.end = taken_end
    run = PayloadRun(deframer.buffer, offsets[: 3 * count], carried)
    run.sound = True
    return run


def _same_stream(p: bytes, at: int, other: int) -> bool:
    """Return whether the headers at `at` and `other` have the same stream id."""
    return _word(p, at + 8) == _word(p, other + 8) and _word(p, at + 4) == _word(p, other + 4)


def _item_data(p: bytes, at: int, end: int) -> int:
    """Return the start of the data if ``p[at:end]``, at least a header, is the body of a complete item; else -1."""
    bits = p[at + 1]
    if p[at] != VERSION or p[at + 2] or p[at + 3] != N_RESPONSE or bits & (FOLLOWS_BIT | COMPLETE_BIT):
        return -1
    middle = at + HEADER_BYTES
    if bits & METADATA_BIT:
        if end - middle < METADATA_BYTES:
            return -1
        length = p[middle + 1] << 16 | p[middle + 2] << 8 | p[middle + 3]
        middle += length
        # `decode` reports an invalid length.
        if length < METADATA_BYTES or middle > end:
            return -1
    return middle
