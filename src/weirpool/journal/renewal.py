"""When a collector renews its checkpoint although no item has arrived."""

from __future__ import annotations

import asyncio
from typing import Final

__all__ = ["FIRST_RENEWAL", "RENEWAL", "Renewal"]

RENEWAL: Final = 20.0
"""Seconds after which a checkpoint is renewed even without items: some sessions send messages on their own, and a
checkpoint covers only a limited number of them."""
FIRST_RENEWAL: Final = 2.0
"""The same for the first checkpoint of a stream, from which some protocols cannot resume, because it has no items."""


class Renewal:
    """The time at which the newest checkpoint expires.

    Attributes:
        at: The event loop's time; None: there is no checkpoint.

    """

    def __init__(self) -> None:
        self.at: float | None = None
        # The timer is not set again for each checkpoint: when it rings early, it is set again.
        self._timer: asyncio.TimerHandle | None = None
        self._waiter: asyncio.Future[None] | None = None

    def after(self, seconds: float | None) -> None:
        """Set the time from now on; None: there is no checkpoint."""
        self.at = None if seconds is None else asyncio.get_running_loop().time() + seconds
        if self._timer is not None and self.at is not None and self.at < self._timer.when():
            self.stop()

    def is_due(self) -> bool:
        """Return True if the newest checkpoint has expired."""
        return self.at is not None and asyncio.get_running_loop().time() >= self.at

    async def wait(self, waiter: asyncio.Future[None]) -> None:
        """Wait for `waiter`, at most until the newest checkpoint expires; then it is completed. For one task."""
        self._waiter = waiter
        self._set()
        await waiter

    def stop(self) -> None:
        """Forget the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set(self) -> None:
        if self._timer is None and self.at is not None:
            self._timer = asyncio.get_running_loop().call_at(self.at, self._ring)

    def _ring(self) -> None:
        self._timer = None
        if self._waiter is None or self._waiter.done():
            return
        if self.is_due():
            self._waiter.set_result(None)
        else:
            self._set()
