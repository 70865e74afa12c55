"""Sent output that is kept until the peer has confirmed it, addressed by position."""

from __future__ import annotations

from collections import deque

__all__ = ["Replay"]


class Replay:
    """The end of what a session has sent, to be sent again when a new link takes over.

    Positions count bytes from the session's beginning, as the protocol counts them: length prefixes are no
    part of a position, but they are part of the pieces that are kept.

    Args:
        limit: Bytes to keep at most. What is older is let go, and can no longer be resumed from.
        prefix_bytes: Of the length before each frame.
        position: Where it begins.

    Attributes:
        first: The oldest position that can be sent again.
        end: The position of the next byte that is sent.

    """

    __slots__ = ("_entries", "_limit", "_prefix_bytes", "end", "first")

    def __init__(self, limit: int, prefix_bytes: int, position: int = 0) -> None:
        self._limit = limit
        self._prefix_bytes = prefix_bytes
        # Where an entry starts, and its pieces, which together are whole frames.
        self._entries: deque[tuple[int, list[bytes]]] = deque()
        self.first = position
        self.end = position

    def keep(self, piece: bytes, size: int, begins: bool) -> None:
        """Keep `piece`, which moves the position by `size`; `begins`: it does not go on with the piece before."""
        if begins:
            self._entries.append((self.end, [piece]))
        else:
            self._entries[-1][1].append(piece)
        self.end += size
        while self.end - self.first > self._limit and len(self._entries) > 1:
            self._entries.popleft()
            self.first = self._entries[0][0]

    def trim(self, position: int) -> None:
        """Forget what lies before `position`: the peer has it. What an entry's end still needs is kept.

        Raises:
            ValueError: The position was never sent.

        """
        if position > self.end:
            raise ValueError(f"position {position} was never sent; {self.end} bytes were")
        while len(self._entries) > 1 and self._entries[1][0] <= position:
            self._entries.popleft()
        if position == self.end:
            self._entries.clear()
        self.first = max(self.first, self._entries[0][0] if self._entries else position)

    def since(self, position: int) -> list[bytes]:
        """Return all that was sent from `position` on, which is where a frame begins.

        Raises:
            ValueError: It is no longer kept, was never sent, or lies within a frame.

        """
        if not self.first <= position <= self.end:
            raise ValueError(f"position {position} is not kept; {self.first} to {self.end} are")
        found: list[bytes] = []
        for start, pieces in reversed(self._entries):
            if start < position:
                found.append(self._behind(b"".join(pieces), position - start))
                break
            found += reversed(pieces)
            if start == position:
                break
        found.reverse()
        return [piece for piece in found if piece]

    def frame_bytes(self, position: int) -> int:
        """Return the length of the frame that begins at `position`; 0 where nothing is kept."""
        if not self.first <= position < self.end:
            return 0
        # No piece is empty, so that many have the whole prefix.
        return self._length(b"".join(self.since(position)[: self._prefix_bytes]), 0)

    def _behind(self, frames: bytes, size: int) -> bytes:
        """Return what is left of `frames` behind those that make up its first `size` bytes."""
        at = 0
        while size > 0 and at < len(frames):
            length = self._length(frames, at)
            size -= length
            at += self._prefix_bytes + length
        if size != 0:
            raise ValueError("the position lies within a frame")
        return frames[at:]

    def _length(self, frames: bytes, at: int) -> int:
        """Return the length of the frame whose prefix is at `at`."""
        length = int.from_bytes(frames[at : at + self._prefix_bytes], "big")
        # ReactiveSocket 0.0: the length counts itself.
        return length - self._prefix_bytes if self._prefix_bytes == 4 else length
