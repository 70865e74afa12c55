from __future__ import annotations

import pytest

from weirpool import FixedLease, IntervalLease, Lease, LeaseUsage
from weirpool.core.timers import Timer, TimerTable
from weirpool.rsocket.lease import RETRY_SECONDS, LeaseRequester, LeaseResponder, Leases
from weirpool.wire.rsocket.frames import LeaseFrame


def test_requests_are_counted_against_the_lease() -> None:
    requester = LeaseRequester(TimerTable())
    assert not requester.take()
    assert requester.received(LeaseFrame(1000, 2), 5.0) == Lease(2, 1.0)
    assert [requester.take() for _ in range(3)] == [True, True, False]


def test_last_lease_replaces_earlier_ones() -> None:
    timers = TimerTable()
    requester = LeaseRequester(timers)
    requester.received(LeaseFrame(1000, 100), 0.0)
    requester.received(LeaseFrame(3000, 1), 0.5)
    assert (requester.remaining, timers.next()) == (1, 3.5)


@pytest.mark.parametrize(("ttl_ms", "requests"), [(0, 5), (5, 0), (0, 0)])
def test_lease_of_0_requests_stops_requests(ttl_ms: int, requests: int) -> None:
    requester = LeaseRequester(TimerTable())
    requester.received(LeaseFrame(1000, 100), 0.0)
    requester.received(LeaseFrame(ttl_ms, requests), 0.5)
    assert not requester.take()


def test_lease_expires() -> None:
    timers = TimerTable()
    requester = LeaseRequester(timers)
    requester.received(LeaseFrame(1000, 100), 0.0)
    assert timers.expired(1.0) == [Timer.LEASE]
    requester.expire()
    assert not requester.take()


def test_lease_that_ends_with_its_link_does_not_expire() -> None:
    timers = TimerTable()
    requester = LeaseRequester(timers)
    requester.received(LeaseFrame(1000, 100), 0.0)
    requester.expire()
    assert timers.next() is None


# THREATS 33.
def test_long_times_are_limited() -> None:
    requester = LeaseRequester(TimerTable())
    lease = requester.received(LeaseFrame(0, 2**64 - 1, None, 2**64 - 1), 0.0)
    assert (lease.requests, lease.ttl) == (2**31 - 1, 2_147_483.647)


def test_nanoseconds_are_converted_to_seconds() -> None:
    assert LeaseRequester(TimerTable()).received(LeaseFrame(0, 1, None, 1_500_000_000), 0.0).ttl == 1.5


def responder(policy: object) -> tuple[LeaseResponder, TimerTable]:
    timers = TimerTable()
    return LeaseResponder(policy, timers), timers  # type: ignore[arg-type]


def test_requests_without_a_lease_are_rejected() -> None:
    grants, _ = responder(FixedLease(2, 10.0))
    assert not grants.admit(100.0)
    frame = grants.due(100.0, 0)
    assert frame is not None
    assert (frame.number_of_requests, frame.ttl_ms, frame.ttl_ns) == (2, 10_000, 10_000_000_000)
    assert [grants.admit(101.0) for _ in range(3)] == [True, True, False]


def test_requests_after_expiry_are_rejected() -> None:
    grants, _ = responder(FixedLease(5, 10.0))
    grants.due(0.0, 0)
    assert grants.admit(9.9)
    assert not grants.admit(10.0)


def test_policy_is_asked_when_a_lease_is_used_up() -> None:
    grants, timers = responder(FixedLease(2, 10.0))
    grants.due(0.0, 0)
    grants.admit(1.0)
    assert timers.next() == 10.0
    grants.admit(1.0)
    assert timers.next() == 0.0
    timers.expired(1.0)
    assert grants.due(1.0, 0) is not None


def test_policy_is_asked_after_an_interval() -> None:
    grants, timers = responder(IntervalLease(1, 10.0))
    grants.due(0.0, 0)
    grants.admit(1.0)
    timers.expired(1.0)
    assert grants.due(1.0, 0) is None
    assert timers.next() == 10.0


class Noting:
    """A policy that notes what it is asked, and grants the same each time."""

    def __init__(self, lease: Lease | None) -> None:
        self.lease = lease
        self.asked: list[LeaseUsage] = []

    def grant(self, usage: LeaseUsage) -> Lease | None:
        self.asked.append(usage)
        return self.lease


def test_policy_that_grants_nothing_is_asked_again() -> None:
    policy = Noting(None)
    grants, timers = responder(policy)
    assert grants.due(5.0, 3) is None
    assert policy.asked == [LeaseUsage(0, True, 3)]
    assert timers.next() == 5.0 + RETRY_SECONDS


def test_policy_is_told_what_is_left_of_a_valid_lease() -> None:
    policy = Noting(Lease(5, 10.0))
    grants, _ = responder(policy)
    grants.due(0.0, 0)
    grants.admit(1.0)
    policy.lease = None
    grants.due(9.9, 1)
    grants.due(10.0, 1)
    assert policy.asked == [LeaseUsage(0, True, 0), LeaseUsage(4, False, 1), LeaseUsage(0, True, 1)]


@pytest.mark.parametrize(("size", "limited"), [(10**12, 2**31 - 1), (-1, 0)])
def test_leases_are_limited_to_the_range_of_the_protocol(size: int, limited: int) -> None:
    grants, _ = responder(Noting(Lease(size, size)))
    frame = grants.due(0.0, 0)
    assert frame is not None
    assert (frame.number_of_requests, frame.ttl_ms) == (limited, limited)


def test_shortest_lease_has_a_millisecond() -> None:
    grants, _ = responder(Noting(Lease(1, 0.0001)))
    frame = grants.due(0.0, 0)
    assert frame is not None
    assert (frame.ttl_ms, frame.ttl_ns) == (1, 100_000)


def test_policy_that_grants_no_time_is_asked_a_second_later() -> None:
    grants, timers = responder(Noting(Lease(5, 0.0)))
    grants.due(5.0, 0)
    assert not grants.admit(5.0)
    assert timers.next() == 5.0 + RETRY_SECONDS


def test_session_without_leases_loses_none_with_its_link() -> None:
    leases = Leases(TimerTable())
    leases.suspend()
    assert (leases.requester, leases.responder) == (None, None)


def test_lease_ends_with_its_link() -> None:
    grants, timers = responder(FixedLease(5, 10.0))
    grants.due(0.0, 0)
    grants.stop()
    assert timers.next() is None
    assert not grants.admit(1.0)
    assert grants.due(2.0, 0) is not None
