"""How often the links of one address were refused: whoever guesses, guesses slowly."""

from __future__ import annotations

from collections import Counter
from typing import Final

__all__ = ["Refusals"]

WINDOW: Final = 30.0
"""Seconds for which refusals are counted together."""


class Refusals:
    """Counts refused links by the addresses that they came from (THREATS 28).

    Everybody's window is the same, so that what is held is bounded by the links that one window may bring.

    Args:
        limit: How many are fine in one window; 0 for any number.

    """

    __slots__ = ("_counts", "_limit", "_started")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._counts: Counter[str] = Counter()
        self._started = float("-inf")

    def note(self, address: str, now: float) -> None:
        """Count a link from `address` that was refused. What has no address is of this machine, and is not counted."""
        self._turn(now)
        if address:
            self._counts[address] += 1

    def too_many(self, address: str, now: float) -> bool:
        """Whether no more links are to be taken from `address` for now."""
        self._turn(now)
        return 0 < self._limit <= self._counts.get(address, 0)

    def _turn(self, now: float) -> None:
        if now - self._started >= WINDOW:
            self._started = now
            self._counts.clear()
