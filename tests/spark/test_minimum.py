from __future__ import annotations

from weirpool.spark.minimum import MinimumRows

FEW = {"a": (0, 3), "b": (5, 9)}
MANY = {"a": (0, 3), "b": (5, 12)}


def test_without_a_minimum_nothing_waits() -> None:
    assert not MinimumRows(None, 60).holds_back(FEW, FEW)


def test_few_rows_wait_for_others() -> None:
    minimum = MinimumRows(10, 60)
    assert minimum.holds_back(FEW, FEW)
    assert not minimum.holds_back(MANY, MANY)


def test_no_rows_are_not_held_back() -> None:
    assert not MinimumRows(10, 60).holds_back({"a": (5, 5)}, {"a": (5, 5)})


def test_a_row_waits_no_longer_than_the_delay() -> None:
    now = 100.0
    minimum = MinimumRows(10, 60, clock=lambda: now)
    assert minimum.holds_back(FEW, FEW)
    now = 159.9
    assert minimum.holds_back(FEW, FEW)
    now = 160
    assert not minimum.holds_back(FEW, FEW)
    # Those that come later wait as long.
    assert minimum.holds_back(FEW, FEW)


def test_the_delay_begins_with_the_first_row() -> None:
    now = 100.0
    minimum = MinimumRows(10, 60, clock=lambda: now)
    assert not minimum.holds_back({}, {})
    now = 200
    assert minimum.holds_back(FEW, FEW)


def test_a_limit_that_is_reached_ends_the_wait() -> None:
    assert not MinimumRows(10, 60).holds_back(FEW, {"a": (0, 3), "b": (5, 6)})
