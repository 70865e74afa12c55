"""River's retry budget: how often a client connects anew, and after what time.

River says that clients reconnect, and the reference says how: each try takes one from a budget, the delays double from
try to try, and what was taken comes back bit by bit while a connection holds. A server that lets everybody in and drops
everybody at once is so not asked for ever.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from typing import Final

from .backoff import Backoff
from .reconnect import Reconnect

__all__ = ["Budgeted", "RetryBudget"]

TRIES: Final = 5
"""Tries in a row."""
RESTORED: Final = 0.2
"""Seconds after a handshake after which a try is given back, and then another one, as long as the link holds."""
BASE: Final = 0.15
"""Seconds before the second try; it doubles from try to try."""
SPREAD: Final = 0.2
"""Seconds of which a random part is added."""
LONGEST: Final = 32.0
"""Seconds, without the random part."""


class RetryBudget(Backoff):
    """The budget of one peer, for links and sessions alike. The first try is taken from it already."""

    __slots__ = ("_refilled", "_since", "_taken", "_told", "_waiting")

    def __init__(self) -> None:
        super().__init__()
        self._taken = 1
        # Since when what was taken is given back; None: it is not.
        self._since: float | None = None
        self._told: float | None = None
        self._refilled = asyncio.Event()
        self._waiting = 0

    @property
    def spent(self) -> bool:
        """Whether there is no try left."""
        return self.left(asyncio.get_running_loop().time()) == 0

    @property
    def exhausted(self) -> bool:
        """Whether somebody waits for :meth:`refill`: the last try has failed."""
        return self._waiting > 0 and not self._refilled.is_set()

    def left(self, now: float) -> int:
        """Return how many tries there are."""
        return TRIES - self._taken_by(now)

    def linked(self, since: float | None) -> None:
        """Learn when the newest handshake was answered; None: none was."""
        if since != self._told:
            self._since = self._told = since

    def take(self, now: float) -> float | None:
        """Take a try; return the seconds before it, or None if there is none left."""
        taken = self._taken = self._taken_by(now)
        self._since = None
        if taken >= TRIES:
            return None
        self._taken += 1
        if taken == 0:
            return 0.0
        return min(BASE * 2.0 ** (taken - 1), LONGEST) + random.uniform(0.0, SPREAD)

    def excuse(self) -> None:
        """Let the next try cost nothing: what ended the last link does not come again."""
        self._taken = max(0, self._taken - 1)

    async def wait(self) -> None:
        """Wait until it is time for the next try; with no try left, until somebody refills the budget."""
        loop = asyncio.get_running_loop()
        while (delay := self.take(loop.time())) is None:
            self._refilled.clear()
            self._waiting += 1
            try:
                await self._refilled.wait()
            finally:
                self._waiting -= 1
        await asyncio.sleep(delay)

    def reset(self) -> None:
        """Nothing: time alone gives back what was taken."""

    def refill(self) -> None:
        """Give all tries back; whoever waits for one goes on at once."""
        self._taken = 0
        self._refilled.set()

    def _taken_by(self, now: float) -> int:
        # The reference counts whole intervals.
        restored = 0 if self._since is None else int((now - self._since) / RESTORED + 1e-9)
        return max(0, self._taken - restored)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgeted(Reconnect):
    """The policy of protocols that have a budget."""

    budget: RetryBudget = field(default_factory=RetryBudget)
    """Shared by all that connects anew."""

    def backoff(self) -> Backoff:
        """Return the budget."""
        return self.budget

    def resuming(self) -> Backoff:
        """Return the budget: links of a session take tries from it, too."""
        return self.budget
