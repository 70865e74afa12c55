"""LEASE: leases for requests, granted to the peer and received from it.

RSocket 1.0, LEASE Frame and Lease Semantics. All times are of the session's monotonic clock, which is not
affected by changes of the wall clock.
"""

from __future__ import annotations

from typing import Final

from ..core.timers import Timer, TimerTable
from ..leases import LONGEST, FixedLease, Lease, LeasePolicy, LeaseUsage
from ..wire.rsocket.frames import LeaseFrame

__all__ = ["LeaseRequester", "LeaseResponder", "Leases"]

MAX_REQUESTS: Final = 0x7FFFFFFF
NANOSECONDS: Final = 1_000_000_000
RETRY_SECONDS: Final = 1.0
"""Seconds after which a policy that grants nothing is asked again."""
UNLIMITED: Final = FixedLease(MAX_REQUESTS, LONGEST)
"""The policy if leases are enabled without a policy."""


class LeaseRequester:
    """The requester's side: counts the requests that the peer's lease allows.

    Attributes:
        remaining: How many requests remain.

    """

    __slots__ = ("_timers", "remaining")

    def __init__(self, timers: TimerTable) -> None:
        self._timers = timers
        self.remaining = 0

    def take(self) -> bool:
        """Use one request of the lease; return False if none remains."""
        if self.remaining <= 0:
            return False
        self.remaining -= 1
        return True

    def received(self, frame: LeaseFrame, now: float) -> Lease:
        """Replace the current lease with the one in `frame`, and return it."""
        # ReactiveSocket 0.0 has nanoseconds of 64 bits; longer times are reduced to the longest supported one. Numbers
        # of ReactiveSocket 0.2 are signed: a lease of less than nothing allows nothing, as 0 does.
        ttl = frame.ttl_ns / NANOSECONDS if frame.ttl_ns else frame.ttl_ms / 1000
        lease = Lease(max(0, min(frame.number_of_requests, MAX_REQUESTS)), max(0.0, min(ttl, LONGEST)))
        self.remaining = lease.requests if lease.ttl > 0 else 0
        self._timers.set(Timer.LEASE, now + lease.ttl)
        return lease

    def expire(self) -> None:
        """End the lease because it has expired or its link is lost."""
        self.remaining = 0
        self._timers.stop(Timer.LEASE)


class LeaseResponder:
    """The responder's side: grants leases by a policy, and rejects requests without one.

    Args:
        policy: Decides on leases.
        timers: The timers of the session.

    """

    __slots__ = ("_expires", "_policy", "_remaining", "_timers")

    def __init__(self, policy: LeasePolicy, timers: TimerTable) -> None:
        self._policy = policy
        self._timers = timers
        self._remaining = 0
        self._expires = 0.0

    def admit(self, now: float) -> bool:
        """Count a request; return whether the lease allows it."""
        if self._remaining <= 0 or now >= self._expires:
            return False
        self._remaining -= 1
        if self._remaining == 0:
            self.reconsider()
        return True

    def reconsider(self) -> None:
        """Let the timer expire at once, so that `due` asks the policy, because requests have changed."""
        self._timers.set(Timer.GRANT, 0.0)

    def stop(self) -> None:
        """Grant nothing while there is no link.

        RSocket 1.0, Resuming Operation: leases do not carry over, and MUST be restarted by sending one.
        """
        self._expires = 0.0
        self._timers.stop(Timer.GRANT)

    def due(self, now: float, in_flight: int) -> LeaseFrame | None:
        """Return the LEASE to send if the policy grants one, and set the timer to ask the policy again."""
        expired = now >= self._expires
        remaining = 0 if expired else self._remaining
        lease = self._policy.grant(LeaseUsage(remaining, expired, in_flight))
        if lease is not None:
            self._remaining = max(0, min(lease.requests, MAX_REQUESTS))
            self._expires = now + max(0.0, min(lease.ttl, LONGEST))
        self._timers.set(Timer.GRANT, self._expires if self._expires > now else now + RETRY_SECONDS)
        if lease is None:
            return None
        ttl = self._expires - now
        return LeaseFrame(max(1, round(ttl * 1000)) if ttl else 0, self._remaining, None, round(ttl * NANOSECONDS))


class Leases:
    """The leases of a session, in both directions.

    Attributes:
        requester: Counts requests of this side; None if they need no lease.
        responder: Counts requests of the peer; None if they need no lease.

    """

    __slots__ = ("_timers", "requester", "responder")

    def __init__(self, timers: TimerTable) -> None:
        self._timers = timers
        self.requester: LeaseRequester | None = None
        self.responder: LeaseResponder | None = None

    def use(self, policy: LeasePolicy | bool, *, request: bool, respond: bool) -> None:
        """Require leases for requests of this side (`request`), of the peer (`respond`), or both."""
        if request:
            self.requester = LeaseRequester(self._timers)
        if respond:
            self.responder = LeaseResponder(UNLIMITED if isinstance(policy, bool) else policy, self._timers)

    def suspend(self) -> None:
        """End the leases of a lost link."""
        if self.requester is not None:
            self.requester.expire()
        if self.responder is not None:
            self.responder.stop()
