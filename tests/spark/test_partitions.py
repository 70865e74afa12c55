from __future__ import annotations

import os
import pickle
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weirpool.journal.layout import Extent
from weirpool.spark import partitions
from weirpool.spark.partitions import JournalPartition, Range, Tasks, limit_bytes, limit_rows, split


def span(source: str, first: int, end: int) -> Range:
    return Range(source, first, end, f"log of {source}")


def test_a_range_is_cut_in_equal_parts() -> None:
    parts = split([span("a", 100, 110)], Tasks(count=3))
    assert [part.ranges for part in parts] == [[span("a", 100, 103)], [span("a", 103, 106)], [span("a", 106, 110)]]


def test_small_sources_share_a_task() -> None:
    parts = split([span("a", 0, 1), span("b", 5, 7), span("c", 0, 3)], Tasks(count=2))
    assert [part.ranges for part in parts] == [[span("a", 0, 1), span("b", 5, 7)], [span("c", 0, 3)]]


def test_nothing_is_no_task() -> None:
    assert split([], Tasks(count=4)) == []
    assert split([span("a", 3, 3)], Tasks(count=4, max_rows=10)) == []


@pytest.mark.parametrize(("rows", "expected"), [(1, 1), (10_000, 1), (10_001, 2), (1_000_000, 4)])
def test_by_default_there_are_as_many_as_cores_unless_rows_are_few(
    rows: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3}, raising=False)
    assert len(split([span("a", 0, rows)], Tasks())) == expected


def test_parts_are_no_larger_than_was_asked_for() -> None:
    assert len(split([span("a", 0, 95)], Tasks(max_rows=10))) == 10


def test_cores_are_counted_where_there_is_no_affinity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    assert len(split([span("a", 0, partitions.MIN_ROWS * 10)], Tasks())) == 3


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 50), st.integers(0, 50)), max_size=5),
    st.one_of(st.none(), st.integers(1, 40)),
    st.one_of(st.none(), st.integers(1, 40)),
)
def test_parts_are_all_the_rows_in_order(
    sizes: list[tuple[str, int, int]], count: int | None, rows_per_partition: int | None
) -> None:
    # A source may come in several pieces.
    ranges = [span(source, first, first + rows) for source, first, rows in sizes]
    parts = split(ranges, Tasks(count=count, max_rows=rows_per_partition))
    rows = [[(one.source, at) for one in part.ranges for at in range(one.first, one.end)] for part in parts]
    assert [*chain(*rows)] == [(one.source, at) for one in ranges for at in range(one.first, one.end)]
    assert all(rows)
    if rows_per_partition is not None:
        assert all(len(part) <= rows_per_partition for part in rows)


@given(
    st.lists(st.integers(1, 5_000), min_size=1, max_size=8),
    st.integers(1, 12),
    st.integers(0, 3),
    st.integers(0, 300),
)
def test_parts_have_about_equal_bytes(sizes: list[int], count: int, skipped: int, rest: int) -> None:
    # Segments of ten rows each; rows before and after them have one byte.
    extents = [Extent(10 * at + 10, 10 * at + 20, size) for at, size in enumerate(sizes)]
    whole = span("a", skipped, 10 * len(sizes) + 10 + rest)
    parts = split([whole], Tasks(count=count), lambda source: extents)
    assert [at for part in parts for one in part.ranges for at in range(one.first, one.end)] == [
        *range(whole.first, whole.end)
    ]
    assert all(len(part.ranges) == 1 for part in parts) and len(parts) <= count
    outside = 10 - skipped + rest
    share = (sum(max(size, 10) for size in sizes) + outside) / count
    for one in (part.ranges[0] for part in parts):
        size = sum(extent.bytes_between(one.first, one.end) for extent in extents)
        # A row is not divided.
        assert size <= share * 1.25 + max(sizes) / 10 + 1


def test_parts_end_with_a_segment_that_ends_nearby() -> None:
    extents = [Extent(0, 100, 1000), Extent(100, 210, 1100), Extent(210, 300, 900)]
    parts = split([span("a", 0, 300)], Tasks(count=3), lambda source: extents)
    assert [(part.ranges[0].first, part.ranges[0].end) for part in parts] == [(0, 100), (100, 210), (210, 300)]


def test_many_bytes_are_more_tasks_than_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions, "TASK_BYTES", 100)
    extents = [Extent(0, 1000, 1000)]
    assert len(split([span("a", 0, 1000)], Tasks(), lambda source: extents)) == 10
    assert len(split([span("a", 0, 1000)], Tasks(at_least=20), lambda source: extents)) == 20
    assert len(split([span("a", 0, 1000)], Tasks(at_least=5), lambda source: extents)) == 10
    assert len(split([span("a", 0, 1000)], Tasks(count=5), lambda source: extents)) == 5
    assert len(split([span("a", 0, 3)], Tasks(at_least=20), lambda source: extents)) == 3


def test_many_small_sources_share_few_tasks() -> None:
    parts = split([span(f"feed{at}", 0, 7) for at in range(10_000)], Tasks(count=2))
    assert len(parts) == 2 and all(4_990 < len(part.ranges) < 5_010 for part in parts)
    assert len(pickle.dumps(parts[0])) < 5_100 * 60


def test_partitions_travel() -> None:
    part = pickle.loads(pickle.dumps(JournalPartition([span("a", 0, 5)])))
    assert part.ranges == [span("a", 0, 5)]
    assert pickle.loads(pickle.dumps(JournalPartition([]))).ranges == []
    served = pickle.loads(pickle.dumps(JournalPartition([span("a", 0, 5)], ("rsocket+tcp://h:1", "h"))))
    assert (served.ranges, served.served) == (part.ranges, ("rsocket+tcp://h:1", "h"))
    assert repr(part) == "JournalPartition([Range(source='a', first=0, end=5, log='log of a')])"


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
