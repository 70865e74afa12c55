"""Group commit on the simulated disk: power cuts and errors at every step, and during recovery.

Reached in `journal/redo.py` and `replay.py`: redo files are used again before their logs are synced, segments are
completed from them, after a power cut and after one during recovery, and canceled batches stay canceled.
"""

from __future__ import annotations

import errno
import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.disk import labs
from tests.disk.together import Promises, again, broken_promises, process, work
from weirpool.journal.layout import UNSYNCED
from weirpool.journal.redo import Redo

STEPS = 400
"""The work has some more."""
NUMBERS = (errno.EIO, errno.ENOSPC, errno.EMFILE)
"""The errors of the disk."""
OPENING_STEPS = 80
"""More than it takes to open all logs."""


@pytest.fixture(autouse=True)
def _no_syncs() -> Iterator[None]:
    with labs.without_syncs():
        yield


def steps_of_the_work(folder: Path) -> int:
    promises = Promises()
    steps = labs.steps_of(partial(work, promises=promises), folder)
    assert promises.end == promises.attempted
    assert not list((folder / "journal" / "_redo").iterdir())
    return steps


def test_redo_files_are_used_again_before_their_logs_are_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Otherwise this laboratory does not reach what makes it safe.
    room, unsynced = Redo._room, list[int]()

    def counted(self: Redo, size: int) -> Any:
        current, other = self._files
        before = len(other.unsynced)
        found = room(self, size)
        if found is other and found is not current and other.end == 0:
            unsynced.append(before)
        return found

    monkeypatch.setattr(Redo, "_room", counted)
    steps_of_the_work(tmp_path / "whole")
    assert sum(count > 0 for count in unsynced) >= 3


def test_power_cut_at_every_step_breaks_no_promise(tmp_path: Path) -> None:
    found = labs.cuts(work, tmp_path, Promises())
    assert len(found) > STEPS
    assert labs.broken(broken_promises, found) == {}


def test_power_cuts_during_recovery_break_no_promise(tmp_path: Path) -> None:
    found = labs.sample(labs.cuts(work, tmp_path, Promises()), 120)
    assert labs.broken(broken_promises, [labs.recovered(left, process, OPENING_STEPS) for left in found]) == {}


def test_power_cut_at_every_step_of_a_recovery_breaks_no_promise(tmp_path: Path) -> None:
    every = labs.cuts(work, tmp_path, Promises(), worst=True)
    relying = [left for left in every if list(left.journal.glob(f"*/{UNSYNCED}"))]
    assert len(relying) > STEPS // 4
    found = {left.step: labs.broken(broken_promises, labs.cuts_after(left, again)) for left in labs.sample(relying, 8)}
    assert {step: wrong for step, wrong in found.items() if wrong} == {}


def test_error_at_every_step_breaks_no_promise(tmp_path: Path) -> None:
    found = {}
    for step in labs.sample(range(1, steps_of_the_work(tmp_path / "whole") + 1), 60):
        promises, number = Promises(), NUMBERS[step % len(NUMBERS)]
        journal = labs.fail(partial(work, promises=promises), tmp_path / f"{step}", step, number)
        found[step] = broken_promises(journal, promises)
    assert {step: broken for step, broken in found.items() if broken} == {}


def test_power_cut_after_an_error_breaks_no_promise(tmp_path: Path) -> None:
    # What an error leaves in the redo files must not replace what was appended since.
    steps = steps_of_the_work(tmp_path / "whole")
    found = {}
    for failing in labs.sample(range(40, steps), 24):
        later = set(random.Random(failing).sample(range(failing + 1, failing + 60), 6))
        lab = partial(labs.cuts, wanted=later.__contains__, fail_at=(failing, errno.EIO))
        found[failing] = labs.broken(broken_promises, lab(work, tmp_path / f"{failing}", Promises()))
    assert {failing: broken for failing, broken in found.items() if broken} == {}
