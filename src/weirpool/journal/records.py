"""Redo records: batches as they were written to segments, to be written again after a power cut.

A frame has the records that became durable together. Its header is `_FRAME`: a magic number, the frame's number, the
bytes of the rest, and their XXH3, seeded with the number. Each record in it has a header, `_RECORD`: the log's UUID,
the segment's first position, the offset there, and the number of bytes that follow.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import xxhash

__all__ = ["FRAME_BYTES", "FrameBuffer", "Record", "decode", "frames"]

_FRAME = struct.Struct("<8sQQQ")
_RECORD = struct.Struct("<36sQQQ")
_MAGIC = b"weirpool"
FRAME_BYTES = _FRAME.size


class Record(NamedTuple):
    """Bytes of a segment."""

    uuid: str
    """The log's."""
    segment: int
    """The position of the segment's first row."""
    offset: int
    """Where the bytes are in the segment."""
    chunks: Sequence[bytes | memoryview]

    @property
    def size(self) -> int:
        """The number of bytes."""
        return sum(len(chunk) for chunk in self.chunks)


class FrameBuffer:
    """Memory in which frames are encoded, one at a time: new memory for each would cost more than filling it."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def encode(self, number: int, records: Sequence[Record]) -> memoryview:
        """Return the frame with this number and these records, which is valid until the next call."""
        size = FRAME_BYTES + sum(_RECORD.size + record.size for record in records)
        if len(self._buffer) < size:
            self._buffer = bytearray(size)
        frame, at = memoryview(self._buffer)[:size], FRAME_BYTES
        for record in records:
            _RECORD.pack_into(frame, at, record.uuid.encode(), record.segment, record.offset, record.size)
            at += _RECORD.size
            for chunk in record.chunks:
                end = at + len(chunk)
                # The buffers of Arrow have another format than those of Python.
                frame[at:end] = memoryview(chunk).cast("B")
                at = end
        content = frame[FRAME_BYTES:]
        _FRAME.pack_into(frame, 0, _MAGIC, number, len(content), xxhash.xxh3_64_intdigest(content, number))
        return frame


def frames(data: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Yield number and content of the frames in a redo file.

    They end where the number is not the next one: what follows is torn, or is left of an earlier use of the file.
    """
    at, expected = 0, None
    while len(data) - at >= FRAME_BYTES:
        magic, number, size, checksum = _FRAME.unpack_from(data, at)
        content = data[at + FRAME_BYTES : at + FRAME_BYTES + size]
        if magic != _MAGIC or len(content) != size or expected not in (None, number):
            return
        if xxhash.xxh3_64_intdigest(content, number) != checksum:
            return
        yield number, content
        at, expected = at + FRAME_BYTES + size, number + 1


def decode(content: memoryview) -> Iterator[Record]:
    """Yield the records in the content of a valid frame."""
    at = 0
    while at < len(content):
        uuid, segment, offset, size = _RECORD.unpack_from(content, at)
        at += _RECORD.size
        yield Record(uuid.decode(), segment, offset, [content[at : at + size]])
        at += size
