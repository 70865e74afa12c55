"""Strategies that select the node for the next request. They use no clock: the time is an argument."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from ..errors import LocalError

__all__ = [
    "STRATEGIES",
    "Candidate",
    "Failures",
    "LeastLoaded",
    "PeakEwma",
    "RoundRobin",
    "Strategy",
    "strategy_named",
]

UNKNOWN: Final = 1_000.0
"""The assumed latency in seconds of a node that has a request but has not responded yet: other nodes are preferred for
the next one."""
MAX_DOUBLINGS: Final = 32.0
"""Failures in a row that count: after that many, a node is tried again within about half a minute."""


class PeakEwma:
    """The average latency of a node, which rises at once and decays exponentially.

    A response slower than the average becomes the average, so that a slow node gets fewer requests after one response.
    Faster responses lower it gradually. It also decays while a node gets no requests, so that the node is tried again.
    The weight of a response halves in `half_life` seconds. Twitter's Finagle uses the same kind of average.
    """

    __slots__ = ("_at", "_half_life", "_seconds")

    def __init__(self, half_life: float) -> None:
        self._half_life = half_life
        self._seconds = 0.0
        self._at = 0.0

    def observe(self, seconds: float, now: float) -> None:
        """Record a response that arrived at time `now` after `seconds`."""
        weight = self._weight(now)
        self._seconds = max(seconds, self._seconds * weight + seconds * (1.0 - weight))
        self._at = now

    def exceed(self, seconds: float, now: float) -> None:
        """Record that a response would have taken longer than `seconds`, because the call was canceled."""
        if seconds > self.seconds(now):
            self.observe(seconds, now)

    def seconds(self, now: float) -> float:
        """Return the average in seconds; 0 if there is none."""
        return self._seconds * self._weight(now)

    def _weight(self, now: float) -> float:
        return float(2.0 ** -(max(now - self._at, 0.0) / self._half_life))


class Failures:
    """How much a node is avoided because its requests fail.

    Each failure doubles its load. A success takes the square root of that factor, and so does the time of `half_life`
    seconds, so that the node is tried again.
    """

    __slots__ = ("_at", "_doublings", "_half_life")

    def __init__(self, half_life: float) -> None:
        self._half_life = half_life
        self._doublings = 0.0
        self._at = 0.0

    def observe(self, failed: bool, now: float) -> None:
        """Record a request that ended at time `now`."""
        before = self._current(now)
        self._doublings = min(before + 1.0, MAX_DOUBLINGS) if failed else before / 2.0
        self._at = now

    def factor(self, now: float) -> float:
        """Return by what the load is multiplied, at least 1."""
        return float(2.0 ** self._current(now))

    def _current(self, now: float) -> float:
        return float(self._doublings * 2.0 ** -(max(now - self._at, 0.0) / self._half_life))


class Candidate(Protocol):
    """A node that may be selected."""

    @property
    def latency(self) -> PeakEwma:
        """Its average latency."""

    @property
    def failures(self) -> Failures:
        """Its failed requests."""

    @property
    def outstanding(self) -> int:
        """The number of requests in progress."""


class Strategy(Protocol):
    """Selects a node for each request."""

    def pick(self, candidates: Sequence[Candidate], now: float) -> int:
        """Return the index of the node for the next request. `candidates` is not empty."""


class RoundRobin:
    """Selects each node in turn."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last = -1

    def pick(self, candidates: Sequence[Candidate], now: float) -> int:
        """Return the index after the last one."""
        self._last = (self._last + 1) % len(candidates)
        return self._last


class LeastLoaded(RoundRobin):
    """Selects the node with the lowest load: its latency times the requests in progress, including this one.

    Recent failures multiply the load, so that a node is not preferred because it fails fast. A node that has not
    responded yet gets one request, to measure it. Nodes with equal load take turns.
    """

    __slots__ = ()

    def pick(self, candidates: Sequence[Candidate], now: float) -> int:
        """Return the index of the node with the lowest load."""
        first = best = super().pick(candidates, now)
        least = load(candidates[first], now)
        for index in (*range(first + 1, len(candidates)), *range(first)):
            found = load(candidates[index], now)
            if found < least:
                best, least = index, found
        return best


def load(candidate: Candidate, now: float) -> float:
    """Return the load of a node with one more request."""
    seconds = candidate.latency.seconds(now)
    factor = candidate.failures.factor(now)
    if not seconds:
        return UNKNOWN * (candidate.outstanding + factor - 1.0)
    return seconds * (candidate.outstanding + 1) * factor


STRATEGIES: Final[dict[str, type[RoundRobin]]] = {"round-robin": RoundRobin, "least-loaded": LeastLoaded}


def strategy_named(name: str) -> Strategy:
    """Return a new strategy with this name.

    Raises:
        LocalError: The name is unknown.

    """
    if name not in STRATEGIES:
        raise LocalError(f"unknown strategy {name!r}; use one of {', '.join(STRATEGIES)}")
    return STRATEGIES[name]()
