"""What two revisions cost, in pairs of runs: their ratio, how sure it is, and what follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import comb
from statistics import median

__all__ = ["ALLOWED", "Ratio", "Verdict", "compared", "order", "worst"]

ALLOWED = 0.03
"""How much slower a revision may be."""
CONFIDENCE = 0.98
"""How often the spread has the true median in it."""


class Verdict(StrEnum):
    """What a ratio means."""

    SLOWER = "slower"
    """By more than is allowed, and not by chance."""
    UNSURE = "unsure"
    """It may be slower than is allowed: more rounds would tell."""
    SAME = "same"
    FASTER = "faster"


@dataclass(frozen=True)
class Ratio:
    """How much time, or CPU, an operation takes after a change, next to before; above 1 it takes more.

    Attributes:
        median: Of all rounds.
        low: The lower end of the spread.
        high: Its upper end.
        is_sure: There were rounds enough for the spread to say something.

    """

    median: float
    low: float
    high: float
    is_sure: bool

    @property
    def verdict(self) -> Verdict:
        """What it means."""
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
    """Return who runs in a round, B for before and A for after: a drift meets both alike."""
    return "ABBA" if turn % 2 else "BAAB"


def compared(before: Sequence[float], after: Sequence[float]) -> Ratio:
    """Return the ratio of what was measured in the same rounds.

    Args:
        before: Of each round, what an operation took.
        after: The same, after the change.

    Raises:
        ValueError: There are no rounds, or not as many of the one as of the other.

    """
    if not before or len(before) != len(after):
        raise ValueError(f"{len(before)} rounds before the change and {len(after)} after it make no pairs")
    ratios = sorted(new / old for old, new in zip(before, after, strict=True))
    skipped = _skipped(len(ratios))
    inner = ratios[skipped : len(ratios) - skipped] if skipped is not None else ratios
    return Ratio(median(ratios), inner[0], inner[-1], skipped is not None)


def _skipped(rounds: int) -> int | None:
    """Return how many of the lowest and of the highest ratios lie outside of the spread; None: too few rounds.

    Each ratio is above the true median as often as below it, whatever the noise looks like.
    """
    outside = 0.0
    for skipped in range(rounds):
        outside += 2 * comb(rounds, skipped) / 2**rounds
        if outside > 1 - CONFIDENCE:
            return skipped - 1 if skipped else None
    return None


def worst(verdicts: Sequence[Verdict]) -> Verdict:
    """Return what several ratios of one case mean together."""
    return min(verdicts, key=[Verdict.SLOWER, Verdict.UNSURE, Verdict.SAME, Verdict.FASTER].index)
