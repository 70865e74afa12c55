"""The laboratories of fair turns and shares: what competes for one event loop, on a clock that only work moves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.sim import shares as between_clients
from tests.sim.fairness import SCENARIOS, BusyLoop, Plain, breaches

__all__ = ["fair_turns", "shares"]


def fair_turns(folder: Path) -> Iterator[str]:
    """Let streams, calls, tasks and full links compete; nobody waits for long, and nobody gets more."""
    for name in SCENARIOS:
        yield from (f"{name}: {wrong}" for wrong in breaches(Plain(), name))


def shares(folder: Path) -> Iterator[str]:
    """Let one client send more than can be handled, from one link and from many; others are served meanwhile."""
    for name, scenario in between_clients.SCENARIOS.items():
        yield from (f"{name}: {wrong}" for wrong in scenario(BusyLoop()))
