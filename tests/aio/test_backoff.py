from __future__ import annotations

from penstock.aio.backoff import Backoff, resuming


def test_times_double_and_stay_within_their_half() -> None:
    backoff = Backoff(first=1.0, longest=8.0)
    for whole in (1.0, 2.0, 4.0, 8.0, 8.0, 8.0):
        assert whole / 2 <= backoff.next() <= whole


def test_reset_begins_anew() -> None:
    backoff = Backoff(first=1.0, longest=8.0)
    for _ in range(5):
        backoff.next()
    backoff.reset()
    assert backoff.next() <= 1.0


def test_it_never_overflows() -> None:
    backoff = Backoff()
    assert all(backoff.next() <= 10.0 for _ in range(5000))


def test_factor_and_jitter_may_be_chosen() -> None:
    backoff = Backoff(first=1.0, longest=100.0, factor=3.0, jitter=0.0)
    assert [backoff.next() for _ in range(6)] == [1.0, 3.0, 9.0, 27.0, 81.0, 100.0]
    backoff = Backoff(first=1.0, jitter=1.0)
    assert 0.0 <= backoff.next() <= 1.0


def test_the_longest_time_bounds_the_first_one() -> None:
    assert Backoff(first=5.0, longest=1.0, jitter=0.0).next() == 1.0


def test_an_excuse_begins_anew() -> None:
    backoff = Backoff(jitter=0)
    assert [backoff.next(), backoff.next()] == [0.1, 0.2]
    backoff.excuse()
    assert backoff.next() == 0.1


def test_tries_for_a_session_that_may_be_alive_are_never_far_apart() -> None:
    backoff = resuming()
    assert all(backoff.next() <= 1.0 for _ in range(50))
