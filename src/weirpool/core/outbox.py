"""Output that waits for the link, divided into chunks for the socket."""

from __future__ import annotations

from typing import Final

from ..errors import LocalError

__all__ = ["BY_REFERENCE_BYTES", "WRITE_BYTES", "Outbox", "too_large"]

WRITE_BYTES: Final = 60_000
"""Maximum size of one write. 64 KiB cost four times as much on loopback, whose segments have 65,483 bytes."""
BY_REFERENCE_BYTES: Final = 32_768
"""Pieces of at least this size are not copied: copying costs more than a separate write."""


def too_large(what: str, size: int, setting: str, limit: int) -> LocalError:
    """Return the error for an item or a request that is not sent, because of a setting."""
    return LocalError(f"{what} of {size} bytes exceeds {setting} ({limit}); send less at once")


class Outbox:
    """Encoded frames in the order in which they are sent.

    Attributes:
        size: The number of bytes that wait.
        taken: Whether any output has been taken.

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
        """Discard all output."""
        self._pieces = []
        self.size = 0

    def take(self) -> list[bytes]:
        """Remove and return the output, in chunks of at most `WRITE_BYTES`; large pieces are separate chunks."""
        pieces = self._pieces
        if not pieces:
            return pieces
        single_write = self.size <= WRITE_BYTES
        self.taken = True
        self._pieces = []
        self.size = 0
        if single_write:
            return [b"".join(pieces)] if len(pieces) > 1 else pieces
        return _chunks(pieces)


def _chunks(pieces: list[bytes]) -> list[bytes]:
    """Join small pieces; keep large ones as they are."""
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
