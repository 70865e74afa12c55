"""The partitions of a batch: its ranges, split into equal parts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql.datasource import InputPartition

__all__ = ["JournalPartition", "Range", "split"]

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
            behind = min(each.end, each.first + cuts[part + 1] - passed)
            parts[part].append(replace(each, first=at, end=behind))
            at = behind
            part += passed + at - each.first == cuts[part + 1]
        passed += each.end - each.first
    return [JournalPartition(part_ranges) for part_ranges in parts]


def _cores() -> int:
    """Return the number of this machine's cores that this process may use: in local mode, those of Spark."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
