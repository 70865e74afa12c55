from __future__ import annotations

import pytest
from tools import states


def test_the_page_of_states_is_up_to_date() -> None:
    assert states.PAGE.read_text(encoding="utf-8") == states.page(), "run: python -m tools.states"


@pytest.mark.parametrize(("family", "module"), states.MODULES)
def test_every_state_is_reachable_in_its_machine(family: str, module: str) -> None:
    for machine, table in states.machines(module):
        reached = {next(iter(machine)), *table.values()}
        assert reached == set(machine), f"{family}: {machine.__name__}"
