"""LEASE: leases for requests, granted to the peer and received from it.

RSocket 1.0, LEASE Frame and Lease Semantics. Times are those of the session's monotonic clock, so that
wall-clock changes do not matter.
"""

from __future__ import annotations

from typing import Final

from ..core.timers import Timer, TimerTable
from ..leases import LONGEST, FixedLease, Lease, LeasePolicy, LeaseUsage
from ..wire.rsocket.frames import LeaseFrame

__all__ = ["LeaseRequester", "LeaseResponder", "Leases"]

MOST: Final = 0x7FFFFFFF
NANOSECONDS: Final = 1_000_000_000
ASK_AGAIN: Final = 1.0
"""Seconds after which a policy that grants nothing is asked again."""
UNLIMITED: Final = FixedLease(MOST, LONGEST)
"""The policy where leases are requested and the settings name none."""


class LeaseRequester:
    """The requester's side: counts the requests that the peer's lease allows.

    Attributes:
        left: How many requests are left.

    """

    __slots__ = ("_timers", "left")

    def __init__(self, timers: TimerTable) -> None:
        self._timers = timers
        self.left = 0

    def take(self) -> bool:
        """Use one request of the lease; return False if none is left."""
        if self.left <= 0:
            return False
        self.left -= 1
        return True

    def received(self, frame: LeaseFrame, now: float) -> Lease:
        """Take a LEASE, which overrides what was left of the one before."""
        # ReactiveSocket 0.0 has nanoseconds of 64 bits; longer times are cut to the longest supported one.
        ttl = frame.ttl_ns / NANOSECONDS if frame.ttl_ns else frame.ttl_ms / 1000
        lease = Lease(min(frame.number_of_requests, MOST), min(ttl, LONGEST))
        self.left = lease.requests if lease.ttl > 0 else 0
        self._timers.set(Timer.LEASE, now + lease.ttl)
        return lease

    def expire(self) -> None:
        """End the lease: its time is over, or its link is gone."""
        self.left = 0
        self._timers.stop(Timer.LEASE)


class LeaseResponder:
    """The responder's side: grants leases by a policy, and refuses requests without one.

    Args:
        policy: Decides on leases.
        timers: Of the session.

    """

    __slots__ = ("_expires", "_left", "_policy", "_timers")

    def __init__(self, policy: LeasePolicy, timers: TimerTable) -> None:
        self._policy = policy
        self._timers = timers
        self._left = 0
        self._expires = 0.0

    def admit(self, now: float) -> bool:
        """Count a request; return whether the lease allows it."""
        if self._left <= 0 or now >= self._expires:
            return False
        self._left -= 1
        if self._left == 0:
            self.look()
        return True

    def look(self) -> None:
        """Set the timer off at once, so that `due` asks the policy: something has changed."""
        self._timers.set(Timer.GRANT, 0.0)

    def stop(self) -> None:
        """Grant nothing while there is no link.

        RSocket 1.0, Resuming Operation: leases do not carry over, and MUST be restarted by sending one.
        """
        self._left = 0
        self._expires = 0.0
        self._timers.stop(Timer.GRANT)

    def due(self, now: float, in_flight: int) -> LeaseFrame | None:
        """Return the LEASE to send now, if the policy wants one, and set the timer for the end of its time."""
        expired = now >= self._expires
        left = 0 if expired else self._left
        lease = self._policy.grant(LeaseUsage(left, expired, in_flight))
        if lease is not None:
            self._left = max(0, min(lease.requests, MOST))
            self._expires = now + max(0.0, min(lease.ttl, LONGEST))
        self._timers.set(Timer.GRANT, self._expires if self._expires > now else now + ASK_AGAIN)
        if lease is None:
            return None
        ttl = self._expires - now
        return LeaseFrame(max(1, round(ttl * 1000)) if ttl else 0, self._left, None, round(ttl * NANOSECONDS))


class Leases:
    """The leases of both directions of a session, where they are used.

    Attributes:
        requester: Counts requests of this side; None: they need no lease.
        responder: Counts requests of the peer; None: they need no lease.

    """

    __slots__ = ("_timers", "requester", "responder")

    def __init__(self, timers: TimerTable) -> None:
        self._timers = timers
        self.requester: LeaseRequester | None = None
        self.responder: LeaseResponder | None = None

    def use(self, policy: LeasePolicy | bool, *, request: bool, respond: bool) -> None:
        """Let requests of this side, of the peer, or of both need leases from now on."""
        if request:
            self.requester = LeaseRequester(self._timers)
        if respond:
            self.responder = LeaseResponder(UNLIMITED if isinstance(policy, bool) else policy, self._timers)

    def suspend(self) -> None:
        """End the leases of a link that is gone."""
        if self.requester is not None:
            self.requester.expire()
        if self.responder is not None:
            self.responder.stop()
