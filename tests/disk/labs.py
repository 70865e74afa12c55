"""Experiments on the simulated disk: some work on a journal, disturbed at one step, and its recovery.

A power cut stops a program, and changes nothing of what it has done before. So one run of the work shows what a cut at
each step would leave: a copy of the disk as of that step.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from copy import deepcopy
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar
from unittest import mock

from tests.disk.lying import LyingDisk, PowerCut
from tests.sampling import SEED, WHOLE

__all__ = [
    "Cut",
    "Work",
    "broken",
    "cut",
    "cuts",
    "cuts_after",
    "fail",
    "recovered",
    "sample",
    "steps_of",
    "syncs_of",
    "without_syncs",
]

P = TypeVar("P")
T = TypeVar("T")
Work = Callable[[Path, P], None]
"""Work on the journal in this folder, which notes what it has promised."""
MAX_CUTS = 3
"""How often the power is cut at most during the recovery from one cut."""


class Cut(NamedTuple, Generic[P]):
    """What a power cut has left."""

    step: int
    journal: Path
    promises: P
    """What the work had promised until then."""


def broken(promises: Callable[[Path, P], list[str]], found: Iterable[Cut[P]]) -> dict[int, list[str]]:
    """Return the guarantees that are broken after each power cut, by a function that returns those of a journal."""
    every = {left.step: promises(left.journal, left.promises) for left in found}
    return {step: broken for step, broken in every.items() if broken}


def steps_of(work: Callable[[Path], None], folder: Path) -> int:
    """Return the steps of the work when nothing disturbs it."""
    folder.mkdir()
    disk = LyingDisk(folder)
    with disk.installed():
        work(folder / "journal")
    return disk.steps


def syncs_of(work: Callable[[Path], None], folder: Path) -> list[int]:
    """Return the steps at which the work syncs something, when nothing disturbs it."""
    folder.mkdir()
    disk = LyingDisk(folder)
    with disk.installed():
        work(folder / "journal")
    return disk.syncs


def cuts(
    work: Work[P],
    folder: Path,
    promises: P,
    *,
    wanted: Callable[[int], bool] = lambda step: True,
    worst: bool = False,
    seed: int = 0,
    **faults: Any,
) -> list[Cut[P]]:
    """Return what a power cut at each step of some work would leave, and one after the last step.

    Args:
        work: The work.
        folder: For the disks. The first one is its folder `before`, and begins with what is there.
        promises: What the work has promised.
        wanted: The steps.
        worst: Nothing is left that was not synced. Otherwise, what is left follows from the step and the seed.
        seed: The seed.
        faults: Other faults of the disk.

    """
    before, found = folder / "before", list[Cut[P]]()
    before.mkdir(parents=True, exist_ok=True)

    def look(step: int) -> None:
        after = folder / f"{step}"
        after.mkdir()
        disk.power_cut(after, None if worst else random.Random(f"{step} {seed}"))
        found.append(Cut(step, after / "journal", deepcopy(promises)))

    disk = LyingDisk(before, before_step=lambda step: look(step) if wanted(step) else None, **faults)
    with disk.installed():
        work(before / "journal", promises)
    look(disk.steps + 1)
    return found


def cuts_after(left: Cut[P], work: Work[P]) -> list[Cut[P]]:
    """Return the worst that another power cut can leave, at each step of the work that follows a cut."""
    folder = left.journal.parent.with_name(f"{left.step}-again")
    shutil.copytree(left.journal.parent, folder / "before")
    return cuts(work, folder, deepcopy(left.promises), worst=True)


def recovered(left: Cut[P], work: Work[P], steps: int) -> Cut[P]:
    """Cut the power again and again, each time at one of the first steps of the work that follows."""
    rng = random.Random(left.step)
    for turn in range(rng.randint(1, MAX_CUTS)):
        after = left.journal.parent.with_name(f"{left.step}-{turn}")
        after.mkdir()
        disk = LyingDisk(left.journal.parent, cut_at=rng.randint(1, steps))
        with disk.installed(), suppress(PowerCut):
            work(left.journal, left.promises)
        disk.power_cut(after, rng)
        left = left._replace(journal=after / "journal")
    return left


def cut(work: Callable[[Path], None], folder: Path, rng: random.Random, *, cut_at: int, **faults: Any) -> Path:
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


def fail(work: Callable[[Path], None], folder: Path, step: int, number: int) -> Path:
    """Let a step fail with this error; return the journal."""
    folder.mkdir()
    with LyingDisk(folder, fail_at=(step, number)).installed():
        work(folder / "journal")
    return folder / "journal"


def sample(what: Iterable[T], count: int) -> list[T]:
    """Return so many of the experiments, or all of them if the environment asks for the whole."""
    every = list(what)
    if WHOLE or len(every) <= count:
        return every
    return [every[place] for place in sorted(random.Random(SEED).sample(range(len(every)), count))]


@contextmanager
def without_syncs() -> Iterator[None]:
    """Do not wait for the disk of this machine: what a check writes need not last."""
    with mock.patch.multiple(os, fsync=lambda descriptor: None, fdatasync=lambda descriptor: None):
        yield
