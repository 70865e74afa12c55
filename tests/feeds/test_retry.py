from __future__ import annotations

import pytest

from weirpool.feeds import retry
from weirpool.feeds.retry import LinkBackoff, Retry
from weirpool.feeds.values import Seconds


class Clock:
    """A clock that a test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(retry, "monotonic", lambda: self.now)


def test_delays_grow_to_the_longest() -> None:
    backoff = Retry(first=Seconds(1), factor=3, longest=Seconds(10), jitter=0).backoff()
    assert [backoff.next() for _ in range(4)] == [1, 3, 9, 10]


def test_delays_grow_although_items_arrive_before_each_failure() -> None:
    backoff = Retry(first=Seconds(1), factor=2, longest=Seconds(60), jitter=0).backoff()
    backoff.worked(3_600)
    delays = []
    for _ in range(7):
        delays.append(backoff.next())
        backoff.worked(0.5)
    assert delays == [1, 2, 4, 8, 16, 32, 60]
    backoff.worked(60)
    assert backoff.next() == 1


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"first": Seconds(0)}, "first is 0"),
        ({"first": Seconds(9), "longest": Seconds(5)}, "at most longest"),
        ({"factor": 0.5}, "factor is 0.5"),
        ({"factor": float("nan")}, "factor is nan"),
        ({"jitter": 1.5}, "jitter is 1.5"),
    ],
)
def test_invalid_policy_is_an_error(options: dict[str, Seconds], part: str) -> None:
    with pytest.raises(ValueError, match=part):
        Retry(**options)


def test_attempts_are_frequent_while_the_session_may_continue(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    backoff = LinkBackoff(Retry(jitter=0, longest=Seconds(40)))
    for _ in range(70):
        delay = backoff.next()
        assert delay <= 1
        clock.now += 59 / 70
    clock.now += 2
    assert [backoff.next() for _ in range(7)] == [1, 2, 4, 8, 16, 32, 40]


def test_outage_ends_only_with_a_stream_that_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    backoff = LinkBackoff(Retry(jitter=0))
    backoff.next()
    clock.now += 100
    assert [backoff.next(), backoff.next()] == [1, 2]
    # The publisher accepts the connection, and drops it.
    backoff.reset()
    clock.now += 0.5
    assert backoff.next() == 4
    backoff.reset()
    clock.now += 1
    assert backoff.next() == 0.1
