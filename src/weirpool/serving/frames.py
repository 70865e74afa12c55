"""The frames in which rows of a log travel: a stream of bytes, cut into items of any size.

A frame is a head of 40 bytes, then a body. Its rows come either as they are in a segment, with the checksums that their
writer computed, or encoded again, if only some rows or columns of a batch were asked for. `docs/reference/journal.md`
describes the format for other implementations.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator
from enum import IntEnum
from typing import Final, NamedTuple

import pyarrow as pa
import xxhash

from ..errors import JournalError

__all__ = ["HEAD_BYTES", "PIECE_BYTES", "Assembler", "Form", "Head", "decode_rows", "encode_rows", "pieces"]

_HEAD = struct.Struct("<QQQQB7x")
HEAD_BYTES = _HEAD.size
_CHECKSUM_BYTES = 16
_MAX_BODY_BYTES = 1 << 32
PIECE_BYTES: Final = 65_536
"""The bytes of an item: large enough to be sent without another copy, small enough for a fine credit."""


class Form(IntEnum):
    """The form of a frame's body."""

    STORED = 0
    """Record batch messages as they are in a segment."""
    ROWS = 1
    """An Arrow IPC stream, then its XXH3 of 128 bits."""
    NOTHING = 2
    """No body: no rows exist from the last frame to here, and this is the end of the range."""


class Head(NamedTuple):
    """The head of a frame. Frames are in order, and each begins where the one before it ended."""

    begin: int
    """The position after the previous frame, or the start of the range. Rows from here to `first` do not exist."""
    first: int
    """The position of the first row."""
    end: int
    """The position after the last row."""
    size: int
    """The bytes of the body."""
    form: int
    """The form of the body."""

    def encode(self) -> bytes:
        """Return its bytes."""
        return _HEAD.pack(*self)


def encode_rows(batch: pa.RecordBatch) -> pa.Buffer:
    """Return the body of a frame with these rows: `Form.ROWS`."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    content = sink.getvalue()
    return pa.py_buffer(content.to_pybytes() + xxhash.xxh3_128_digest(content))


def decode_rows(body: pa.Buffer) -> pa.RecordBatch:
    """Return the rows of a body in `Form.ROWS`; ValueError if it was damaged, or if Arrow could not read it safely."""
    content, checksum = body.slice(0, max(0, body.size - _CHECKSUM_BYTES)), body.slice(max(0, body.size - 16))
    if xxhash.xxh3_128_digest(content) != checksum.to_pybytes():
        raise ValueError("its checksum does not match")
    try:
        with pa.ipc.open_stream(content) as stream:
            batch = stream.read_next_batch()
        batch.validate(full=True)
    except (pa.ArrowException, OSError, StopIteration) as error:
        raise ValueError(f"Arrow cannot read it: {error}") from None
    return batch


def pieces(content: pa.Buffer) -> pa.RecordBatch:
    """Return bytes as items to send, without copying them."""
    ends = array("i", range(0, content.size, PIECE_BYTES))
    ends.append(content.size)
    data = pa.Array.from_buffers(pa.binary(), len(ends) - 1, [None, pa.py_buffer(ends), content])
    return pa.RecordBatch.from_arrays([data], ["data"])


class Assembler:
    """Puts the frames of a range together again."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._body: pa.Buffer | None = None
        self._filled = 0
        self._current: Head | None = None

    @property
    def missing(self) -> int:
        """The bytes that the current frame still lacks; of its head, if that is not complete."""
        return HEAD_BYTES - len(self._head) if self._current is None else self._current.size - self._filled

    def feed(self, content: memoryview) -> Iterator[tuple[Head, pa.Buffer]]:
        """Take the next bytes, and yield the frames that are complete; `JournalError` if these are no frames."""
        at = 0
        while at < len(content):
            if self._current is None:
                taken = content[at : at + self.missing]
                self._head += taken
                at += len(taken)
                if len(self._head) == HEAD_BYTES:
                    self._begin()
            else:
                assert self._body is not None
                taken = content[at : at + self.missing]
                memoryview(self._body).cast("B")[self._filled : self._filled + len(taken)] = taken
                self._filled += len(taken)
                at += len(taken)
            if self._current is not None and not self.missing:
                yield self._take()

    def _begin(self) -> None:
        head = Head(*_HEAD.unpack(self._head))
        if not head.begin <= head.first <= head.end or head.size > _MAX_BODY_BYTES or head.form not in list(Form):
            raise JournalError(f"the collector has sent what is not a frame of a journal ({head}); update Weirpool")
        self._current = head
        self._body = pa.allocate_buffer(head.size)
        self._filled = 0
        self._head.clear()

    def _take(self) -> tuple[Head, pa.Buffer]:
        head, body = self._current, self._body
        assert head is not None and body is not None
        self._current = self._body = None
        return head, body
