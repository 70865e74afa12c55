"""Whole frames, with their 24-bit length, straight into the bytes that travel: the hot half of encoding.

RSocket 1.0 and ReactiveSocket 0.2 share this layout. `packing.pyx` is the same with raw pointers, one
allocation a frame; a property test holds the two equal.

In all functions `kind` is the header's 16 bits behind the stream id: frame type and flags. Its METADATA flag
makes no difference: the frame's is set when there is metadata.
"""

from __future__ import annotations

from struct import Struct

from ...errors import LocalError
from ...payload import PayloadRun
from ..fields import GREATEST_31
from ..framing import MAX_FRAME_BYTES
from .frames import HEADER, METADATA

__all__ = ["pack", "pack_head", "pack_run"]

# RSocket 1.0, Framing Format, Frame Header Format, Metadata Optional Header, REQUEST_N.
_HEADER = Struct(">BHIH").pack
_HEADER_N = Struct(">BHIHI").pack


def pack(stream_id: int, kind: int, request_n: int, metadata: bytes | None, data: bytes) -> bytes:
    """Return a frame: header, `request_n` unless it is -1, metadata unless it is None, data.

    Raises:
        LocalError: It is longer than a frame can be, or a number has more than 31 bits.

    """
    return _head(stream_id, kind, request_n, metadata, len(data)) + data


def pack_head(stream_id: int, kind: int, metadata: bytes | None, data_bytes: int) -> bytes:
    """Return a frame up to its data, of which `data_bytes` bytes follow.

    Raises:
        LocalError: The frame is longer than a frame can be, or `stream_id` has more than 31 bits.

    """
    return _head(stream_id, kind, -1, metadata, data_bytes)


def _head(stream_id: int, kind: int, request_n: int, metadata: bytes | None, data_bytes: int) -> bytes:
    """Return a frame up to its data."""
    length = HEADER + data_bytes
    kind &= ~METADATA
    if request_n >= 0:
        length += 4
    if metadata is not None:
        length += 3 + len(metadata)
        kind |= METADATA
    _check(stream_id, request_n, data_bytes, length)
    if request_n < 0:
        head = _HEADER(length >> 16, length & 0xFFFF, stream_id, kind)
    else:
        head = _HEADER_N(length >> 16, length & 0xFFFF, stream_id, kind, request_n)
    return head if metadata is None else head + len(metadata).to_bytes(3, "big") + metadata


def _check(stream_id: int, request_n: int, data_bytes: int, length: int) -> None:
    """Refuse what the fields cannot hold."""
    if not 0 <= stream_id <= GREATEST_31:
        raise LocalError(f"stream id {stream_id} does not fit 31 bits")
    if not -1 <= request_n <= GREATEST_31:
        raise LocalError(f"request-n {request_n} does not fit 31 bits")
    if not 0 <= data_bytes <= MAX_FRAME_BYTES or length > MAX_FRAME_BYTES:
        raise LocalError(f"a frame of {length} bytes is longer than its 24-bit length can say; fragment the payload")


def pack_run(stream_id: int, kind: int, run: PayloadRun, start: int, stop: int, most: int) -> list[bytes]:
    """Return a frame for each item of `run` from index `start` to `stop`, glued into pieces.

    Args:
        stream_id: The stream.
        kind: PAYLOAD, and flags.
        run: The items.
        start: The first one.
        stop: The one behind the last one.
        most: Bytes of a piece; a single frame that is longer stands alone.

    Raises:
        LocalError: An item does not fit a frame, or lies outside the run.

    """
    pieces: list[bytes] = []
    frames: list[bytes] = []
    size = 0
    for payload in run.payloads(start, stop):
        frame = pack(stream_id, kind, -1, payload.metadata, payload.data)
        if size + len(frame) > most and frames:
            pieces.append(b"".join(frames))
            frames = []
            size = 0
        frames.append(frame)
        size += len(frame)
    if frames:
        pieces.append(b"".join(frames))
    return pieces
