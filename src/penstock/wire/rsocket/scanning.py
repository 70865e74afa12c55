"""Runs in a buffer: consecutive items of one stream, found without an object for each.

`scanning.pyx` is the same for the compiled build. A property test holds the two equal.
"""

from __future__ import annotations

from array import array

from ...payload import PayloadRun
from ..framing import Deframer
from .frames import COMPLETE, FOLLOWS, HEADER, METADATA, NEXT, FrameType

__all__ = ["scan"]

PAYLOAD = int(FrameType.PAYLOAD)


def scan(deframer: Deframer, stream_id: int, room: int) -> PayloadRun | None:
    """Take at most `room` items of a stream from the deframer, or none if there are not two.

    Args:
        deframer: It stands at a frame that has a whole header.
        stream_id: The stream, 1 to 2^31-1.
        room: How many items are taken at most.

    """
    buffer = deframer.buffer
    size = deframer.size
    at, end = deframer.start, deframer.end
    offsets = array("i")
    carried = 0
    taken = at, end
    while len(offsets) < 3 * room:
        # All of a header is there: of the first frame the caller has seen to it, of the others the end of this loop.
        if int.from_bytes(buffer[at : at + 4], "big") != stream_id:
            break
        middle = _item_data(buffer, at, end)
        if middle < 0:
            break
        first = at + HEADER + 3 if buffer[at + 4] & 1 else -1
        offsets.extend((first, middle, end))
        carried += end - middle if first < 0 else end - first
        taken = at, end
        if size - end < 3 + HEADER:
            break
        length = int.from_bytes(buffer[end : end + 3], "big")
        if length < HEADER or length > deframer.max_frame_bytes or length > size - end - 3:
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
    """Return where the data of a whole item starts whose body, at least a header, is ``buffer[at:end]``; else -1."""
    word = buffer[at + 4] << 8 | buffer[at + 5]
    if word >> 10 != PAYLOAD or word & (NEXT | COMPLETE | FOLLOWS) != NEXT:
        return -1
    middle = at + HEADER
    if word & METADATA:
        if end - middle < 3:
            return -1
        middle += 3 + int.from_bytes(buffer[middle : middle + 3], "big")
        # Metadata that runs past the frame is for `decode` to judge.
        if middle > end:
            return -1
    return middle
