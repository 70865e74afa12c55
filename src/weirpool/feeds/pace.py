"""The pace at which feeds connect."""

from __future__ import annotations

import asyncio
from typing import Final

__all__ = ["Pace"]

SHORTEST: Final = 0.005
"""Seconds between two feeds that connect: a thousand take five seconds, and their publishers see no crowd."""
LONGEST: Final = 0.5
RECOVERY: Final = 0.9
"""The factor by which the interval shrinks with each feed. Not every timer of a starved loop is late."""


class Pace:
    """Lets feeds connect one after the other, at intervals no shorter than the event loop's recent delays.

    A loop that is starved, by other processes or by its own feeds, would otherwise begin hundreds of connections and
    then not find the time to finish any of them before they time out.
    """

    def __init__(self) -> None:
        self._turns = asyncio.Lock()
        self._interval = SHORTEST

    async def turn(self) -> None:
        """Wait for a feed's turn, in the order of the calls."""
        loop = asyncio.get_running_loop()
        async with self._turns:
            due = loop.time() + self._interval
            await asyncio.sleep(self._interval)
            late = loop.time() - due
            self._interval = min(max(late, RECOVERY * self._interval, SHORTEST), LONGEST)
