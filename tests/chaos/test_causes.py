"""The chaos laboratory knows which gaps have a cause, and which are a defect."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from chaos.causes import EXPLAINS_FOR, WEARY, Facts, unexplained
from chaos.children import End
from chaos.items import RUN_STEP
from chaos.sources import Source

from weirpool.journal import Gap

LASTING = Source("a", "rsocket")
FORGETFUL = Source("a", "reactivesocket-0.0", resumes=False)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
AT = NOON.timestamp()
NEXT = RUN_STEP


def gap(position: int, seconds: float = 0.0) -> Gap:
    return Gap(position, NOON + timedelta(seconds=seconds), "why")


def fault(kind: str, seconds: float = 0.0, *, before: float = 5.0, target: str = "a") -> dict[str, Any]:
    return {"at": AT - before, "kind": kind, "target": target, "seconds": seconds}


def found(runs: list[int], gaps: list[Gap], *log: dict[str, Any], source: Source = LASTING, **facts: Any) -> list[str]:
    return unexplained(source, np.array(runs), gaps, Facts(log=log, **facts))


def test_death_of_the_publisher_explains_one_gap() -> None:
    assert not found([0, 0, NEXT], [gap(2)])
    assert len(found([0, 0, NEXT], [gap(2), gap(2)])) == 1
    assert not found([0, 0, 2 * NEXT], [gap(2), gap(2)])


def test_death_of_the_publisher_explains_no_gap_elsewhere() -> None:
    assert "within run 0" in found([0, 0, NEXT], [gap(1), gap(2)])[0]


@pytest.mark.parametrize("kind", ["kill publisher", "kill collector", "cut", "stall", "outage", "black hole"])
def test_faults_explain_no_gap_while_the_publisher_lives(kind: str) -> None:
    assert "of a publisher that was not killed" in found([0, 0, 1], [gap(2)], fault(kind, 9.0))[0]


def test_outage_beyond_all_grace_explains_a_gap() -> None:
    assert not found([0, 0, 1], [gap(2)], fault("long outage", 60.0, before=50.0))
    assert found([0, 0, 1], [gap(2)], fault("long outage", 60.0, before=50.0, target="b"))
    assert found([0, 0, 1], [gap(2)], fault("long outage", 60.0, before=-1.0))
    assert found([0, 0, 1], [gap(2)], fault("long outage", 60.0, before=61.0 + EXPLAINS_FOR))


def test_outages_in_a_row_explain_a_gap() -> None:
    half = WEARY / 2
    row = fault("outage", half, before=60.0), fault("stall", half, before=60.0 - half - 1.0)
    assert not found([0, 0, 1], [gap(2)], *row)
    assert found([0, 0, 1], [gap(2)], row[0], fault("stall", half, before=60.0 - half - 10.0))


def test_gap_before_the_first_item_needs_a_death() -> None:
    assert found([0], [gap(0)])
    assert not found([0], [gap(0)], ends=[End("collector a", AT - 1.0, -9)])
    assert not found([NEXT], [gap(0)])
    assert found([0], [gap(0)], ends=[End("collector b", AT - 1.0, -9)])


def test_gap_at_the_end_is_judged_by_the_run_that_ended() -> None:
    assert not found([0, 0], [gap(2)], ended={NEXT: 0})
    assert found([0, 0], [gap(2)], ended={1: 0})
    assert found([0, 0], [gap(2)], ended={0: 2})


def test_sessions_that_die_with_links_have_a_gap_for_each_fault() -> None:
    runs, gaps = [0, 1, 2], [gap(1, 1), gap(2, 2)]
    assert len(found(runs, gaps, source=FORGETFUL)) == 2
    assert len(found(runs, gaps, fault("cut"), source=FORGETFUL)) == 1
    assert not found(runs, gaps, fault("cut"), fault("kill proxy", target=""), source=FORGETFUL)
    assert not found(runs, gaps, fault("cut"), source=FORGETFUL, ends=[End("collector a", AT, -9)])


@pytest.mark.parametrize(
    "elsewhere",
    [fault("cut", target="b"), fault("cut", before=-60.0), fault("cut", before=3_600.0)],
    ids=["of another source", "later", "long before"],
)
def test_faults_elsewhere_explain_nothing(elsewhere: dict[str, Any]) -> None:
    assert len(found([0, 1], [gap(1)], elsewhere, source=FORGETFUL)) == 1
