"""Compares pairs of runs of two revisions: their ratio, its confidence interval, and a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import comb
from statistics import median

__all__ = ["ALLOWED", "Ratio", "Verdict", "compared", "order", "worst"]

ALLOWED = 0.03
"""The fraction by which a revision may be slower."""
CONFIDENCE = 0.98
"""The confidence level of the interval for the median."""


class Verdict(StrEnum):
    """The meaning of a ratio."""

    SLOWER = "slower"
    """Slower than allowed, and not by chance."""
    UNSURE = "unsure"
    """Possibly slower than allowed; more rounds are needed."""
    SAME = "same"
    FASTER = "faster"


@dataclass(frozen=True)
class Ratio:
    """The time, or CPU time, of an operation after a change, relative to before. Above 1 is slower.

    Attributes:
        median: The median of all rounds.
        low: The lower end of the confidence interval.
        high: Its upper end.
        is_sure: There were enough rounds for a confidence interval.

    """

    median: float
    low: float
    high: float
    is_sure: bool

    @property
    def verdict(self) -> Verdict:
        """The verdict for this ratio."""
        if not self.is_sure:
            return Verdict.UNSURE
        if self.median > 1 + ALLOWED and self.low > 1:
            return Verdict.SLOWER
        if self.high > 1 + ALLOWED:
            return Verdict.UNSURE
        return Verdict.FASTER if self.median < 1 - ALLOWED and self.high < 1 else Verdict.SAME

    def __str__(self) -> str:
        return f"{self.median:.3f} ({self.low:.2f}-{self.high:.2f})"


def order(turn: int) -> str:
    """Return the order of runs in a round, B for before and A for after. A drift affects both equally."""
    return "ABBA" if turn % 2 else "BAAB"


def compared(before: Sequence[float], after: Sequence[float]) -> Ratio:
    """Return the ratio of measurements in the same rounds.

    Args:
        before: The time per operation in each round before the change.
        after: The same after the change.

    Raises:
        ValueError: There are no rounds, or not the same number of both.

    """
    if not before or len(before) != len(after):
        raise ValueError(f"{len(before)} rounds before the change and {len(after)} after it cannot be paired")
    ratios = sorted(new / old for old, new in zip(before, after, strict=True))
    skipped = _skipped(len(ratios))
    inner = ratios[skipped : len(ratios) - skipped] if skipped is not None else ratios
    return Ratio(median(ratios), inner[0], inner[-1], skipped is not None)


def _skipped(rounds: int) -> int | None:
    """Return how many ratios at each end are outside the confidence interval; None if there are too few rounds.

    Each ratio is as likely to be above the true median as below it, for any distribution of the noise.
    """
    outside = 0.0
    for skipped in range(rounds):
        outside += 2 * comb(rounds, skipped) / 2**rounds
        if outside > 1 - CONFIDENCE:
            return skipped - 1 if skipped else None
    return None


def worst(verdicts: Sequence[Verdict]) -> Verdict:
    """Return the verdict for several ratios of one case."""
    return min(verdicts, key=[Verdict.SLOWER, Verdict.UNSURE, Verdict.SAME, Verdict.FASTER].index)
