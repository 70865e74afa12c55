"""The hot path of the codec: encodes frames with their 24-bit length, and reads runs from a buffer.

RSocket 1.0 and ReactiveSocket 0.2 share this layout. `packing.pyx` does the same with raw pointers and one
allocation for each frame; a property test compares the two.

In all functions `kind` is the 16 bits after the stream id: frame type and flags. Its METADATA flag is ignored; it is
set in the frame if there is metadata. `own` is added to the size of the frame in the length: 3 if the length counts
itself.
"""

from __future__ import annotations

from array import array
from struct import Struct

from ...errors import LocalError
from ...payload import PayloadRun
from ..fields import GREATEST_31
from ..framing import MAX_FRAME_BYTES, Deframer
from .frames import COMPLETE, FOLLOWS, HEADER_BYTES, METADATA, NEXT, FrameType

__all__ = ["pack", "pack_head", "pack_run", "take_run"]

PAYLOAD = int(FrameType.PAYLOAD)

# RSocket 1.0, Framing Format, Frame Header Format, Metadata Optional Header, REQUEST_N.
_HEADER = Struct(">BHIH").pack
_HEADER_N = Struct(">BHIHI").pack


def pack(stream_id: int, kind: int, request_n: int, metadata: bytes | None, data: bytes, own: int) -> bytes:
    """Return a frame: header, `request_n` unless it is -1, metadata unless it is None, data.

    Raises:
        LocalError: The frame is too long, or a number has more than 31 bits.

    """
    return _head(stream_id, kind, request_n, metadata, len(data), own) + data


def pack_head(stream_id: int, kind: int, metadata: bytes | None, data_bytes: int, own: int) -> bytes:
    """Return a frame without its data, of which `data_bytes` bytes follow.

    Raises:
        LocalError: The frame is too long, or `stream_id` has more than 31 bits.

    """
    return _head(stream_id, kind, -1, metadata, data_bytes, own)


def _head(stream_id: int, kind: int, request_n: int, metadata: bytes | None, data_bytes: int, own: int) -> bytes:
    """Return a frame without its data."""
    length = HEADER_BYTES + data_bytes + own
    kind &= ~METADATA
    if request_n >= 0:
        length += 4
    if metadata is not None:
        length += 3 + len(metadata)
        kind |= METADATA
    if not (
        0 <= stream_id <= GREATEST_31
        and -1 <= request_n <= GREATEST_31
        and 0 <= data_bytes <= length <= MAX_FRAME_BYTES
    ):
        raise _refusal(stream_id, request_n, length)
    if request_n < 0:
        head = _HEADER(length >> 16, length & 0xFFFF, stream_id, kind)
    else:
        head = _HEADER_N(length >> 16, length & 0xFFFF, stream_id, kind, request_n)
    return head if metadata is None else head + len(metadata).to_bytes(3, "big") + metadata


def _refusal(stream_id: int, request_n: int, length: int) -> LocalError:
    """Return an error that names the value that is out of range."""
    if not 0 <= stream_id <= GREATEST_31:
        return LocalError(f"stream id {stream_id} does not fit into 31 bits")
    if not -1 <= request_n <= GREATEST_31:
        return LocalError(f"request-n {request_n} does not fit into 31 bits")
    return LocalError(f"a frame of {length} bytes is too long for a 24-bit length; fragment the payload")


def pack_run(stream_id: int, kind: int, run: PayloadRun, start: int, stop: int, limit: int, own: int) -> list[bytes]:
    """Return a frame for each item of `run` from index `start` to `stop`, joined into pieces.

    Args:
        stream_id: The stream.
        kind: PAYLOAD, and flags.
        run: The items.
        start: The index of the first item.
        stop: The index after the last item.
        limit: The maximum size of a piece; a longer frame is a separate piece.
        own: See above.

    Raises:
        LocalError: An item is too long for a frame, or not in the run.

    """
    pieces: list[bytes] = []
    frames: list[bytes] = []
    size = 0
    for payload in run.payloads(start, stop):
        frame = pack(stream_id, kind, -1, payload.metadata, payload.data, own)
        if size + len(frame) > limit and frames:
            pieces.append(b"".join(frames))
            frames = []
            size = 0
        frames.append(frame)
        size += len(frame)
    if frames:
        pieces.append(b"".join(frames))
    return pieces


def take_run(deframer: Deframer, stream_id: int, limit: int) -> PayloadRun | None:
    """Read at most `limit` items of a stream from the deframer; None if there are fewer than two.

    Args:
        deframer: A deframer whose current frame has a complete header.
        stream_id: The stream, 1 to 2^31-1.
        limit: The maximum number of items.

    """
    buffer = deframer.buffer
    size = deframer.size
    at, end = deframer.start, deframer.end
    offsets = array("i")
    carried = 0
    taken = at, end
    while len(offsets) < 3 * limit:
        # The header is complete: the caller has checked the first frame, and the end of this loop checks the others.
        if int.from_bytes(buffer[at : at + 4], "big") != stream_id:
            break
        middle = _item_data(buffer, at, end)
        if middle < 0:
            break
        first = at + HEADER_BYTES + 3 if buffer[at + 4] & 1 else -1
        offsets.extend((first, middle, end))
        carried += end - middle if first < 0 else end - first
        taken = at, end
        if size - end < 3 + HEADER_BYTES:
            break
        length = int.from_bytes(buffer[end : end + 3], "big")
        if length < HEADER_BYTES or length > deframer.max_frame_bytes or length > size - end - 3:
            break
        at = end + 3
        end = at + length
    if len(offsets) < 6:
        return None
    deframer.start, deframer.end = taken
    run = PayloadRun(buffer, offsets, carried)
    run.sound = True
    return run


def _item_data(buffer: bytes, at: int, end: int) -> int:
    """Return the start of the data if ``buffer[at:end]``, at least a header, is the body of a whole item; else -1."""
    word = buffer[at + 4] << 8 | buffer[at + 5]
    if word >> 10 != PAYLOAD or word & (NEXT | COMPLETE | FOLLOWS) != NEXT:
        return -1
    middle = at + HEADER_BYTES
    if word & METADATA:
        if end - middle < 3:
            return -1
        middle += 3 + int.from_bytes(buffer[middle : middle + 3], "big")
        # `decode` reports metadata that runs past the frame.
        if middle > end:
            return -1
    return middle
