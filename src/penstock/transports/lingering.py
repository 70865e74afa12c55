"""How long a link that is closing may take to send what waits, and its peer to close as well."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

__all__ = ["BACKLOG_BYTES", "LONGEST", "STALLED", "Linger"]

LONGEST: Final = 30.0
"""Seconds that a close may take while output moves: as long as `ws`, and with it River's own implementation, waits."""
STALLED: Final = 3.0
"""Seconds after which output that does not move is given up. Slow links take it in gulps."""
BACKLOG_BYTES: Final = 4_096
"""No more than this leaves with the end of a link, and is not waited for."""


class Linger:
    """Aborts a link that is closing once nothing moves over it any more.

    Args:
        seconds: How long the peer may take to close as well, once little waits.
        progress: The link's; see :meth:`penstock.transports.base.Link.progress`.
        abort: The link's.

    """

    __slots__ = ("_abort", "_ends", "_loop", "_moved", "_progress", "_seconds", "_taken", "_timer", "_waited")

    def __init__(self, seconds: float, progress: Callable[[], tuple[int, int]], abort: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._seconds = seconds
        self._progress = progress
        self._abort = abort
        self._moved = self._loop.time()
        self._ends = self._moved + LONGEST
        waiting, self._taken = progress()
        self._waited = waiting > BACKLOG_BYTES
        self._timer = self._loop.call_later(seconds, self._look)

    def when(self) -> float:
        """Return when it looks next, by the loop's clock."""
        return self._timer.when()

    def cancel(self) -> None:
        """Let the link be: it is closed."""
        self._timer.cancel()

    def cancelled(self) -> bool:
        """Whether it was canceled."""
        return self._timer.cancelled()

    def _look(self) -> None:
        now = self._loop.time()
        waited = self._waited
        waiting, taken = self._progress()
        if taken > self._taken:
            self._taken, self._moved = taken, now
        self._waited = waiting > BACKLOG_BYTES
        if waited and now - self._moved < STALLED and now < self._ends:
            self._timer = self._loop.call_later(self._seconds, self._look)
        else:
            self._abort()
