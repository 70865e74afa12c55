"""The rows that a micro-batch waits for, and how long."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

__all__ = ["MinimumRows"]

Ranges = Mapping[str, tuple[int, int]]
"""First and end position by source."""


class MinimumRows:
    """Holds rows back until there are enough for a micro-batch, or until the first of them has waited too long.

    Args:
        rows: Rows to wait for; None: any.
        delay: Seconds that a row waits at most, from when it is seen here.
        clock: Returns the time in seconds.

    """

    def __init__(self, rows: int | None, delay: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rows = rows
        self._delay = delay
        self._clock = clock
        self._since: float | None = None

    def holds_back(self, available: Ranges, limited: Ranges) -> bool:
        """Return True if a micro-batch would have too few of the available rows, and not because of its limits."""
        rows, waiting = _count(limited), _count(available)
        if self._rows is None or not rows:
            self._since = None
            return False
        now = self._clock()
        since = self._since = now if self._since is None else self._since
        if rows == waiting < self._rows and now - since < self._delay:
            return True
        self._since = None
        return False


def _count(ranges: Ranges) -> int:
    return sum(end - first for first, end in ranges.values())
