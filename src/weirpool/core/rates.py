"""Rate limits."""

from __future__ import annotations

__all__ = ["Rate"]


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
