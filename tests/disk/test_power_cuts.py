"""The journal on the simulated disk: power cuts and errors at every step."""

from __future__ import annotations

import errno
import random
from pathlib import Path

import pytest

from penstock.journal import Journal
from tests.disk.lying import LyingDisk, PowerCut
from tests.disk.scenario import Promises, broken_promises, unnoticed, work

SEEDS = 4


def steps_of_the_work(folder: Path) -> int:
    folder.mkdir()
    disk = LyingDisk(folder)
    with disk.installed():
        work(folder / "journal", Promises())
    return disk.steps


def cut_at(step: int, seed: int, folder: Path) -> list[str]:
    """Cut the power at a step; return the guarantees that are broken afterwards."""
    before, after = folder / f"before-{step}-{seed}", folder / f"after-{step}-{seed}"
    before.mkdir()
    after.mkdir()
    disk, promises = LyingDisk(before, cut_at=step), Promises()
    with disk.installed(), pytest.raises(PowerCut):
        work(before / "journal", promises)
    disk.power_cut(after, random.Random(f"{step} {seed}"))
    return broken_promises(after / "journal", promises)


def test_power_cut_at_every_step_breaks_no_promise(tmp_path: Path) -> None:
    steps = steps_of_the_work(tmp_path / "whole")
    assert steps > 100
    found = {(step, seed): cut_at(step, seed, tmp_path) for step in range(1, steps + 1) for seed in range(SEEDS)}
    assert {where: broken for where, broken in found.items() if broken} == {}


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_error_at_every_step_breaks_no_promise(number: int, tmp_path: Path) -> None:
    steps = steps_of_the_work(tmp_path / "whole")
    found = {}
    for step in range(1, steps + 1):
        folder = tmp_path / f"{step}"
        folder.mkdir()
        promises = Promises()
        with LyingDisk(folder, fail_at=(step, number)).installed():
            work(folder / "journal", promises)
        found[step] = broken_promises(folder / "journal", promises)
    assert {step: broken for step, broken in found.items() if broken} == {}


def test_disk_that_lies_about_fsync_never_passes_for_sound(tmp_path: Path) -> None:
    steps = steps_of_the_work(tmp_path / "whole")
    found, noticed = {}, 0
    for step in range(10, steps + 1):
        rng = random.Random(step)
        before, after = tmp_path / f"before-{step}", tmp_path / f"after-{step}"
        before.mkdir()
        after.mkdir()
        disk = LyingDisk(before, cut_at=step, lies_from=rng.randrange(1, step))
        with disk.installed(), pytest.raises(PowerCut):
            work(before / "journal", Promises())
        disk.power_cut(after, rng)
        found[step] = unnoticed(after / "journal")
        noticed += (after / "journal" / "source=s").is_dir() and bool(Journal(after / "journal").verify()["s"].problems)
    assert {step: wrong for step, wrong in found.items() if wrong} == {}
    # Otherwise the disk has ignored too few syncs to prove anything.
    assert noticed > steps // 10
