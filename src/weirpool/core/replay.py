"""Sent output that is kept, by position, until the peer has confirmed it."""

from __future__ import annotations

from collections import deque
from typing import Final

from ..account import Account

__all__ = ["ENTRY_BYTES", "Replay"]

ENTRY_BYTES: Final = 192
"""Memory that an entry takes in addition to its bytes."""
ENTRY_FRAMES: Final = 64
ENTRY_SIZE: Final = 16_384
"""Small frames share an entry of up to so many frames and bytes. Each of half a million small entries would be objects
that Python's garbage collector visits again and again."""
LEAST_ENTRIES: Final = 64
"""The limit is divided into at least so many entries, because the oldest one is discarded as a whole."""


class Replay:
    """The most recent output of a session, which is sent again over a new link if the peer lacks it.

    Positions count bytes from the session's beginning as the protocol does. Length prefixes are not
    counted, but they are part of the stored pieces.

    Args:
        limit: The maximum number of bytes to keep. The session cannot be resumed from older positions.
        prefix_bytes: The size of the length prefix of a frame.
        position: The position of the first byte.

    Attributes:
        account: Counts the memory that it takes; None before it belongs to a session.
        held: That memory.
        first: The oldest position that can be sent again.
        end: The position of the next byte to be sent.

    """

    __slots__ = (
        "_begun",
        "_entries",
        "_entry_size",
        "_limit",
        "_newest",
        "_prefix_bytes",
        "account",
        "end",
        "first",
        "held",
    )

    def __init__(self, limit: int, prefix_bytes: int, position: int = 0, account: Account | None = None) -> None:
        self._limit = limit
        self._entry_size = min(ENTRY_SIZE, limit // LEAST_ENTRIES)
        self._prefix_bytes = prefix_bytes
        self.account = account
        self.held = 0
        # The position of an entry, and its pieces, which together are complete frames.
        self._entries: deque[tuple[int, list[bytes]]] = deque()
        # The pieces and the position of the last entry, if there is one.
        self._newest: list[bytes] = []
        self._begun = position
        self.first = position
        self.end = position

    def keep(self, piece: bytes, size: int, begins: bool) -> None:
        """Store `piece`, which advances the position by `size`; `begins`: it does not continue the previous piece."""
        if begins and not self._fits(size):
            self._join()
            self._newest = [piece]
            self._begun = self.end
            self._entries.append((self.end, self._newest))
        else:
            if not begins:
                # The piece may be large; it is not copied.
                self._join()
            self._newest.append(piece)
        self.end += size
        while self.end - self.first > self._limit and len(self._entries) > 1:
            self._entries.popleft()
            self.first = self._entries[0][0]
        self._count()

    def belong(self, account: Account) -> None:
        """Count what is kept, and what will be, for a session."""
        self.account = account
        account.book_retained(self.held)

    def drop(self) -> None:
        """Discard everything: the session can only be resumed from the current position."""
        self._entries.clear()
        self.first = self.end
        self._count()

    def trim(self, position: int) -> None:
        """Discard output before `position`, which the peer has received. Entries are only discarded as a whole.

        Raises:
            ValueError: The position was never sent.

        """
        if position > self.end:
            raise ValueError(f"position {position} was never sent; the last one is {self.end}")
        while len(self._entries) > 1 and self._entries[1][0] <= position:
            self._entries.popleft()
        if position == self.end:
            self._entries.clear()
        self.first = max(self.first, self._entries[0][0] if self._entries else position)
        self._count()

    def since(self, position: int) -> list[bytes]:
        """Return the output from `position` on, which must be the beginning of a frame.

        Raises:
            ValueError: The position is no longer kept, was never sent, or is within a frame.

        """
        if not self.first <= position <= self.end:
            raise ValueError(f"position {position} is not kept; kept are {self.first} to {self.end}")
        found: list[bytes] = []
        for start, pieces in reversed(self._entries):
            if start < position:
                found.append(self._skip(b"".join(pieces), position - start))
                break
            found += reversed(pieces)
            if start == position:
                break
        found.reverse()
        return [piece for piece in found if piece]

    def frame_bytes(self, position: int) -> int:
        """Return the length of the frame that begins at `position`; 0 if it is not kept."""
        if not self.first <= position < self.end:
            return 0
        # No piece is empty, so that many have the whole prefix.
        return self._length(b"".join(self.since(position)[: self._prefix_bytes]), 0)

    def _fits(self, size: int) -> bool:
        """Return True if a frame of `size` bytes may share the last entry."""
        is_small = self.end - self._begun + size <= self._entry_size
        return is_small and len(self._newest) < ENTRY_FRAMES and len(self._entries) > 0

    def _join(self) -> None:
        """Make the small frames of the last entry one piece."""
        if len(self._newest) > 1 and self.end - self._begun <= self._entry_size:
            self._newest[:] = [b"".join(self._newest)]

    def _count(self) -> None:
        """Count the change of what is kept."""
        entries = self._entries
        held = self.end - entries[0][0] + ENTRY_BYTES * len(entries) if entries else 0
        if self.account is not None:
            self.account.book_retained(held - self.held)
        self.held = held

    def _skip(self, frames: bytes, size: int) -> bytes:
        """Return `frames` without the first ones, which have `size` bytes."""
        offset = 0
        while size > 0 and offset < len(frames):
            length = self._length(frames, offset)
            size -= length
            offset += self._prefix_bytes + length
        if size != 0:
            raise ValueError("the position is within a frame")
        return frames[offset:]

    def _length(self, frames: bytes, offset: int) -> int:
        """Return the length of the frame whose prefix begins at `offset`."""
        length = int.from_bytes(frames[offset : offset + self._prefix_bytes], "big")
        # ReactiveSocket 0.0: the length counts itself.
        return length - self._prefix_bytes if self._prefix_bytes == 4 else length
