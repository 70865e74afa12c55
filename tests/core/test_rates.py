from __future__ import annotations


def test_rate_exceeds_its_limit_and_recovers(build) -> None:
    rate = build.module("penstock.core.rates").Rate(3, 10.0)
    assert [rate.hit(1.0) for _ in range(5)] == [False, False, False, True, True]
    assert rate.hit(10.9)
    assert not rate.hit(11.0)


def test_limit_of_one_event_allows_one(build) -> None:
    module = build.module("penstock.core.rates")
    rate, rates = module.Rate(1, 10.0), module.Rates(1, 10.0)
    assert [rate.hit(0.0), rate.hit(0.0)] == [False, True]
    rates.hit("a", 0.0)
    assert not rates.exceeded("a", 0.0)
    rates.hit("a", 0.0)
    assert rates.exceeded("a", 0.0)


def test_count_adds_several_events(build) -> None:
    rate = build.module("penstock.core.rates").Rate(100, 10.0)
    assert not rate.hit(0.0, 100)
    assert rate.hit(0.0)


def test_limit_0_is_never_exceeded(build) -> None:
    rate = build.module("penstock.core.rates").Rate(0, 1.0)
    assert not any(rate.hit(0.0) for _ in range(1000))


def test_rates_count_each_source(build) -> None:
    rates = build.module("penstock.core.rates").Rates(2, 10.0)
    for _ in range(3):
        rates.hit("a", 1.0)
    rates.hit("b", 1.0)
    assert rates.exceeded("a", 10.9) and not rates.exceeded("b", 1.0) and not rates.exceeded("c", 1.0)
    assert not rates.exceeded("a", 11.0)
    assert len(rates._counts) <= 1


def test_rates_with_limit_0_are_never_exceeded(build) -> None:
    rates = build.module("penstock.core.rates").Rates(0, 10.0)
    for _ in range(1_000):
        rates.hit("a", 1.0)
    assert not rates.exceeded("a", 1.0)
