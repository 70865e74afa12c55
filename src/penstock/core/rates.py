"""Rate limits."""

from __future__ import annotations

from collections import Counter

__all__ = ["Rate", "Rates"]


class Rate:
    """Counts events in windows of fixed length.

    Args:
        limit: How many events one window allows; 0 for any number.
        seconds: The length of a window.

    """

    __slots__ = ("_count", "_limit", "_seconds", "_started")

    def __init__(self, limit: int, seconds: float) -> None:
        self._limit = limit
        self._seconds = seconds
        self._count = 0
        self._started = float("-inf")

    def hit(self, now: float, count: int = 1) -> bool:
        """Count `count` more events; return True if they exceed the limit."""
        if now - self._started >= self._seconds:
            self._started = now
            self._count = 0
        self._count += count
        return 0 < self._limit < self._count


class Rates:
    """Counts events of several sources, each like a :class:`Rate`, in one window for all."""

    __slots__ = ("_counts", "_limit", "_seconds", "_started")

    def __init__(self, limit: int, seconds: float) -> None:
        self._limit = limit
        self._seconds = seconds
        self._counts: Counter[str] = Counter()
        self._started = float("-inf")

    def hit(self, source: str, now: float) -> None:
        """Count one more event of `source`."""
        self._roll(now)
        self._counts[source] += 1

    def exceeded(self, source: str, now: float) -> bool:
        """Return True if the events of `source` exceed the limit."""
        self._roll(now)
        return 0 < self._limit < self._counts[source]

    def _roll(self, now: float) -> None:
        if now - self._started >= self._seconds:
            self._started = now
            self._counts.clear()
