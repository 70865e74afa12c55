"""Reads a range or a file of a served journal, for a stream that sends it as its client requests it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any

from .frames import PIECE_BYTES, pieces
from .paced import Chunk
from .ranges import OVER, Part, Place

__all__ = ["RangeReading"]


class RangeReading:
    """A :class:`weirpool.serving.paced.Reading` of the frames of a range, or the bytes of a file.

    Args:
        first: The first position; 0 for a file.
        begin: Returns the parts of the range from a place on.
        in_thread: Returns the result of work that waits for the disk.

    """

    def __init__(
        self,
        first: int,
        begin: Callable[[Place], Generator[Part, None, None]],
        in_thread: Callable[[Callable[[], Any]], Awaitable[Any]],
    ) -> None:
        self._begin = begin
        self._in_thread = in_thread
        self._parts: Generator[Part, None, None] | None = None
        # Where the range continues after what was taken; None: within a frame that cannot be made again.
        self._place: Place | None = Place(first)
        # What was read and not taken.
        self._read: list[Part] = []

    @property
    def ready(self) -> bool:
        """True until all of it was taken."""
        return self._place is not OVER

    @property
    def held(self) -> int:
        """Bytes that were read and not taken."""
        return sum(part.content.size for part in self._read)

    async def more(self) -> bool:
        """Return False: what is not over can be read at once."""
        return self.ready

    async def fill(self) -> None:
        """Read about a megabyte."""
        if not self._read:
            part = await self._in_thread(self._next)
            if part is None:
                self._place = OVER
            else:
                self._read.append(part)

    def take(self, count: int) -> Chunk | None:
        """Return the next bytes, at most so many pieces; None if nothing was read."""
        if not self._read:
            return None
        part, rest = self._read[0].split(count * PIECE_BYTES)
        self._read[:1] = [] if rest is None else [rest]
        self._place = part.after
        items = pieces(part.content)
        return Chunk(items, items.num_rows, part.content.size)

    async def rest(self) -> None:
        """Close the range; keep what is left of a frame that cannot be made again."""
        if self._place is not None:
            self._read.clear()
        if self._parts is not None:
            await self._in_thread(self._close)

    async def close(self) -> None:
        """Close the range."""
        parts, self._parts = self._parts, None
        self._read.clear()
        if parts is not None:
            await self._in_thread(parts.close)

    def _next(self) -> Part | None:
        if self._parts is None:
            assert self._place is not None
            self._parts = self._begin(self._place)
        return next(self._parts, None)

    def _close(self) -> None:
        parts, self._parts = self._parts, None
        assert parts is not None
        try:
            after = self._read[-1].after if self._read else self._place
            while after is None:
                self._read.append(next(parts))
                after = self._read[-1].after
        finally:
            parts.close()
