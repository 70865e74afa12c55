from __future__ import annotations


def test_a_rate_trips_beyond_its_limit_and_recovers(build) -> None:
    rate = build.module("penstock.core.rates").Rate(3, 10.0)
    assert [rate.hit(1.0) for _ in range(5)] == [False, False, False, True, True]
    assert rate.hit(10.9)
    assert not rate.hit(11.0)


def test_many_at_once_count_as_many(build) -> None:
    rate = build.module("penstock.core.rates").Rate(100, 10.0)
    assert not rate.hit(0.0, 100)
    assert rate.hit(0.0)


def test_no_limit_never_trips(build) -> None:
    rate = build.module("penstock.core.rates").Rate(0, 1.0)
    assert not any(rate.hit(0.0) for _ in range(1000))
