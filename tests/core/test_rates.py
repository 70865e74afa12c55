from __future__ import annotations


def test_rate_exceeds_its_limit_and_recovers(build) -> None:
    rate = build.module("weirpool.core.rates").Rate(3, 10.0)
    assert [rate.hit(1.0) for _ in range(5)] == [False, False, False, True, True]
    assert rate.hit(10.9)
    assert not rate.hit(11.0)


def test_limit_of_one_event_allows_one(build) -> None:
    rate = build.module("weirpool.core.rates").Rate(1, 10.0)
    assert [rate.hit(0.0), rate.hit(0.0)] == [False, True]


def test_count_adds_several_events(build) -> None:
    rate = build.module("weirpool.core.rates").Rate(100, 10.0)
    assert not rate.hit(0.0, 100)
    assert rate.hit(0.0)


def test_limit_0_is_never_exceeded(build) -> None:
    rate = build.module("weirpool.core.rates").Rate(0, 1.0)
    assert not any(rate.hit(0.0) for _ in range(1000))
