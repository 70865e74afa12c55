"""Which of several nodes gets the next request. Pure: the time is an argument."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from ..errors import LocalError

__all__ = ["STRATEGIES", "Candidate", "LeastLoaded", "PeakEwma", "RoundRobin", "Strategy", "strategy_named"]

UNKNOWN: Final = 1_000.0
"""Seconds for which a node is taken that has a request and has never answered one: it gets no second one while
others can be had."""


class PeakEwma:
    """How long a node takes to answer: an average that forgets, rises at once, and sinks slowly.

    An answer that is slower than the average becomes the average, so that a node in trouble is spared after one
    answer; faster ones pull it down by and by. While a node is asked nothing its average sinks, so that it gets
    another chance. An answer counts half after `half_life` seconds. Twitter's Finagle balances by such averages.
    """

    __slots__ = ("_at", "_half_life", "_seconds")

    def __init__(self, half_life: float) -> None:
        self._half_life = half_life
        self._seconds = 0.0
        self._at = 0.0

    def observe(self, seconds: float, now: float) -> None:
        """Take note of an answer that took so many seconds, and came now."""
        weight = self._weight(now)
        self._seconds = max(seconds, self._seconds * weight + seconds * (1.0 - weight))
        self._at = now

    def exceed(self, seconds: float, now: float) -> None:
        """Take note that an answer was given up after so many seconds: it would have taken longer."""
        if seconds > self.seconds(now):
            self.observe(seconds, now)

    def seconds(self, now: float) -> float:
        """Return the average, in seconds; 0 when nothing is known."""
        return self._seconds * self._weight(now)

    def _weight(self, now: float) -> float:
        return float(2.0 ** -(max(now - self._at, 0.0) / self._half_life))


class Candidate(Protocol):
    """A node that may be chosen."""

    @property
    def latency(self) -> PeakEwma:
        """How long it takes to answer."""

    @property
    def outstanding(self) -> int:
        """How many requests it works on."""


class Strategy(Protocol):
    """A way to choose."""

    def pick(self, candidates: Sequence[Candidate], now: float) -> int:
        """Return the index of the node that gets the next request; there is at least one."""


class RoundRobin:
    """Each node in turn."""

    __slots__ = ("_turn",)

    def __init__(self) -> None:
        self._turn = -1

    def pick(self, candidates: Sequence[Candidate], now: float) -> int:
        """Return the index of the one behind the last."""
        self._turn = (self._turn + 1) % len(candidates)
        return self._turn


class LeastLoaded(RoundRobin):
    """The node where a request waits least: its latency, times the requests that it works on and this one.

    One that has never answered is asked once, to get to know it. Equals take turns.
    """

    __slots__ = ()

    def pick(self, candidates: Sequence[Candidate], now: float) -> int:
        """Return the index of the node with the least load."""
        first = best = super().pick(candidates, now)
        least = load(candidates[first], now)
        for index in (*range(first + 1, len(candidates)), *range(first)):
            found = load(candidates[index], now)
            if found < least:
                best, least = index, found
        return best


def load(candidate: Candidate, now: float) -> float:
    """Return what a node's latency and work come to."""
    seconds = candidate.latency.seconds(now)
    if not seconds:
        return UNKNOWN * candidate.outstanding
    return seconds * (candidate.outstanding + 1)


STRATEGIES: Final[dict[str, type[RoundRobin]]] = {"round-robin": RoundRobin, "least-loaded": LeastLoaded}


def strategy_named(name: str) -> Strategy:
    """Return a new strategy of that name.

    Raises:
        LocalError: There is none.

    """
    if name not in STRATEGIES:
        raise LocalError(f"unknown strategy {name!r}; known are {', '.join(STRATEGIES)}")
    return STRATEGIES[name]()
