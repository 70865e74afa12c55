from __future__ import annotations

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from penstock.feeds.history import MAX_SAMPLES, History


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


def test_rows_are_as_old_as_the_sample_after_them() -> None:
    history = History([(10.0, 100), (20.0, 200)])
    history.add(30.0, 300)
    assert [history.stored_at(position) for position in (0, 99, 100, 199, 200, 299)] == [10, 10, 20, 20, 30, 30]
    assert history.stored_at(300) is None


def test_old_samples_become_sparse() -> None:
    history = History()
    for number in range(100_000):
        history.add(float(number), number + 1)
    assert len(history.samples()) <= MAX_SAMPLES
    assert history.samples()[0] == (0.0, 1)
    # The newest ones are exact.
    assert [history.stored_at(99_999 - age) for age in range(100)] == [99_999.0 - age for age in range(100)]


@given(st.lists(st.tuples(st.floats(0, 1e9), st.integers(0, 2**62)), max_size=20))
def test_clocks_and_positions_may_go_back(samples: list[tuple[float, int]]) -> None:
    history = History()
    for time, position in samples:
        history.add(time, position)
    found = history.samples()
    assert found == sorted(found)
    assert 0 <= history.rate() < inf
