"""How long to wait before the next try."""

from __future__ import annotations

import asyncio
import random
from typing import Final

__all__ = ["FACTOR", "FIRST", "JITTER", "LONGEST", "RESUME_LONGEST", "Backoff", "resuming"]

FIRST: Final = 0.1
"""Seconds: a server that restarts is hardly faster."""
LONGEST: Final = 10.0
"""Seconds: a person who watches waits no longer."""
RESUME_LONGEST: Final = 0.1
"""Seconds, while a session waits for a link: it must go on soon after the network is back."""
FACTOR: Final = 2.0
"""Seven tries from the first time to the longest."""
JITTER: Final = 0.5
"""Enough that clients which lost one server do not come back as one, and no time is cut to nothing."""


class Backoff:
    """Waiting times that grow, each cut by a random part, so that many clients do not come back at once.

    Args:
        first: The first time at most, in seconds.
        longest: Any time at most, in seconds.
        factor: How many times longer each time is than the one before, at least 1.
        jitter: The part of each time, from 0 to 1, of which a random share is cut off.

    """

    __slots__ = ("_factor", "_first", "_jitter", "_longest", "_whole")

    def __init__(
        self, first: float = FIRST, longest: float = LONGEST, factor: float = FACTOR, jitter: float = JITTER
    ) -> None:
        self._first = first
        self._longest = longest
        self._factor = factor
        self._jitter = jitter
        self._whole = min(first, longest)

    def next(self) -> float:
        """Return how long to wait now, in seconds: what is due, less its random part."""
        whole = self._whole
        self._whole = min(self._longest, whole * self._factor)
        return whole * random.uniform(1.0 - self._jitter, 1.0)

    @property
    def spent(self) -> bool:
        """Whether nothing is tried any more before :meth:`refill`."""
        return False

    @property
    def exhausted(self) -> bool:
        """Whether somebody waits for :meth:`refill`: the last try has failed."""
        return False

    def linked(self, since: float | None) -> None:
        """Learn when the newest link was found good, by the loop's clock; None: that is not known."""

    def excuse(self) -> None:
        """Let the next try cost nothing: what ended the last link does not come again."""
        self.reset()

    async def wait(self) -> None:
        """Wait until it is time for the next try."""
        await asyncio.sleep(self.next())

    def refill(self) -> None:
        """Let it be tried again as if nothing had failed."""
        self.reset()

    def reset(self) -> None:
        """Begin anew, after a success."""
        self._whole = min(self._first, self._longest)


def resuming() -> Backoff:
    """Return the delays between tries to get a link for a session that may still be alive."""
    return Backoff(longest=RESUME_LONGEST)
