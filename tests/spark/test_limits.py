from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.spark.limits import limit_bytes, limit_rows

Ranges = dict[str, tuple[int, int]]

some_ranges = st.dictionaries(
    st.text("abc", min_size=1, max_size=3),
    st.tuples(st.integers(0, 10**12), st.integers(0, 10**9)).map(lambda pair: (pair[0], sum(pair))),
    max_size=6,
)


def total(ranges: Ranges) -> int:
    return sum(end - first for first, end in ranges.values())


def test_rows_are_shared_in_proportion() -> None:
    assert limit_rows({"a": (0, 300), "b": (50, 150)}, 100) == {"a": (0, 75), "b": (50, 75)}


def test_what_fits_is_left_alone() -> None:
    ranges = {"a": (5, 10), "b": (0, 0)}
    assert limit_rows(ranges, 5) == ranges
    assert limit_bytes(ranges, 5, lambda source, first, end: end - first) == ranges


def test_a_quiet_source_is_not_starved() -> None:
    assert limit_rows({"noisy": (0, 10**9), "quiet": (0, 1)}, 10)["quiet"] == (0, 1)


@given(some_ranges, st.integers(1, 10**10))
def test_limited_rows_are_within_the_limit_and_never_none(ranges: Ranges, max_rows: int) -> None:
    limited = limit_rows(ranges, max_rows)
    assert total(limited) == min(max_rows, total(ranges))
    for source, (first, end) in limited.items():
        assert ranges[source][0] == first <= end <= ranges[source][1]


@given(some_ranges, st.integers(1, 10**10), st.integers(1, 100))
def test_limited_bytes_are_within_the_limit_or_single_rows(ranges: Ranges, max_bytes: int, row_bytes: int) -> None:
    limited = limit_bytes(ranges, max_bytes, lambda source, first, end: row_bytes * (end - first))
    assert limited.keys() == ranges.keys()
    assert bool(total(limited)) == bool(total(ranges))
    for source, (first, end) in limited.items():
        assert ranges[source][0] == first <= end <= ranges[source][1]
    if any(end - first > 1 for first, end in limited.values()):
        assert row_bytes * total(limited) <= max_bytes + row_bytes * len(ranges)


def test_bytes_are_cut_where_the_share_ends() -> None:
    # Rows of source "b" are ten times as large.
    sizes = {"a": 1, "b": 10}
    limited = limit_bytes(
        {"a": (0, 1000), "b": (0, 100)}, 200, lambda source, first, end: sizes[source] * (end - first)
    )
    assert limited == {"a": (0, 100), "b": (0, 10)}
