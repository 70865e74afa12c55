"""Receiving on the simulated disk: power cuts and errors at every step, and during recovery.

Reached in `receiving/`: a micro-batch that needs several batches of the log and is left unfinished, by an error and by
a power cut; a push, and a micro-batch of another query, while it is; stages, ledger and plan at each of their writes.
"""

from __future__ import annotations

import errno
import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.disk import labs
from tests.disk.receiving import BATCH_BYTES, Promises, again, broken, work
from weirpool.receiving import log as module

OPENING_STEPS = 20
"""More than it takes to open the log."""


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(module, "BATCH_BYTES", BATCH_BYTES)
    with labs.without_syncs():
        yield


def broken_after(found: list[labs.Cut[Promises]]) -> dict[int, list[str]]:
    """Return what is wrong after each power cut."""
    every = {left.step: broken(left.journal, left.promises) for left in found}
    return {step: wrong for step, wrong in every.items() if wrong}


def steps_of_the_work(folder: Path) -> int:
    return labs.steps_of(partial(work, promises=Promises()), folder)


@pytest.mark.parametrize("worst", [False, True])
def test_power_cut_at_every_step_repeats_and_loses_nothing(tmp_path: Path, worst: bool) -> None:
    found = labs.cuts(work, tmp_path, Promises(), worst=worst)
    assert len(found) > 100
    assert broken_after(found) == {}


def test_power_cuts_during_recovery_repeat_and_lose_nothing(tmp_path: Path) -> None:
    found = labs.cuts(work, tmp_path, Promises())
    assert broken_after([labs.recovered(left, again, OPENING_STEPS) for left in found]) == {}


def test_power_cut_at_every_step_of_a_recovery_repeats_and_loses_nothing(tmp_path: Path) -> None:
    every = labs.cuts(work, tmp_path, Promises(), worst=True)
    found = {left.step: broken_after(labs.cuts_after(left, again)) for left in labs.sample(every, 12)}
    assert {step: wrong for step, wrong in found.items() if wrong} == {}


def test_error_at_every_step_repeats_and_loses_nothing(tmp_path: Path) -> None:
    steps = steps_of_the_work(tmp_path / "whole")
    found, pushes = {}, 0
    for step in range(1, steps + 1):
        promises = Promises()
        number = (errno.EIO, errno.ENOSPC, errno.EMFILE)[step % 3]
        journal = labs.fail(partial(work, promises=promises), tmp_path / f"{step}", step, number)
        found[step] = broken(journal, promises)
        pushes += promises.pushing - 1
    assert {step: wrong for step, wrong in found.items() if wrong} == {}
    # While a commit was not complete.
    assert pushes > 20


def test_power_cut_after_an_error_repeats_and_loses_nothing(tmp_path: Path) -> None:
    steps = steps_of_the_work(tmp_path / "whole")
    found = {}
    for failing in labs.sample(range(10, steps - 2), 24):
        later = set(random.Random(failing).sample(range(failing + 1, failing + 40), 6))
        lab = partial(labs.cuts, wanted=later.__contains__, fail_at=(failing, errno.EIO))
        found[failing] = broken_after(lab(work, tmp_path / f"{failing}", Promises()))
    assert {failing: wrong for failing, wrong in found.items() if wrong} == {}
