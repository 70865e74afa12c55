"""Leases: how many requests a responder gives leave for, and for how long.

RSocket 1.0, Lease Semantics: the protocol only counts; the policy is the application's. A policy is any object with
a `grant` method such as those below; one policy may serve many connections, so it keeps no state of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from .errors import LocalError

__all__ = ["LONGEST", "AdaptiveLease", "FixedLease", "IntervalLease", "Lease", "LeasePolicy", "LeaseUsage"]

LONGEST: Final = 2_147_483.647
"""RSocket 1.0, LEASE Frame: 31 bits of milliseconds."""


@dataclass(frozen=True, slots=True)
class Lease:
    """Leave for `requests` requests within `ttl` seconds. Either being 0 stops all requests."""

    requests: int
    ttl: float


@dataclass(frozen=True, slots=True)
class LeaseUsage:
    """How the lease that a peer has is used.

    Attributes:
        left: Requests that it may still send; 0 once the lease has expired.
        expired: There was none yet, or its time is over.
        in_flight: Requests of the peer's that are being answered.

    """

    left: int
    expired: bool
    in_flight: int


class LeasePolicy(Protocol):
    """Decides what a peer may ask for."""

    def grant(self, usage: LeaseUsage) -> Lease | None:
        """Return a new lease, which replaces the one that the peer has, or None to leave that as it is.

        Called when a connection is set up or resumed, when a lease has expired or is used up, and while one is in
        force each time a request of the peer's has been answered.
        """


@dataclass(frozen=True, slots=True)
class FixedLease:
    """Always leave for another `requests` requests, as soon as those before are used up or `ttl` seconds are over."""

    requests: int = 1_000
    ttl: float = 60.0

    def __post_init__(self) -> None:
        _check(self.requests, self.ttl)

    def grant(self, usage: LeaseUsage) -> Lease | None:
        """Renew what is used up, as `usage` says; see :class:`LeasePolicy`."""
        return Lease(self.requests, self.ttl) if usage.left == 0 else None


@dataclass(frozen=True, slots=True)
class IntervalLease:
    """Leave for `requests` requests in every `interval` seconds, and no more: a rate."""

    requests: int
    interval: float = 1.0

    def __post_init__(self) -> None:
        _check(self.requests, self.interval)

    def grant(self, usage: LeaseUsage) -> Lease | None:
        """Renew what is expired, as `usage` says; see :class:`LeasePolicy`."""
        return Lease(self.requests, self.interval) if usage.expired else None


@dataclass(frozen=True, slots=True)
class AdaptiveLease:
    """Leave for as many requests as keep `concurrency` of them in flight.

    While slow answers pile up, the peer gets less; as they leave, it gets more, half of `concurrency` at a time.
    """

    concurrency: int
    ttl: float = 30.0

    def __post_init__(self) -> None:
        _check(self.concurrency, self.ttl)

    def grant(self, usage: LeaseUsage) -> Lease | None:
        """Give leave for what is free by `usage`; see :class:`LeasePolicy`."""
        free = max(0, self.concurrency - usage.in_flight)
        if usage.expired or free - usage.left >= (self.concurrency + 1) // 2:
            return Lease(free, self.ttl)
        return None


def _check(requests: int, seconds: float) -> None:
    if not 1 <= requests <= 0x7FFFFFFF:
        raise LocalError(f"a lease for {requests} requests; it must be for 1 to 2^31-1")
    if not 0.001 <= seconds <= LONGEST:
        raise LocalError(f"a lease of {seconds} seconds; it must be of 0.001 to {LONGEST}")
