"""Strategies that select the node for the next request. They use no clock: the time is an argument."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
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
FORGOTTEN: Final = 0.01
"""Doublings that a success removes entirely."""
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

    Each failure doubles its load, but not those of requests that were in progress when another one failed: a broken
    connection is one failure. A success takes the square root of that factor, and so does the time of `half_life`
    seconds, so that the node is tried again.
    """

    __slots__ = ("_at", "_doublings", "_failed_at", "_half_life")

    def __init__(self, half_life: float) -> None:
        self._half_life = half_life
        self._doublings = 0.0
        self._at = 0.0
        self._failed_at = -inf

    def failed(self, began: float, now: float) -> None:
        """Record a request that began at `began`, and failed at `now`."""
        if began >= self._failed_at:
            self._doublings = min(self._current(now) + 1.0, MAX_DOUBLINGS)
            self._at = self._failed_at = now

    def succeeded(self, now: float) -> None:
        """Record a request that was answered at `now`."""
        if self._doublings:
            left = self._current(now) / 2.0
            self._doublings = left if left > FORGOTTEN else 0.0
            self._at = now

    def forget(self) -> None:
        """Begin again, because another mechanism has kept requests from the node."""
        self._doublings = 0.0

    def factor(self, now: float) -> float:
        """Return by what the load is multiplied, at least 1."""
        return float(2.0 ** self._current(now)) if self._doublings else 1.0

    def _current(self, now: float) -> float:
        return float(self._doublings * 2.0 ** -(max(now - self._at, 0.0) / self._half_life))


class Candidate(Protocol):
    """A node that may be selected."""

    @property
    def lease(self) -> int | None:
        """How many requests its lease still allows; None without leases."""

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
    """Selects each node in turn.

    A node loses a part of its turns if it has failed recently, or if its lease allows fewer requests than another one.
    """

    __slots__ = ("_last", "_saved")

    def __init__(self) -> None:
        self._last = -1
        # By node, the parts of turns that it was passed over for.
        self._saved: list[float] = []

    def pick(self, candidates: Sequence[Candidate], now: float) -> int:
        """Return the index of the node whose turn it is."""
        count = len(candidates)
        for _ in range(count):
            self._last = (self._last + 1) % count
            candidate = candidates[self._last]
            if candidate.lease is None and candidate.failures.factor(now) == 1.0:
                break
            if len(self._saved) != count:
                self._saved = [0.0] * count
            self._saved[self._last] += _share(self._last, candidates, now)
            if self._saved[self._last] >= 1.0:
                self._saved[self._last] -= 1.0
                break
        return self._last


class LeastLoaded:
    """Selects the node with the lowest load: its latency times the requests in progress, including this one.

    Recent failures multiply the load, so that a node is not preferred because it fails fast. So does a lease that
    allows fewer requests than another one. A node that has not responded yet gets one request, to measure it; if that
    fails, it is assumed to be as slow as the slowest one. Nodes with equal load take turns.
    """

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last = -1

    def pick(self, candidates: Sequence[Candidate], now: float) -> int:
        """Return the index of the node with the lowest load."""
        self._last = (self._last + 1) % len(candidates)
        largest = _largest_lease(candidates)
        slowest = max([candidate.latency.seconds(now) for candidate in candidates])
        loads = [_load(candidate, now, largest, slowest) for candidate in candidates]
        least = min(loads)
        return loads.index(least, self._last if least in loads[self._last :] else 0)


def _largest_lease(candidates: Sequence[Candidate]) -> int:
    return max([candidate.lease or 0 for candidate in candidates])


def _weight(candidate: Candidate, now: float, largest: int) -> float:
    """Return how many requests a node should get, compared with one that has `largest` left and does not fail."""
    lease = candidate.lease
    leased = 1.0 if lease is None or not largest else lease / largest
    return leased / candidate.failures.factor(now)


def _share(index: int, candidates: Sequence[Candidate], now: float) -> float:
    """Return how many requests a node should get, compared with the best one."""
    largest = _largest_lease(candidates)
    weights = [_weight(candidate, now, largest) for candidate in candidates]
    return weights[index] / max(weights)


def _load(candidate: Candidate, now: float, largest: int, slowest: float) -> float:
    """Return the load of a node with one more request."""
    weight = _weight(candidate, now, largest)
    if not weight:
        return inf
    seconds = candidate.latency.seconds(now)
    if not seconds:
        if candidate.outstanding or not slowest:
            return UNKNOWN * (candidate.outstanding + 1.0 / weight - 1.0)
        seconds = slowest if candidate.failures.factor(now) > 1.0 else 0.0
    return seconds * (candidate.outstanding + 1) / weight


STRATEGIES: Final[dict[str, type[RoundRobin | LeastLoaded]]] = {"round-robin": RoundRobin, "least-loaded": LeastLoaded}


def strategy_named(name: str) -> Strategy:
    """Return a new strategy with this name.

    Raises:
        LocalError: The name is unknown.

    """
    if name not in STRATEGIES:
        raise LocalError(f"unknown strategy {name!r}; use one of {', '.join(STRATEGIES)}")
    return STRATEGIES[name]()
