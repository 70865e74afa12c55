"""Experiments on the simulated disk: some work on a journal, disturbed at one step."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.disk.lying import LyingDisk, PowerCut

__all__ = ["cut", "fail", "steps_of"]

Work = Callable[[Path], None]
"""Work on the journal in this folder."""


def steps_of(work: Work, folder: Path) -> int:
    """Return the steps of the work when nothing disturbs it."""
    folder.mkdir()
    disk = LyingDisk(folder)
    with disk.installed():
        work(folder / "journal")
    return disk.steps


def cut(work: Work, folder: Path, rng: random.Random, *, cut_at: int, **faults: Any) -> Path:
    """Cut the power at a step, on a disk that may have other faults; return the journal that is left."""
    before, after = folder / "before", folder / "after"
    before.mkdir(parents=True)
    after.mkdir()
    disk = LyingDisk(before, cut_at=cut_at, **faults)
    with disk.installed(), suppress(PowerCut):
        work(before / "journal")
        assert "fail_at" in faults, f"only an error can end the work before step {cut_at}"
    disk.power_cut(after, rng)
    return after / "journal"


def fail(work: Work, folder: Path, step: int, number: int) -> Path:
    """Let a step fail with this error; return the journal."""
    folder.mkdir()
    with LyingDisk(folder, fail_at=(step, number)).installed():
        work(folder / "journal")
    return folder / "journal"
