"""Group commit on the simulated disk: power cuts and errors at every step."""

from __future__ import annotations

import errno
import random
from functools import partial
from pathlib import Path

import pytest

from tests.disk import labs
from tests.disk.together import Promises, broken_promises, work


def steps_of_the_work(folder: Path) -> int:
    promises = Promises()
    steps = labs.steps_of(partial(work, promises=promises), folder)
    assert promises.end == promises.attempted
    assert not list((folder / "journal" / "_redo").iterdir())
    return steps


def cut_at(step: int, folder: Path) -> list[str]:
    """Cut the power at a step; return the guarantees that are broken afterwards."""
    promises = Promises()
    journal = labs.cut(partial(work, promises=promises), folder / f"{step}", random.Random(step), cut_at=step)
    return broken_promises(journal, promises)


def test_power_cut_at_every_step_breaks_no_promise(tmp_path: Path) -> None:
    steps = steps_of_the_work(tmp_path / "whole")
    assert steps > 150
    found = {step: cut_at(step, tmp_path) for step in range(1, steps + 1)}
    assert {where: broken for where, broken in found.items() if broken} == {}


@pytest.mark.parametrize("numbers", [(errno.EIO, errno.EIO), (errno.ENOSPC, errno.EMFILE)])
def test_error_at_every_step_breaks_no_promise(numbers: tuple[int, int], tmp_path: Path) -> None:
    steps = steps_of_the_work(tmp_path / "whole")
    found = {}
    # Each step fails with one of the errors.
    for step in range(1 + (numbers[0] == errno.EIO), steps + 1, 2):
        promises, number = Promises(), numbers[step // 2 % 2]
        journal = labs.fail(partial(work, promises=promises), tmp_path / f"{step}", step, number)
        found[step] = broken_promises(journal, promises)
    assert {step: broken for step, broken in found.items() if broken} == {}


def test_power_cut_after_an_error_breaks_no_promise(tmp_path: Path) -> None:
    # What an error leaves in the redo files must not replace what was appended since.
    steps = steps_of_the_work(tmp_path / "whole")
    rng = random.Random("errors and cuts")
    found = {}
    for turn in range(60):
        failing = rng.randrange(40, steps)
        cut = failing + rng.randint(1, 60)
        promises = Promises()
        lab = partial(labs.cut, cut_at=cut, fail_at=(failing, errno.EIO))
        journal = lab(partial(work, promises=promises), tmp_path / f"{turn}", rng)
        found[failing, cut] = broken_promises(journal, promises)
    assert {where: broken for where, broken in found.items() if broken} == {}
