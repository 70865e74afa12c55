"""Sealing that is killed, fails, races or loses power at every step."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.archive.logs import SMALL, broken, fill, glob_positions, positions, seal_all
from tests.archive.steps import Crash, Steps
from tests.disk.lying import LyingDisk, PowerCut
from tests.journal.logs import SOURCE, append
from tests.objects.stores import numbers
from weirpool.archive import SealOptions, seal
from weirpool.errors import JournalError, StoreError
from weirpool.journal import Journal, JournalWriter
from weirpool.journal.layout import log_folder
from weirpool.journal.sealed import load_sealed
from weirpool.objects import open_store

END = 12
COUNTS = (3, 4, 5)
GAPS = (1, 2)
GAP_POSITIONS = {3, 7}
IN_FOLDER, IN_STORE = "folder", "store"
Action = Callable[[Path, SealOptions], None]


def prepared(path: Path, where: str) -> tuple[SealOptions, str | None]:
    """Make a log to seal; return the options, and the URI of its store."""
    fill(path, *COUNTS, gaps=GAPS)
    uri = f"memory://crash-{next(numbers)}" if where == IN_STORE else None
    return SealOptions(target_bytes=1, store=uri), uri


def steps_of(path: Path, where: str, *, disk: bool = True) -> int:
    options, _ = prepared(path, where)
    steps = Steps()
    with steps.installed(disk=disk):
        assert seal_all(path, options) == 2
    return steps.count


def at_every_step(path: Path, where: str, after: bool, action: Action, *, disk: bool = True) -> dict[int, list[str]]:
    """Do something at every step of sealing; return what is broken then, at the end, and after sealing again."""
    found = {}
    count = steps_of(path / "whole", where, disk=disk)
    assert count > 10
    for step in range(1, count + 1):
        folder = path / f"{step}"
        options, uri = prepared(folder, where)
        steps = Steps(step, lambda folder=folder, options=options: action(folder, options), after=after)
        wrong: list[str] = []
        with steps.installed(disk=disk):
            try:
                seal_all(folder, options)
            except (Crash, JournalError):
                wrong += broken(folder, END, GAP_POSITIONS, uri)
        wrong += broken(folder, END, GAP_POSITIONS, uri)
        seal_all(folder, options)
        wrong += broken(folder, END, GAP_POSITIONS, uri)
        if glob_positions(open_store(uri or folder)) != [*range(7)]:
            wrong.append("not everything is sealed in the end")
        if wrong:
            found[step] = wrong
    return found


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("where", [IN_FOLDER, IN_STORE])
def test_a_kill_at_every_step_loses_nothing(tmp_path: Path, where: str, after: bool) -> None:
    def kill(folder: Path, options: SealOptions) -> None:
        raise Crash

    assert at_every_step(tmp_path, where, after, kill) == {}


@pytest.mark.parametrize("after", [False, True])
def test_an_error_at_every_step_loses_nothing(tmp_path: Path, after: bool) -> None:
    def fail(folder: Path, options: SealOptions) -> None:
        raise StoreError("the network is down")

    assert at_every_step(tmp_path, IN_STORE, after, fail) == {}


@pytest.mark.parametrize("where", [IN_FOLDER, IN_STORE])
def test_another_sealer_at_every_step_loses_nothing(tmp_path: Path, where: str) -> None:
    def compete(folder: Path, options: SealOptions) -> None:
        seal_all(folder, options)

    # Not at changes on disk, because some are made under a lock, for which the other one waits.
    assert at_every_step(tmp_path, where, False, compete, disk=False) == {}


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("where", [IN_FOLDER, IN_STORE])
def test_another_sealer_is_no_error_and_is_not_undone(tmp_path: Path, where: str, after: bool) -> None:
    count = steps_of(tmp_path / "whole", where, disk=False)
    for step in range(1, count + 1):
        folder = tmp_path / f"{step}"
        options, _ = prepared(folder, where)
        recorded: list[int] = []

        def note(folder: Path = folder, recorded: list[int] = recorded) -> None:
            state = load_sealed(log_folder(folder, SOURCE))
            recorded.append(0 if state is None else state.end)

        def compete(folder: Path = folder, options: SealOptions = options, note: Callable[[], None] = note) -> None:
            seal_all(folder, options)
            note()

        with Steps(step, compete, after=after).installed(disk=False):
            # One call, which must do nothing that the other one has done, or undo it.
            seal(folder, SOURCE, options, force=True)
        if not recorded:
            break
        note()
        assert recorded == [7, 7], step
    assert step > 5


@pytest.mark.parametrize("where", [IN_FOLDER, IN_STORE])
def test_readers_see_every_row_at_every_step(tmp_path: Path, where: str) -> None:
    seen: list[list[int]] = []

    def look(folder: Path, options: SealOptions) -> None:
        seen.append(positions(Journal(folder).reader(SOURCE)))

    assert at_every_step(tmp_path, where, False, look) == {}
    assert seen and all(each == [*range(END)] for each in seen)


@pytest.mark.parametrize("where", [IN_FOLDER, IN_STORE])
@pytest.mark.parametrize("taken", [0, 1])
def test_a_reader_that_has_begun_sees_every_row_once(tmp_path: Path, where: str, taken: int) -> None:
    count = steps_of(tmp_path / "whole", where)
    for step in range(1, count + 1):
        folder = tmp_path / f"{step}"
        options, _ = prepared(folder, where)
        reader = Journal(folder).reader(SOURCE)
        rows: list[int] = []
        # One range a batch, as tasks read.
        parts = reader.split(0, END, max_rows=2)

        def take(count: int, reader=reader, rows=rows, parts=parts) -> None:
            for _ in range(min(count, len(parts))):
                rows.extend(positions(reader, *parts.pop(0)))

        take(taken)
        steps = Steps(step, lambda take=take: take(1))
        with steps.installed():
            seal_all(folder, options)
        take(END)
        assert rows == [*range(END)], step


def test_a_power_cut_at_every_step_loses_nothing(tmp_path: Path) -> None:
    def work(folder: Path) -> None:
        with JournalWriter.open(folder, SOURCE, segment_bytes=1) as writer:
            for number, count in enumerate(COUNTS):
                if number in GAPS:
                    writer.append_gap("gap")
                append(writer, count)

    whole = tmp_path / "whole"
    whole.mkdir()
    disk = LyingDisk(whole)
    with disk.installed():
        work(whole / "journal")
        before = disk.steps
        seal_all(whole / "journal")
    assert disk.steps > before + 30
    found = {}
    for step in range(before + 1, disk.steps + 1):
        for seed in range(1):
            root, left = tmp_path / f"{step}-{seed}", tmp_path / f"{step}-{seed}-after"
            root.mkdir()
            left.mkdir()
            cut = LyingDisk(root, cut_at=step)
            with cut.installed(), pytest.raises(PowerCut):
                work(root / "journal")
                seal_all(root / "journal")
            cut.power_cut(left, random.Random(f"{step} {seed}"))
            wrong = broken(left / "journal", END, GAP_POSITIONS)
            seal_all(left / "journal", SMALL)
            wrong += broken(left / "journal", END, GAP_POSITIONS)
            if wrong:
                found[step, seed] = wrong
    assert found == {}
