"""A limited number of places for peers that have not said yet what they want."""

from __future__ import annotations

from collections.abc import Callable
from random import random
from typing import Final, Generic, TypeVar

__all__ = ["SPARED_SECONDS", "Places"]

T = TypeVar("T")

SPARED_SECONDS: Final = 0.5
"""The age up to which a holder may keep its place: handshakes and a first message need up to three round trips."""


class Places(Generic[T]):
    """The holders of places, the oldest first. When all are taken, a newcomer gets that of the oldest holder.

    Otherwise, a peer that takes all places and says nothing would keep all others out. A holder that is younger than
    `SPARED_SECONDS` gives its place up with a probability that grows with its age; else the newcomer is refused. So a
    flood cannot drive out everybody who needs a moment, nor can a peer that renews its places at the right time keep
    others out. What a holder has sent so far does not count, because a few bytes cost a hostile peer nothing.

    Args:
        limit: The number of places.
        evict: Called with a holder that must give its place up. It no longer has it.

    """

    __slots__ = ("_evict", "_limit", "_since")

    def __init__(self, limit: int, evict: Callable[[T], object]) -> None:
        self._limit = limit
        self._evict = evict
        self._since: dict[T, float] = {}

    def __len__(self) -> int:
        return len(self._since)

    def make_room(self, now: float) -> bool:
        """Return True if there is a place for another holder, maybe that of the oldest one, which is evicted."""
        return len(self._since) < self._limit or self.evict(now)

    def evict(self, now: float) -> bool:
        """Evict the oldest holder, if there is one and it need not be spared; return True if it was evicted."""
        oldest = next(iter(self._since), None)
        if oldest is None or now - self._since[oldest] < SPARED_SECONDS * random():
            return False
        self.leave(oldest)
        self._evict(oldest)
        return True

    def take(self, holder: T, now: float) -> None:
        """Give a place to `holder`. Call `make_room` first."""
        self._since[holder] = now

    def leave(self, holder: T) -> None:
        """Free the place of `holder`, if it has one."""
        self._since.pop(holder, None)
