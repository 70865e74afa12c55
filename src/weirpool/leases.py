"""Leases: how many requests a responder allows, and for how long.

RSocket 1.0, Lease Semantics: the protocol only counts; the application chooses a policy. A policy is any object with
a `grant` method like those below. One policy may serve many connections, so it must not keep state per connection.
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
    """Permission for `requests` requests within `ttl` seconds. If either is 0, no requests are allowed."""

    requests: int
    ttl: float


@dataclass(frozen=True, slots=True)
class LeaseUsage:
    """The usage of a peer's lease.

    Attributes:
        left: Requests that it may still send; 0 after the lease has expired.
        expired: There was no lease yet, or it has expired.
        in_flight: Requests from the peer that are being processed.

    """

    left: int
    expired: bool
    in_flight: int


class LeasePolicy(Protocol):
    """Decides how many requests a peer may send."""

    def grant(self, usage: LeaseUsage) -> Lease | None:
        """Return a new lease, which replaces the peer's current one, or None to keep the current one.

        Called when a connection is set up or resumed, when a lease has expired or is used up, and after each response
        to a request of the peer while a lease is valid.
        """


@dataclass(frozen=True, slots=True)
class FixedLease:
    """Allow another `requests` requests as soon as the previous ones are used up or `ttl` seconds have passed."""

    requests: int = 1_000
    ttl: float = 60.0

    def __post_init__(self) -> None:
        _check(self.requests, self.ttl)

    def grant(self, usage: LeaseUsage) -> Lease | None:
        """Renew a lease that is used up or expired; see :class:`LeasePolicy`."""
        return Lease(self.requests, self.ttl) if usage.left == 0 else None


@dataclass(frozen=True, slots=True)
class IntervalLease:
    """Allow `requests` requests in every `interval` seconds: a rate."""

    requests: int
    interval: float = 1.0

    def __post_init__(self) -> None:
        _check(self.requests, self.interval)

    def grant(self, usage: LeaseUsage) -> Lease | None:
        """Renew an expired lease; see :class:`LeasePolicy`."""
        return Lease(self.requests, self.interval) if usage.expired else None


@dataclass(frozen=True, slots=True)
class AdaptiveLease:
    """Allow enough requests to keep `concurrency` of them in flight.

    When responses are slow, the peer gets fewer. As they complete, it gets more, half of `concurrency` at a time.
    """

    concurrency: int
    ttl: float = 30.0

    def __post_init__(self) -> None:
        _check(self.concurrency, self.ttl)

    def grant(self, usage: LeaseUsage) -> Lease | None:
        """Grant the free capacity according to `usage`; see :class:`LeasePolicy`."""
        free = max(0, self.concurrency - usage.in_flight)
        if usage.expired or free - usage.left >= (self.concurrency + 1) // 2:
            return Lease(free, self.ttl)
        return None


def _check(requests: int, seconds: float) -> None:
    if not 1 <= requests <= 0x7FFFFFFF:
        raise LocalError(f"a lease for {requests} requests; it must be for 1 to 2^31-1")
    if not 0.001 <= seconds <= LONGEST:
        raise LocalError(f"a lease of {seconds} seconds; it must be of 0.001 to {LONGEST}")
