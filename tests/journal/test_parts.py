"""Parts of a range for workers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from weirpool.journal.parts import cut, pack

BATCHES = st.lists(st.tuples(st.integers(1, 50), st.integers(0, 5_000)), min_size=1, max_size=20)


@given(BATCHES, st.integers(1, 60), st.integers(1, 6_000))
def test_parts_cover_the_range_within_the_limits(batches: list[tuple[int, int]], max_rows: int, max_bytes: int) -> None:
    parts, at = [], 0
    for rows, size in batches:
        parts.append((at, at + rows, size))
        at += rows
    ranges = pack(cut(parts, max_rows, max_bytes), max_rows, max_bytes)
    assert [first for first, _ in ranges] == [0, *(end for _, end in ranges[:-1])] and ranges[-1][1] == at
    damaged = {first for first, _, size in parts if not size}
    assert all(end - first <= max_rows or first in damaged for first, end in ranges)


def test_batches_stay_whole_if_they_fit() -> None:
    assert pack([(0, 10, 100), (10, 20, 100), (20, 30, 100)], 25, 1_000) == [(0, 20), (20, 30)]
    assert [*cut([(0, 10, 100)], 4, 1_000)] == [(0, 3, 30), (3, 6, 30), (6, 10, 40)]
