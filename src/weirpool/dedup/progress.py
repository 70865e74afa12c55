"""Which rows of a task have been handled: ranges of indices, not one entry for each row."""

from __future__ import annotations

from bisect import bisect_right
from typing import Annotated, Final

import msgspec

from ..errors import ApplicationError

__all__ = ["Origin", "Progress", "Row"]

MAX_RANGES: Final = 10_000
"""Ranges of a task: rows that were handled out of order, or failed, and so divide the others."""


class Origin(msgspec.Struct, frozen=True):
    """A task: a part of a query's micro-batches."""

    query: str
    partition: int


# What a database can store: one row that it refuses would keep those of all others from being recorded.
Query = Annotated[str, msgspec.Meta(max_length=128, pattern=r"\A[^\x00]*\Z")]
Number = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Partition = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]


class Row(msgspec.Struct, frozen=True):
    """The metadata of a row that Spark's sink has sent."""

    query: Query
    batch: Number
    partition: Partition
    index: Number

    @property
    def origin(self) -> Origin:
        """The task that has sent it."""
        return Origin(self.query, self.partition)


class Progress(msgspec.Struct):
    """The rows of one task that have been handled: all of earlier micro-batches, and some of the last one.

    A query sends the rows of a micro-batch only when those of the one before have been accepted.
    """

    batch: int = -1
    """The last micro-batch."""
    begins: list[int] = []
    """The ranges of its rows: where each begins …"""
    ends: list[int] = []
    """… and the index after its last row."""

    def has(self, batch: int, index: int) -> bool:
        """Return True if a row has been handled."""
        if batch != self.batch:
            return batch < self.batch
        at = bisect_right(self.begins, index) - 1
        return at >= 0 and index < self.ends[at]

    def add(self, batch: int, index: int) -> None:
        """Add a row that has been handled.

        Raises:
            ApplicationError: There are too many ranges.

        """
        if self.has(batch, index):
            return
        if batch > self.batch:
            self.batch, self.begins, self.ends = batch, [], []
        at = bisect_right(self.begins, index)
        before = at > 0 and self.ends[at - 1] == index
        after = at < len(self.begins) and self.begins[at] == index + 1
        if before and after:
            self.ends[at - 1] = self.ends.pop(at)
            del self.begins[at]
        elif before:
            self.ends[at - 1] = index + 1
        elif after:
            self.begins[at] = index
        elif len(self.begins) >= MAX_RANGES:
            raise ApplicationError(
                message=f"more than {MAX_RANGES} ranges of rows of one task were handled out of order"
            )
        else:
            self.begins.insert(at, index)
            self.ends.insert(at, index + 1)

    def copy(self) -> Progress:
        """Return a copy that can be changed."""
        return Progress(self.batch, self.begins.copy(), self.ends.copy())

    def include(self, other: Progress) -> None:
        """Add all rows that were handled according to another progress of the same task."""
        if other.batch > self.batch:
            self.batch, self.begins, self.ends = other.batch, other.begins.copy(), other.ends.copy()
        elif other.batch == self.batch:
            ranges = sorted([*zip(self.begins, self.ends, strict=True), *zip(other.begins, other.ends, strict=True)])
            self.begins, self.ends = [], []
            for begin, end in ranges:
                if self.ends and begin <= self.ends[-1]:
                    self.ends[-1] = max(end, self.ends[-1])
                else:
                    self.begins.append(begin)
                    self.ends.append(end)
