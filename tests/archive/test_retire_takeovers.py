from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from unittest import mock

import pytest

from tests.archive.logs import fill, positions, seal_all
from tests.archive.steps import Steps
from tests.journal.logs import SOURCE, append
from weirpool.archive import SealOptions, retire, seal
from weirpool.errors import JournalError, LocalError
from weirpool.journal import Journal, JournalWriter, asks
from weirpool.journal.coordinator import FolderCoordinator
from weirpool.journal.layout import log_folder
from weirpool.journal.retention import commits
from weirpool.replica import readers
from weirpool.replica.group import Group, Membership
from weirpool.replica.vault import new_key

END = 15
NEEDED = 6


@contextmanager
def paused(steps: Steps, *, readers: bool) -> Iterator[None]:
    """Let each request of `retire` be a step, and each look at the readers."""
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(retire, "journal_store", steps.store(retire.journal_store)))
        if readers:
            stack.enter_context(mock.patch.object(retire, "commits", lambda folder: steps.run(commits, folder)))
        yield


def go_back(journal: Path) -> Exception | None:
    """Let a reader go back to the beginning; return what it is told."""
    try:
        FolderCoordinator(str(journal)).seek(SOURCE, "export", 0)
    except (JournalError, LocalError) as error:
        return error
    return None


def check(journal: Path, told: Exception | None) -> None:
    """Check that a reader that has gone back has all rows, or was refused because they are gone."""
    reader = Journal(journal).reader(SOURCE)
    needed = commits(log_folder(journal, SOURCE))["export"]
    assert positions(reader, needed, END) == [*range(needed, END)]
    assert needed == (0 if told is None else NEEDED)
    assert told is None or (isinstance(told, LocalError) and "go back" in str(told)), told


class World:
    """A group with a log of sealed rows, which a reader has committed up to a position."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.key, self.store = folder, new_key(), str(folder / "store")
        self.groups: list[Group] = []
        self.options = SealOptions(store=self.store, target_bytes=1, keep_bytes=0)
        self.first = self.take_over("one")
        with JournalWriter.open(self.first, SOURCE, replica=self.groups[0].logs, segment_bytes=1) as writer:
            for _ in range(5):
                append(writer, 3)
        while seal(self.first, SOURCE, self.options, force=True) is not None:
            pass
        # The successor finds these rows in sealed segments alone.
        self.groups[0].tend(0.0)
        FolderCoordinator(str(self.first)).seek(SOURCE, "export", NEEDED)

    def take_over(self, name: str) -> Path:
        member = Membership(
            name="edge", store=self.store, key=self.key, journal=self.folder / name, patience=1_000.0, interval=0.0
        )
        self.groups.append(Group(member))
        return self.folder / name

    def close(self) -> None:
        for group in self.groups:
            group.close()


@pytest.fixture(autouse=True)
def fast() -> Iterator[None]:
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(readers, "LOOK_SECONDS", 0.005))
        stack.enter_context(mock.patch.object(asks, "POLL", 0.002))
        stack.enter_context(mock.patch.object(asks, "PATIENCE", 1.0))
        yield


def at_each_step(folder: Path, run: Callable[[Path, int, list[Exception | None]], tuple[int, Path]]) -> None:
    """Pause at each step, let a reader go back, and go on."""
    total, _ = run(folder / "whole", 0, [])
    assert total > 4
    results = set()
    for number in range(1, total + 1):
        told: list[Exception | None] = []
        _, journal = run(folder / str(number), number, told)
        (result,) = told
        check(journal, result)
        results.add(result is None)
    # It goes back before the rows are removed, and after that.
    assert results == {True, False}


@pytest.mark.parametrize("after", [False, True])
def test_a_former_owner_that_was_paused_removes_nothing_that_its_successor_has_promised(
    tmp_path: Path, after: bool
) -> None:
    def run(folder: Path, number: int, told: list[Exception | None]) -> tuple[int, Path]:
        world = World(folder)
        steps = Steps(number, lambda: told.append(go_back(world.take_over("two"))), after=after)
        try:
            with paused(steps, readers=True), suppress(JournalError):
                retire.retire(world.first, SOURCE, world.options)
        finally:
            world.close()
        return steps.count, folder / "two"

    at_each_step(tmp_path, run)


@pytest.mark.parametrize("after", [False, True])
def test_no_reader_goes_back_to_rows_that_are_being_removed(tmp_path: Path, after: bool) -> None:
    def run(folder: Path, number: int, told: list[Exception | None]) -> tuple[int, Path]:
        fill(folder, 3, 3, 3, 3, 3)
        seal_all(folder)
        FolderCoordinator(str(folder)).seek(SOURCE, "export", NEEDED)
        steps = Steps(number, lambda: told.append(go_back(folder)), after=after)
        with paused(steps, readers=False):
            retire.retire(folder, SOURCE, SealOptions(target_bytes=1, keep_bytes=0))
        return steps.count, folder

    at_each_step(tmp_path, run)


def test_the_position_that_a_successor_knows_counts(tmp_path: Path) -> None:
    """A reader advances after the group has stored its position: if this machine is lost, it goes on from that one."""
    world = World(tmp_path)
    desk = FolderCoordinator(str(world.first))
    with mock.patch.object(retire.asks, "confirm", lambda folder: desk.seek(SOURCE, "export", 9)):
        assert retire.retire(world.first, SOURCE, world.options) == NEEDED
    world.close()
