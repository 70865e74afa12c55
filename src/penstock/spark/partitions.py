"""The rows of a micro-batch, limited by number and bytes, and its partitions: equal parts of its ranges."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql.datasource import InputPartition

__all__ = ["JournalPartition", "Range", "limit_bytes", "limit_rows", "split"]

Ranges = Mapping[str, tuple[int, int]]
"""First and end position by source."""
MIN_ROWS = 10_000
"""Rows below which another task costs more than it saves, unless the user asked for it."""


@dataclass(frozen=True, slots=True)
class Range:
    """Consecutive rows of one source."""

    source: str
    """The source."""
    first: int
    """The position of the first row."""
    end: int
    """The position after the last."""
    log: str
    """The UUID of the log that these positions belong to."""


class JournalPartition(InputPartition):
    """The ranges that one task reads."""

    def __init__(self, ranges: list[Range]) -> None:
        super().__init__(None)
        self.ranges = ranges

    def __repr__(self) -> str:
        return f"JournalPartition({self.ranges})"


def split(ranges: Sequence[Range], partitions: int | None, rows_per_partition: int | None) -> list[JournalPartition]:
    """Split consecutive ranges into this number of parts with equal numbers of rows, or into more with fewer rows.

    Without a number there is one part per core, and fewer if there are few rows.
    """
    rows = sum(each.end - each.first for each in ranges)
    if not rows:
        return []
    count = partitions or min(_cores(), -(-rows // MIN_ROWS))
    if rows_per_partition is not None:
        count = max(count, -(-rows // rows_per_partition))
    count = min(count, rows)
    cuts = [rows * part // count for part in range(count + 1)]
    parts: list[list[Range]] = [[] for _ in range(count)]
    passed = part = 0
    for each in ranges:
        at = each.first
        while at < each.end:
            stop = min(each.end, each.first + cuts[part + 1] - passed)
            parts[part].append(replace(each, first=at, end=stop))
            at = stop
            part += passed + at - each.first == cuts[part + 1]
        passed += each.end - each.first
    return [JournalPartition(part_ranges) for part_ranges in parts]


def _cores() -> int:
    """Return the number of this machine's cores that this process may use: in local mode, those of Spark."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def limit_rows(ranges: Ranges, max_rows: int) -> dict[str, tuple[int, int]]:
    """Reduce ranges to at most `max_rows` rows in total, each in proportion to its rows.

    If there are any rows, some remain, so that a query always makes progress.
    """
    total = sum(end - first for first, end in ranges.values())
    if total <= max_rows:
        return dict(ranges)
    limited = {}
    # The smallest range first: a quiet source gets its row even next to a busy one.
    for source, (first, end) in sorted(ranges.items(), key=lambda item: item[1][1] - item[1][0]):
        rows = end - first
        share = -(-max_rows * rows // total) if rows else 0
        limited[source] = (first, first + share)
        max_rows -= share
        total -= rows
    return limited


def limit_bytes(ranges: Ranges, max_bytes: int, size: Callable[[str, int, int], int]) -> dict[str, tuple[int, int]]:
    """Reduce ranges to about `max_bytes` in total, each in proportion to its bytes, but at least one row.

    `size` returns the approximate bytes between two positions of a source.
    """
    sizes = {source: size(source, first, end) for source, (first, end) in ranges.items()}
    total = sum(sizes.values())
    if total <= max_bytes:
        return dict(ranges)
    limited = {}
    for source, (first, end) in ranges.items():
        share = max_bytes * sizes[source] // total
        fitting = bisect_right(range(first, end), share, key=partial(size, source, first)) - 1
        limited[source] = (first, first + max(fitting, min(1, end - first)))
    return limited
