from __future__ import annotations

from penstock.aio.backoff import Backoff


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
