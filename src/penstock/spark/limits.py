"""Limits of a micro-batch: rows and bytes, shared among the sources."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from functools import partial

__all__ = ["limit_bytes", "limit_rows"]

Ranges = Mapping[str, tuple[int, int]]
"""First and end position by source."""


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
