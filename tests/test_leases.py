from __future__ import annotations

import pytest

from weirpool import AdaptiveLease, FixedLease, IntervalLease, Lease, LeaseUsage, LocalError


def usage(left: int, *, expired: bool = False, in_flight: int = 0) -> LeaseUsage:
    return LeaseUsage(left, expired, in_flight)


def test_fixed_lease_is_renewed_when_used_up() -> None:
    policy = FixedLease(10, 5.0)
    assert policy.grant(usage(0, expired=True)) == Lease(10, 5.0)
    assert policy.grant(usage(3)) is None
    assert policy.grant(usage(0)) == Lease(10, 5.0)


def test_interval_lease_is_renewed_after_interval() -> None:
    policy = IntervalLease(10, 0.5)
    assert policy.grant(usage(0, expired=True)) == Lease(10, 0.5)
    assert policy.grant(usage(0)) is None


def test_adaptive_lease_follows_requests_in_flight() -> None:
    policy = AdaptiveLease(8, 30.0)
    assert policy.grant(usage(0, expired=True)) == Lease(8, 30.0)
    assert policy.grant(usage(0, in_flight=8)) is None
    assert policy.grant(usage(0, in_flight=5)) is None
    assert policy.grant(usage(0, in_flight=4)) == Lease(4, 30.0)
    assert policy.grant(usage(0, expired=True, in_flight=20)) == Lease(0, 30.0)


@pytest.mark.parametrize("requests", [0, -1, 2**31])
def test_lease_with_invalid_requests_raises(requests: int) -> None:
    with pytest.raises(LocalError, match="requests"):
        FixedLease(requests)


@pytest.mark.parametrize("seconds", [0.0, -1.0, 2_147_484.0])
def test_lease_with_invalid_seconds_raises(seconds: float) -> None:
    with pytest.raises(LocalError, match="seconds"):
        IntervalLease(1, seconds)
