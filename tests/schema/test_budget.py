from __future__ import annotations

import pytest

from weirpool import LocalError
from weirpool.schema.budget import Budget


def test_what_is_spent_is_gone() -> None:
    budget = Budget(3, "a test")
    budget.spend(2)
    assert budget.left == 1
    with pytest.raises(LocalError, match="a test takes more than 3 steps"):
        budget.spend(2)
    with pytest.raises(LocalError):
        budget.spend(1)


def test_what_cannot_be_afforded_is_not_taken() -> None:
    budget = Budget(3, "a test")
    assert budget.afford(2) and not budget.afford(2) and budget.afford() and not budget.afford()
