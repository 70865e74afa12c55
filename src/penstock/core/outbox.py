"""Output that waits for the link, and how it is cut for the socket."""

from __future__ import annotations

from typing import Final

__all__ = ["BY_REFERENCE_BYTES", "WRITE_BYTES", "Outbox"]

WRITE_BYTES: Final = 60_000
"""One write carries at most this much: 64 KiB cost four times as much on loopback, whose segments end at 65,483."""
BY_REFERENCE_BYTES: Final = 32_768
"""Pieces of this size and more are handed on as they are: copying them costs more than a write of their own."""


class Outbox:
    """Encoded frames in the order in which they are sent.

    Attributes:
        size: How many bytes wait.
        taken: Whether any have been taken.

    """

    __slots__ = ("_pieces", "size", "taken")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self.size = 0
        self.taken = False

    def write(self, piece: bytes) -> None:
        """Append `piece`."""
        self._pieces.append(piece)
        self.size += len(piece)

    def clear(self) -> None:
        """Forget all of it."""
        self._pieces = []
        self.size = 0

    def take(self) -> list[bytes]:
        """Return the output in chunks of at most `WRITE_BYTES`, large pieces by themselves, and forget it."""
        pieces = self._pieces
        if not pieces:
            return pieces
        whole = self.size <= WRITE_BYTES
        self.taken = True
        self._pieces = []
        self.size = 0
        if whole:
            return [b"".join(pieces)] if len(pieces) > 1 else pieces
        return _chunks(pieces)


def _chunks(pieces: list[bytes]) -> list[bytes]:
    """Glue small pieces together, and leave large ones alone."""
    chunks: list[bytes] = []
    first = 0
    size = 0
    for index, piece in enumerate(pieces):
        length = len(piece)
        if size + length > WRITE_BYTES or length >= BY_REFERENCE_BYTES:
            if first < index:
                chunks.append(b"".join(pieces[first:index]))
            first = index
            size = 0
            if length >= BY_REFERENCE_BYTES:
                chunks.append(piece)
                first = index + 1
                continue
        size += length
    if first < len(pieces):
        chunks.append(b"".join(pieces[first:]))
    return chunks
