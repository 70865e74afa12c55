"""LEASE: leave for requests, given to the peer and got from it.

RSocket 1.0, LEASE Frame and Lease Semantics. Times are those of the session's monotonic clock: how long a lease
holds does not depend on anybody's calendar.
"""

from __future__ import annotations

from typing import Final

from ..core.timers import Timer, TimerTable
from ..leases import LONGEST, Lease, LeasePolicy, LeaseUsage
from ..wire.rsocket.frames import LeaseFrame

__all__ = ["Granting", "Honoring"]

MOST: Final = 0x7FFFFFFF
NANOSECONDS: Final = 1_000_000_000
ASK_AGAIN: Final = 1.0
"""Seconds after which a policy that grants nothing is asked again."""


class Honoring:
    """The requester's side: counts the requests that the peer's lease gives leave for.

    Attributes:
        left: How many are left.

    """

    __slots__ = ("_timers", "left")

    def __init__(self, timers: TimerTable) -> None:
        self._timers = timers
        self.left = 0

    def take(self) -> bool:
        """Use one request up; return False where there is none left."""
        if self.left <= 0:
            return False
        self.left -= 1
        return True

    def received(self, frame: LeaseFrame, now: float) -> Lease:
        """Take a LEASE, which overrides what was left of the one before."""
        # ReactiveSocket 0.0 has nanoseconds of 64 bits; what no clock reaches is cut off.
        ttl = frame.ttl_ns / NANOSECONDS if frame.ttl_ns else frame.ttl_ms / 1000
        lease = Lease(min(frame.number_of_requests, MOST), min(ttl, LONGEST))
        self.left = lease.requests if lease.ttl > 0 else 0
        self._timers.set(Timer.LEASE, now + lease.ttl)
        return lease

    def expire(self) -> None:
        """The lease is over, because of its time or its link."""
        self.left = 0
        self._timers.stop(Timer.LEASE)


class Granting:
    """The responder's side: gives leases, as a policy says, and refuses what comes without.

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
        """Whether a request that came now has leave; it is counted."""
        if self._left <= 0 or now >= self._expires:
            return False
        self._left -= 1
        if self._left == 0:
            self.look()
        return True

    def look(self) -> None:
        """Have `due` called at the next occasion: something has changed."""
        self._timers.set(Timer.GRANT, 0.0)

    def restart(self) -> None:
        """Begin anew on another link.

        RSocket 1.0, Resuming Operation: leases do not carry over, and MUST be restarted by sending one.
        """
        self._left = 0
        self._expires = 0.0

    def stop(self) -> None:
        """Grant nothing while there is no link."""
        self.restart()
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
