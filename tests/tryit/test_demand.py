"""Demand: what is requested, by hand and automatically."""

from __future__ import annotations

from weirpool.tryit.demand import Demand


def test_nothing_is_requested_by_itself() -> None:
    granted: list[int] = []
    demand = Demand(2, 2, False, granted.append)
    for _ in range(2):
        demand.arrived()
    assert (demand.received, demand.outstanding, granted) == (2, 0, [])
    demand.request(3)
    assert (demand.outstanding, granted) == (3, [3])


def test_automatic_demand_keeps_a_window_until_it_is_paused() -> None:
    granted: list[int] = []
    demand = Demand(10, 10, True, granted.append)
    for _ in range(5):
        demand.arrived()
    assert granted == [5] and demand.outstanding == 10
    demand.automatic(False)
    for _ in range(10):
        demand.arrived()
    assert granted == [5] and demand.outstanding == 0
    demand.automatic(True)
    assert granted == [5, 10] and demand.outstanding == 10
