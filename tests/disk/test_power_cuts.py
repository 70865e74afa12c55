"""The journal on the simulated disk: power cuts and errors at every step, and during recovery."""

from __future__ import annotations

import errno
import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.disk import labs
from tests.disk.scenario import Promises, broken_promises, unnoticed, work
from weirpool.journal import Journal

SEEDS = 3
OPENING_STEPS = 30
"""More than it takes to open the log, so that some power cuts come while it is written to."""


@pytest.fixture(autouse=True)
def _no_syncs() -> Iterator[None]:
    with labs.without_syncs():
        yield


def steps_of_the_work(folder: Path) -> int:
    return labs.steps_of(partial(work, promises=Promises()), folder)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_power_cut_at_every_step_breaks_no_promise(tmp_path: Path, seed: int) -> None:
    found = labs.cuts(work, tmp_path, Promises(), worst=not seed, seed=seed)
    assert len(found) > 100
    assert labs.broken(broken_promises, found) == {}


def test_power_cuts_during_recovery_break_no_promise(tmp_path: Path) -> None:
    found = labs.cuts(work, tmp_path, Promises())
    assert labs.broken(broken_promises, [labs.recovered(left, work, OPENING_STEPS) for left in found]) == {}


@pytest.mark.parametrize("numbers", [(errno.EIO,), (errno.ENOSPC, errno.EMFILE)])
def test_error_at_every_step_breaks_no_promise(numbers: tuple[int, ...], tmp_path: Path) -> None:
    steps = steps_of_the_work(tmp_path / "whole")
    found = {}
    for step in range(1, steps + 1):
        promises = Promises()
        number = numbers[step % len(numbers)]
        journal = labs.fail(partial(work, promises=promises), tmp_path / f"{step}", step, number)
        found[step] = broken_promises(journal, promises)
    assert {step: broken for step, broken in found.items() if broken} == {}


def test_disk_that_lies_about_fsync_never_passes_for_sound(tmp_path: Path) -> None:
    steps = steps_of_the_work(tmp_path / "whole")
    found, noticed = {}, 0
    for step in range(10, steps + 1):
        rng = random.Random(step)
        lies_from = rng.randrange(1, step)
        lab = partial(labs.cut, cut_at=step, lies_from=lies_from)
        journal = lab(partial(work, promises=Promises()), tmp_path / f"{step}", rng)
        found[step] = unnoticed(journal)
        noticed += (journal / "source=s").is_dir() and bool(Journal(journal).verify()["s"].problems)
    assert {step: wrong for step, wrong in found.items() if wrong} == {}
    # Otherwise the disk has ignored too few syncs to prove anything.
    assert noticed > steps // 10
