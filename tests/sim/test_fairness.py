from __future__ import annotations

import pytest

from tests.builds import Build
from tests.sim.fairness import SCENARIOS, breaches


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_no_stream_starves_another_nor_a_call(build: Build, scenario: str) -> None:
    assert list(breaches(build, scenario)) == []
