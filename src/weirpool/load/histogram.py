"""A histogram of latencies: constant memory, and a bounded relative error."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Final

__all__ = ["MAX_ERROR", "Histogram"]

SUB_BITS: Final = 7
HALF: Final = 1 << SUB_BITS
"""Buckets of each power of two."""
MAX_ERROR: Final = 1 / HALF
"""The width of a bucket, as a fraction of its values."""
MAX_BITS: Final = 44
"""Larger values, of nanoseconds more than four hours, are counted in the last bucket."""
BUCKETS: Final = (MAX_BITS - SUB_BITS + 1) * HALF


class Histogram:
    """Counts non-negative integers in buckets, whose width grows with the values.

    Values below 128 are exact. Others are reported as the highest value of their bucket, which is less than 1 % larger.

    Attributes:
        count: The number of values.
        total: Their sum.
        largest: The largest value, which is exact.

    """

    __slots__ = ("_counts", "count", "largest", "total")

    def __init__(self) -> None:
        self._counts = array("Q", bytes(8 * BUCKETS))
        self.count = self.total = self.largest = 0

    def record(self, value: int) -> None:
        """Count a value. Negative values, which a clock may cause, count as 0."""
        if value < 0:
            value = 0
        shift = value.bit_length() - SUB_BITS - 1
        place = value if shift < 0 else (shift << SUB_BITS) + (value >> shift)
        self._counts[place if place < BUCKETS else BUCKETS - 1] += 1
        self.count += 1
        self.total += value
        if value > self.largest:
            self.largest = value

    def percentile(self, percent: float) -> int:
        """Return the value that `percent` % of all values do not exceed; 0 if there are no values."""
        wanted = max(1, -(-self.count * percent // 100))
        seen = 0
        for place, count in enumerate(self._counts):
            seen += count
            if seen >= wanted and count:
                return min(_highest(place), self.largest)
        return self.largest

    def buckets(self) -> Iterator[tuple[int, int]]:
        """Yield the highest value and the count of each bucket that has values, in order."""
        for place, count in enumerate(self._counts):
            if count:
                yield min(_highest(place), self.largest), count

    @property
    def mean(self) -> float:
        """The mean of all values; 0 if there are none."""
        return self.total / self.count if self.count else 0.0


def _highest(place: int) -> int:
    """Return the highest value of a bucket. The last one has no limit."""
    if place == BUCKETS - 1:
        return 1 << 63
    if place < 2 * HALF:
        return place
    shift = (place >> SUB_BITS) - 1
    return (((place - (shift << SUB_BITS)) + 1) << shift) - 1
