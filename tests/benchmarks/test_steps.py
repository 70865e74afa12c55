"""The steps from a socket to Spark are shown beside their goals."""

from __future__ import annotations

import json
from typing import Any

from benchmarks.steps import Budget, Budgets


def test_budget_shows_median_and_range_per_million_rows() -> None:
    budget = Budget("a step", 0.6)
    for seconds in (1.0, 3.0, 1.5):
        budget.add(seconds, 2_000_000)
    assert str(budget).split() == ["a", "step", "0.75", "0.50", "1.50", "0.60"]


def test_step_without_a_goal_has_none() -> None:
    assert str(Budget("a step", None, [1.0])).split() == ["a", "step", "1.00", "1.00", "1.00"]


def test_budgets_can_be_saved() -> None:
    found = Budgets()
    for budget in vars(found).values():
        budget.add(1.0, 1e6)
    saved: Any = json.loads(json.dumps(found.as_object()))
    assert saved["rows"][0] == {"title": "socket to synced journal", "goal": 0.6, "costs": [1.0]}
    assert len(str(found).splitlines()) == 2 + len(saved["rows"])
