"""The bytes of a log that readers may leave unread before its publisher is slowed down."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from .layout import Extent, bytes_between
from .retention import commits
from .sealed import safe_position

__all__ = ["Budget"]


class Budget:
    """Counts the rows that no reader has committed, by segment.

    Args:
        folder: The log's folder.
        limit: Bytes of rows that are allowed.

    """

    def __init__(self, folder: Path, limit: int) -> None:
        self._folder = folder
        self._limit = limit
        self._complete: list[Extent] = []
        self._committed = 0

    def begin(self, complete: Iterable[Extent]) -> None:
        """Count these complete segments."""
        self._complete = list(complete)
        self.refresh()

    def add(self, extent: Extent) -> None:
        """Count another complete segment."""
        self._complete.append(extent)

    def refresh(self) -> None:
        """Read the positions that readers have committed: rows below them no longer count, nor do rows in a store."""
        self._committed = max(min(commits(self._folder).values(), default=0), safe_position(self._folder))
        self._complete = [extent for extent in self._complete if extent.end > self._committed]

    def used(self, last: Extent | None) -> int:
        """Return the bytes that count, with those of the last segment."""
        if last is None:
            return bytes_between(self._complete, self._committed, self._complete[-1].end if self._complete else 0)
        return bytes_between([*self._complete, last], self._committed, last.end)

    def has_room(self, last: Extent | None) -> bool:
        """Return True if less counts than is allowed."""
        # Most logs are small. Otherwise it matters what readers have committed.
        size = sum(extent.size for extent in self._complete) + (last.size if last is not None else 0)
        return size < self._limit or self.used(last) < self._limit

    def free(self, last: Extent | None) -> int:
        """Return the bytes that are left; never less than 0."""
        return max(0, self._limit - self.used(last))
