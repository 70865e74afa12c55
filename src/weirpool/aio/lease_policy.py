"""A lease policy that grants nothing when the application's own policy fails."""

from __future__ import annotations

import logging
from dataclasses import replace
from operator import index
from typing import Final

from ..leases import Lease, LeasePolicy, LeaseUsage
from ..settings import Settings

__all__ = ["ContainedPolicy", "contained_lease"]

logger = logging.getLogger("weirpool.aio")

NOTHING: Final = Lease(0, 1.0)
"""What a peer gets whose lease is used up. The policy is asked again when it ends."""


class ContainedPolicy:
    """Asks a policy of the application for leases.

    If it raises, or returns what is no lease, the peer keeps what is left of its lease, or waits. Its connection and
    streams go on, and the policy is asked again a second later. The first of several failures in a row is logged.
    """

    def __init__(self, policy: LeasePolicy) -> None:
        self._policy = policy
        self._failing = False

    def grant(self, usage: LeaseUsage) -> Lease | None:
        """Return what the policy grants; no new lease if it fails."""
        try:
            lease = self._policy.grant(usage)
            if lease is not None:
                lease = Lease(index(lease.requests), float(lease.ttl))
        except Exception:
            if not self._failing:
                logger.exception("the lease policy %r failed, so that peers get no new leases", self._policy)
            self._failing = True
            return None if usage.left else NOTHING
        self._failing = False
        return lease


def contained_lease(settings: Settings) -> Settings:
    """Return `settings` whose lease policy, if there is one, cannot fail."""
    policy = settings.lease
    return settings if isinstance(policy, bool | ContainedPolicy) else replace(settings, lease=ContainedPolicy(policy))
