"""Digests of consecutive items, in blocks of equal numbers of items.

Both sides of a stream compute the same digest of the same block, however its items were batched. A block's digest is
the XXH3 of 128 bits of four others: those of all data in a row, of all metadata in a row, and of the lengths of both,
as signed 32-bit little-endian numbers. The length of missing metadata is -1.
"""

from __future__ import annotations

import sys
from array import array
from collections import deque
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import xxhash

__all__ = ["BLOCK_ITEMS", "Digests", "digest_of"]

BLOCK_ITEMS: Final = 4_096
"""Items of a block: a second of a busy stream, and a thousandth of a percent of it in digests."""
KEPT_BLOCKS: Final = 4_096
"""Digests that are kept for a stream: those of its last sixteen million items, in 64 KiB."""


class _Block:
    """The running digest of the items of one block."""

    __slots__ = ("count", "data", "data_lengths", "metadata", "metadata_lengths")

    def __init__(self) -> None:
        self.count = 0
        self.data = xxhash.xxh3_128()
        self.metadata = xxhash.xxh3_128()
        self.data_lengths = xxhash.xxh3_128()
        self.metadata_lengths = xxhash.xxh3_128()

    def digest(self) -> bytes:
        """Return the digest of the items so far."""
        parts = (self.data, self.metadata, self.data_lengths, self.metadata_lengths)
        return bytes(xxhash.xxh3_128_digest(b"".join(part.digest() for part in parts)))


class Digests:
    """The digests of a stream's items, in the order of the items.

    Attributes:
        count: The items that were added.
        first: The number of the first block whose digest is kept.

    """

    __slots__ = ("_block", "_kept", "count", "first")

    def __init__(self) -> None:
        self._block = _Block()
        self._kept: deque[bytes] = deque()
        self.count = 0
        self.first = 0

    @property
    def blocks(self) -> list[bytes]:
        """The digests of complete blocks, from number `first` on."""
        return list(self._kept)

    @property
    def rest(self) -> bytes:
        """The digest of the items after the last complete block."""
        return self._block.digest()

    def add(self, data: pa.Array, metadata: pa.Array) -> None:
        """Add items as two binary columns; only metadata may contain nulls."""
        at = 0
        while at < len(data):
            block = self._block
            part = data.slice(at, BLOCK_ITEMS - block.count)
            _update(block.data, block.data_lengths, part)
            _update(block.metadata, block.metadata_lengths, metadata.slice(at, len(part)))
            self._advance(len(part))
            at += len(part)

    def _advance(self, items: int) -> None:
        self.count += items
        self._block.count += items
        if self._block.count == BLOCK_ITEMS:
            if len(self._kept) == KEPT_BLOCKS:
                self._kept.popleft()
                self.first += 1
            self._kept.append(self._block.digest())
            self._block = _Block()


def digest_of(data: pa.ChunkedArray | pa.Array, metadata: pa.ChunkedArray | pa.Array) -> bytes:
    """Return the digest of some items, at most a block, as columns."""
    block = _Block()
    for column, content, lengths in (
        (data, block.data, block.data_lengths),
        (metadata, block.metadata, block.metadata_lengths),
    ):
        for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
            _update(content, lengths, chunk)
    return block.digest()


def _update(content: Any, lengths: Any, column: pa.Array) -> None:
    """Add a binary column to the digests of content and lengths."""
    # The bytes of a null are undefined.
    present = column.drop_null() if column.null_count else column
    _, offsets, octets = present.buffers()
    if len(present) and octets is not None:
        view = memoryview(offsets).cast("i")
        content.update(memoryview(octets)[view[present.offset] : view[present.offset + len(present)]])
    sizes = pc.fill_null(pc.binary_length(column), -1)
    numbers = array("i", memoryview(sizes.buffers()[1]).cast("i")[sizes.offset : sizes.offset + len(sizes)])
    lengths.update(_numbers(numbers))


def _numbers(lengths: array[int]) -> array[int]:
    """Return numbers as they are hashed: little-endian."""
    if sys.byteorder == "big":
        lengths.byteswap()
    return lengths
