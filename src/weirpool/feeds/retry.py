"""When to try again: after a feed has ended with an error, and after a connection was lost."""

from __future__ import annotations

from time import monotonic
from typing import Final

import msgspec

from ..aio.reconnect import Backoff
from .values import Seconds

__all__ = ["LinkBackoff", "Retry"]

PATIENT: Final = 60.0
"""Seconds of an outage in which a publisher may still have the session, so that attempts are frequent."""
FIRST_LINK_DELAY: Final = 0.1
LONGEST_LINK_DELAY: Final = 1.0
"""Seconds between attempts while the session may continue."""
SETTLED: Final = 1.0
"""Seconds that a connection must last to end an outage: a publisher may accept and drop connections."""


class Retry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The policy of one feed. Delays are in seconds, and grow by `factor` from `first` to `longest`."""

    first: Seconds = Seconds(1.0)
    factor: float = 2.0
    longest: Seconds = Seconds(60.0)
    jitter: float = 0.5
    """The fraction of each delay, from 0 to 1, of which a random part is subtracted."""
    give_up_after: Seconds | None = None
    """The circuit opens after this time without an item, and the feed stops; None tries for ever."""

    def __post_init__(self) -> None:
        if not 0 < self.first <= self.longest:
            raise ValueError(f"first is {self.first:g}; it must be above 0, and at most longest ({self.longest:g})")
        if not self.factor >= 1:
            raise ValueError(f"factor is {self.factor:g}; it must be at least 1")
        if not 0 <= self.jitter <= 1:
            raise ValueError(f"jitter is {self.jitter:g}; it must lie between 0 and 1")

    def backoff(self) -> RestartBackoff:
        """Return the delays between attempts of a feed that ends with errors."""
        return RestartBackoff(self.first, self.longest, self.factor, self.jitter)


class RestartBackoff(Backoff):
    """Delays between attempts of a feed that ends with errors."""

    __slots__ = ("_last",)

    def __init__(self, first: float, longest: float, factor: float, jitter: float) -> None:
        super().__init__(first, longest, factor, jitter)
        self._last = 0.0

    def next(self) -> float:
        """Return the next delay in seconds."""
        self._last = super().next()
        return self._last

    def worked(self, seconds: float) -> None:
        """Note that items were collected for so long since the last delay.

        Delays start again unless that was shorter than the last one. Otherwise a stream that yields an item and fails
        would be opened every second, with another gap each time.
        """
        if seconds >= self._last:
            self.reset()


class LinkBackoff(Backoff):
    """Delays between attempts to connect: short while the publisher may still have the session, then growing.

    Args:
        retry: The feed's policy, which has the longest delay.

    """

    __slots__ = ("_linked_at", "_lost_at", "_short")

    def __init__(self, retry: Retry) -> None:
        super().__init__(LONGEST_LINK_DELAY, max(retry.longest, LONGEST_LINK_DELAY), retry.factor, retry.jitter)
        self._short = Backoff(FIRST_LINK_DELAY, LONGEST_LINK_DELAY, jitter=retry.jitter)
        self._lost_at: float | None = None
        self._linked_at: float | None = None

    def next(self) -> float:
        """Return the next delay in seconds."""
        now = monotonic()
        if self._linked_at is not None and now - self._linked_at >= SETTLED:
            super().reset()
            self._short.reset()
            self._lost_at = None
        self._linked_at = None
        if self._lost_at is None:
            self._lost_at = now
        return self._short.next() if now - self._lost_at < PATIENT else super().next()

    def reset(self) -> None:
        """Note that a stream is open. If it lasts, the outage is over."""
        self._linked_at = monotonic()
