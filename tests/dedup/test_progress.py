from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weirpool import ApplicationError
from weirpool.dedup import progress as module
from weirpool.dedup.progress import Progress, Row

ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 12)), max_size=40)


def made(rows: list[tuple[int, int]]) -> tuple[Progress, set[tuple[int, int]]]:
    """Return a progress, and the rows of its last micro-batch that were handled."""
    progress, done = Progress(), set[tuple[int, int]]()
    for batch, index in rows:
        progress.add(batch, index)
        last = max((each for each, _ in done), default=-1)
        if batch >= last:
            done = {row for row in done if row[0] == batch} | {(batch, index)}
    return progress, done


def has(progress: Progress) -> set[tuple[int, int]]:
    return {(progress.batch, index) for index in range(14) if progress.has(progress.batch, index)}


@given(ROWS)
def test_rows_are_those_of_a_set(rows: list[tuple[int, int]]) -> None:
    progress, done = made(rows)
    assert has(progress) == done
    assert all(end < begin for end, begin in zip(progress.ends, progress.begins[1:], strict=False))
    assert progress.has(progress.batch - 1, 99)
    assert not progress.has(progress.batch + 1, 0)


@given(ROWS, ROWS)
def test_inclusion_is_union(one: list[tuple[int, int]], two: list[tuple[int, int]]) -> None:
    (first, _), (second, _) = made(one), made(two)
    union = first.copy()
    union.include(second)
    latest = max(first.batch, second.batch)
    expected = {row for progress in (first, second) if progress.batch == latest for row in has(progress)}
    assert (union.batch, has(union)) == (latest, expected)


def test_many_rows_in_order_are_one_range() -> None:
    progress = Progress()
    for index in range(10_000):
        progress.add(3, index)
    assert (progress.begins, progress.ends) == ([0], [10_000])


def test_ranges_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_RANGES", 2)
    progress = Progress()
    progress.add(0, 0)
    progress.add(0, 2)
    with pytest.raises(ApplicationError, match="out of order"):
        progress.add(0, 4)
    progress.add(0, 1)
    assert progress.has(0, 2)


def test_task_of_a_row() -> None:
    row = Row("q", 1, 2, 3)
    assert (row.origin.query, row.origin.partition) == ("q", 2)
