"""The laboratory of fair turns: what competes for one event loop, on a clock that only sending moves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.sim.fairness import SCENARIOS, Plain, breaches

__all__ = ["fair_turns"]


def fair_turns(folder: Path) -> Iterator[str]:
    """Let streams, calls, tasks and full links compete; nobody waits for long, and nobody gets more."""
    for name in SCENARIOS:
        yield from (f"{name}: {wrong}" for wrong in breaches(Plain(), name))
