"""How long to wait before the next try."""

from __future__ import annotations

import random
from typing import Final

__all__ = ["Backoff"]

FIRST: Final = 0.1
"""Seconds: a server that restarts is hardly faster."""
LONGEST: Final = 10.0
"""Seconds: a person who watches waits no longer."""


class Backoff:
    """Waiting times that double, each cut by a random part, so that many clients do not come back at once.

    Args:
        first: The first time at most, in seconds.
        longest: Any time at most, in seconds.

    """

    __slots__ = ("_first", "_longest", "_tries")

    def __init__(self, first: float = FIRST, longest: float = LONGEST) -> None:
        self._first = first
        self._longest = longest
        self._tries = 0

    def next(self) -> float:
        """Return how long to wait now, in seconds: between half and the whole of what is due."""
        whole = min(self._longest, self._first * 2.0**self._tries)
        # Beyond this, doubling changes nothing.
        self._tries = min(self._tries + 1, 32)
        return whole * random.uniform(0.5, 1.0)

    def reset(self) -> None:
        """Begin anew, after a success."""
        self._tries = 0
