from __future__ import annotations

import pytest

from tests.sim.fairness import BusyLoop
from tests.sim.shares import SCENARIOS

# THREATS 36, 89


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_no_client_takes_what_others_need(scenario: str) -> None:
    assert list(SCENARIOS[scenario](BusyLoop())) == []
