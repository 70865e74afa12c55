"""Positions and counts from outside."""

from __future__ import annotations

import numpy
import pytest

from weirpool import LocalError
from weirpool.journal.counts import check_count, check_span, shown_number


def test_whole_numbers_from_0_on_are_counts() -> None:
    for number in (0, 5, 2**62, 2**63, 10**5000, numpy.int64(5), numpy.uint8(200)):
        found = check_count(number, "retain_rows")
        assert found == number and type(found) is int


def test_others_are_not() -> None:
    for value, shown in ((-1, "-1"), (True, "True"), (5.0, "5.0"), ("5", "'5'"), (None, "None")):
        with pytest.raises(LocalError, match=f"^retain_rows is {shown}; it must be a whole number"):
            check_count(value, "retain_rows")
    with pytest.raises(LocalError, match="is a number of 16610 bits;"):
        check_count(-(10**5000), "retain_rows")


def test_a_range_is_two_positions_in_order() -> None:
    for start, end in ((0, 0), (3, 7), (numpy.int32(3), 2**70)):
        check_span("log", start, end)
    for start, end in ((-1, 5), (7, 3), (True, 5), (0, 5.0), (None, 5), ("0", "5"), (10**5000, 5)):
        with pytest.raises(LocalError, match=r"^log: there is no range from .* to .*; positions start at 0"):
            check_span("log", start, end)


def test_a_number_is_shown_however_long_it_is() -> None:
    assert [shown_number(value) for value in (5, "x" * 1_000, 10**5000)] == [
        "5", "'" + "x" * 99, "a number of 16610 bits",
    ]  # fmt: skip
