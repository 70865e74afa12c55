"""What each task reads: the ranges of a batch, cut into equal parts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql.datasource import InputPartition

__all__ = ["JournalPartition", "Range", "split"]

MIN_ROWS = 10_000
"""Rows below which another task costs more than it saves, unless the user asked for it."""


@dataclass(frozen=True, slots=True)
class Range:
    """Consecutive rows of one source."""

    source: str
    first: int
    end: int


class JournalPartition(InputPartition):
    """What one task reads."""

    def __init__(self, ranges: list[Range]) -> None:
        super().__init__(None)
        self.ranges = ranges

    def __repr__(self) -> str:
        return f"JournalPartition({self.ranges})"


def split(
    ranges: Mapping[str, tuple[int, int]], partitions: int | None, rows_per_partition: int | None
) -> list[JournalPartition]:
    """Cut the rows of all sources, one behind the other, into parts of equally many rows.

    Args:
        ranges: First and end position of each source.
        partitions: How many parts; None means as many as there are cores, and fewer when there are few rows.
        rows_per_partition: Rows of a part at most; None for any number.

    """
    rows = sum(end - first for first, end in ranges.values())
    if not rows:
        return []
    count = partitions or min(_cores(), -(-rows // MIN_ROWS))
    if rows_per_partition is not None:
        count = max(count, -(-rows // rows_per_partition))
    count = min(count, rows)
    cuts = [rows * part // count for part in range(count + 1)]
    parts: list[list[Range]] = [[] for _ in range(count)]
    passed = part = 0
    for source, (first, end) in ranges.items():
        at = first
        while at < end:
            behind = min(end, first + cuts[part + 1] - passed)
            parts[part].append(Range(source, at, behind))
            at = behind
            part += passed + at - first == cuts[part + 1]
        passed += end - first
    return [JournalPartition(part_ranges) for part_ranges in parts]


def _cores() -> int:
    """Return the cores of this machine that this process may use: in local mode, those of Spark."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
