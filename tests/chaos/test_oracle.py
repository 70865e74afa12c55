"""The oracle of the chaos laboratory finds every way in which the promise can be broken."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from chaos.causes import Facts
from chaos.items import RUN_STEP, item
from chaos.oracle import Verdict, judge_source
from chaos.sources import Source

from weirpool.journal import Gap

SOURCE = Source("a", "rsocket")
NEXT = RUN_STEP
"""The first run of the publisher's next process."""
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)

Run = tuple[int, list[int]]


def judged(
    runs: list[Run],
    *,
    gaps: list[int] = [],  # noqa: B006
    ended: dict[int, int],
    begun: list[int] | None = None,
    log: list[dict[str, Any]] = [],  # noqa: B006
    source: Source = SOURCE,
) -> Verdict:
    rows = [source.prefix + item(run, number) for run, numbers in runs for number in numbers]
    found = [Gap(position, NOON, "why") for position in gaps]
    data = pa.chunked_array([rows], pa.binary())
    facts = Facts(log=log, begun=begun or [run for run, _ in runs], ended=ended)
    return judge_source(source, np.arange(len(rows)), data, found, facts)


def test_one_whole_run_is_sound() -> None:
    verdict = judged([(1, [0, 1, 2])], ended={1: 3})
    assert verdict.sound
    assert (verdict.rows, verdict.runs, verdict.gaps) == (3, 1, 0)


def test_prefixed_items_are_read() -> None:
    source = Source("a", "river", prefix=b"\xb4")
    assert judged([(1, [0, 1])], ended={1: 2}, source=source).sound


def test_runs_with_a_gap_between_them_are_sound() -> None:
    assert judged([(1, [0, 1]), (NEXT, [0, 1])], gaps=[2], ended={NEXT: 2}).sound


@pytest.mark.parametrize("lacking", [[1, 2, 3], [0, 2, 3], [0, 1, 2]], ids=["first", "middle", "last"])
def test_missing_item_is_a_loss(lacking: list[int]) -> None:
    assert judged([(1, lacking)], ended={1: 4}).lost == 1


def test_missing_item_at_a_gap_within_a_run_is_a_loss() -> None:
    assert judged([(1, [0, 1, 3])], gaps=[2], ended={1: 4}).lost == 1


def test_change_of_runs_without_a_gap_is_a_loss() -> None:
    verdict = judged([(1, [0, 1]), (2, [0, 1])], ended={2: 2})
    assert verdict.lost == 1
    assert not verdict.sound


def test_item_that_comes_twice_is_doubled() -> None:
    assert judged([(1, [0, 1, 1, 2])], ended={1: 3}).doubled == 1


def test_items_that_change_places_are_out_of_order() -> None:
    assert judged([(1, [0, 2, 1, 3])], ended={1: 4}).disordered == 1


def test_older_run_behind_a_newer_one_is_out_of_order() -> None:
    assert judged([(2, [0, 1]), (1, [0, 1])], gaps=[2], ended={1: 2}).disordered == 1


def test_gap_without_a_cause_is_unexplained() -> None:
    verdict = judged([(1, [0, 1]), (2, [0])], gaps=[2], ended={2: 1})
    assert verdict.unexplained == 1
    assert "has no cause: why" in verdict.problems[0]


def test_first_run_that_left_nothing_is_a_loss() -> None:
    assert judged([(NEXT, [0, 1])], begun=[0, NEXT], ended={NEXT: 2}).lost == 1
    assert judged([(NEXT, [0, 1])], begun=[0, NEXT], gaps=[0], ended={NEXT: 2}).sound


def test_last_run_that_left_nothing_is_a_loss() -> None:
    assert judged([(1, [0, 1])], ended={NEXT: 3}).lost == 4
    assert judged([(1, [0, 1])], gaps=[2], ended={NEXT: 3}).lost == 3
    assert judged([(1, [0, 1])], gaps=[2], ended={NEXT: 0}).sound


def test_end_of_the_last_run_is_a_loss_though_there_is_a_gap() -> None:
    assert judged([(1, [0, 1])], gaps=[2], ended={1: 3}).lost == 1


def test_position_that_is_missing_is_a_problem() -> None:
    rows = pa.chunked_array([[item(1, 0), item(1, 1)]], pa.binary())
    assert not judge_source(SOURCE, np.array([0, 2]), rows, [], Facts(ended={1: 2})).sound


def test_run_that_never_ended_is_a_problem() -> None:
    assert judged([(1, [0, 1])], ended={}).problems == ["the last run, 1, never ended"]


def test_no_rows_prove_nothing() -> None:
    assert not judged([], ended={}).sound
