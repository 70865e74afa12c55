from __future__ import annotations

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from weirpool.feeds.history import History


def test_rate_is_that_of_the_last_seconds() -> None:
    history = History()
    assert history.rate() == 0
    for second in range(0, 60, 2):
        history.add(float(second), 100 * second)
    assert history.rate() == 100
    for second in range(60, 80, 2):
        history.add(float(second), 5_800)
    assert history.rate() == 0
    history.add(80.0, 6_800)
    assert history.rate() == 100


def test_it_holds_the_last_seconds_alone() -> None:
    history = History()
    for number in range(10_000):
        history.add(number / 10, number + 1)
    assert len(history._samples) == 101
    assert history.rate() == 10


@given(st.lists(st.tuples(st.floats(0, 1e9), st.integers(0, 2**62)), max_size=20))
def test_clocks_and_positions_may_go_back(samples: list[tuple[float, int]]) -> None:
    history = History()
    for time, position in samples:
        history.add(time, position)
        found = list(history._samples)
        assert found == sorted(found)
        assert 0 <= history.rate() < inf
