"""Pairs of runs become ratios, and ratios a verdict."""

from __future__ import annotations

import random

import pytest
from benchmarks.ratios import Ratio, Verdict, compared, order, worst

ROUNDS = 11


def noisy(factor: float, noise: float, seed: int = 7) -> Ratio:
    """Return the ratio of a change that costs `factor`, where runs differ by chance and the machine by a drift."""
    chance = random.Random(seed)
    drift = [1 + turn / 4 for turn in range(ROUNDS)]
    before = [slow * chance.uniform(1 - noise, 1 + noise) for slow in drift]
    after = [slow * factor * chance.uniform(1 - noise, 1 + noise) for slow in drift]
    return compared(before, after)


def test_rounds_are_compared_in_pairs() -> None:
    assert compared([1.0, 2.0, 4.0], [1.1, 2.2, 4.4]).median == pytest.approx(1.1)


def test_drift_of_the_machine_cancels_out() -> None:
    assert noisy(1.0, 0.0) == Ratio(1.0, 1.0, 1.0, True)


@pytest.mark.parametrize(("before", "after"), [([], []), ([1.0], [1.0, 2.0])])
def test_runs_without_pairs_are_refused(before: list[float], after: list[float]) -> None:
    with pytest.raises(ValueError, match="cannot be paired"):
        compared(before, after)


@pytest.mark.parametrize(
    ("factor", "noise", "verdict"),
    [
        (1.00, 0.005, Verdict.SAME),
        (1.02, 0.004, Verdict.SAME),
        (1.05, 0.005, Verdict.SLOWER),
        (1.30, 0.10, Verdict.SLOWER),
        (0.90, 0.005, Verdict.FASTER),
        (1.00, 0.20, Verdict.UNSURE),
        (1.04, 0.20, Verdict.UNSURE),
    ],
)
def test_verdict_follows_from_ratio_and_noise(factor: float, noise: float, verdict: Verdict) -> None:
    assert noisy(factor, noise).verdict is verdict


def test_same_code_is_seldom_slower_by_chance() -> None:
    verdicts = [noisy(1.0, 0.2, seed).verdict for seed in range(1000)]
    assert verdicts.count(Verdict.SLOWER) < 20


def test_one_wild_round_changes_nothing() -> None:
    assert compared([1.0] * ROUNDS, [1.0] * (ROUNDS - 1) + [9.0]) == Ratio(1.0, 1.0, 1.0, True)


@pytest.mark.parametrize(("rounds", "is_sure"), [(1, False), (6, False), (7, True), (11, True)])
def test_few_rounds_say_nothing_for_sure(rounds: int, is_sure: bool) -> None:
    ratio = compared([1.0] * rounds, [1.5] * rounds)
    assert ratio.is_sure is is_sure
    assert ratio.verdict is (Verdict.SLOWER if is_sure else Verdict.UNSURE)


def test_each_round_runs_both_twice_and_begins_with_another() -> None:
    assert [order(turn) for turn in range(4)] == ["BAAB", "ABBA", "BAAB", "ABBA"]


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([Verdict.SAME, Verdict.FASTER], Verdict.SAME),
        ([Verdict.UNSURE, Verdict.SAME], Verdict.UNSURE),
        ([Verdict.FASTER, Verdict.UNSURE, Verdict.SLOWER], Verdict.SLOWER),
    ],
)
def test_worst_verdict_is_that_of_the_case(verdicts: list[Verdict], expected: Verdict) -> None:
    assert worst(verdicts) is expected
