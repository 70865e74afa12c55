"""The journal on the simulated disk: power cuts and errors at every step."""

from __future__ import annotations

import errno
import random
from functools import partial
from pathlib import Path

import pytest

from penstock.journal import Journal
from tests.disk import labs
from tests.disk.scenario import Promises, broken_promises, unnoticed, work

SEEDS = 4


def steps_of_the_work(folder: Path) -> int:
    return labs.steps_of(partial(work, promises=Promises()), folder)


def cut_at(step: int, seed: int, folder: Path) -> list[str]:
    """Cut the power at a step; return the guarantees that are broken afterwards."""
    promises, rng = Promises(), random.Random(f"{step} {seed}")
    journal = labs.cut(partial(work, promises=promises), folder / f"{step}-{seed}", rng, cut_at=step)
    return broken_promises(journal, promises)


def test_power_cut_at_every_step_breaks_no_promise(tmp_path: Path) -> None:
    steps = steps_of_the_work(tmp_path / "whole")
    assert steps > 100
    found = {(step, seed): cut_at(step, seed, tmp_path) for step in range(1, steps + 1) for seed in range(SEEDS)}
    assert {where: broken for where, broken in found.items() if broken} == {}


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
