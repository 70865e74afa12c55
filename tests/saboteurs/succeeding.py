"""The laboratory of groups: collectors that follow each other, readers of their logs, and stores that fence or do not.

What readers and operators were told is known. Whatever ends a collector, its successor must not know less, and no row
may go that a reader has not committed.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final
from unittest import mock

from tests.archive.steps import Steps
from tests.journal.logs import SOURCE, append
from tests.objects.bucket import Bucket
from tests.objects.stores import CREDENTIALS
from weirpool.archive import SealOptions, seal
from weirpool.archive import retire as retiring
from weirpool.archive.retire import retire
from weirpool.errors import JournalError, JournalMismatch, LocalError, StoreError
from weirpool.journal import Journal, JournalWriter, asks
from weirpool.journal.coordinator import FolderCoordinator
from weirpool.journal.layout import log_folder
from weirpool.objects import open_store, remote
from weirpool.objects.folder import FolderStore
from weirpool.objects.ports import Data
from weirpool.objects.probe import ConditionIgnored
from weirpool.replica import ownership, readers
from weirpool.replica.bundle import Cursor
from weirpool.replica.group import Group, Membership
from weirpool.replica.ownership import Ownership, Superseded, take
from weirpool.replica.sequence import Sequence
from weirpool.replica.vault import new_key

__all__ = ["careless_stores", "successors"]

SEEDS: Final = 3
TAKE_OVERS: Final = 5
ROWS: Final = 10
NAMES: Final = ("lake", "lake@two", "export", "audit")


class World:
    """A group, its collectors so far, and what its readers were told."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.folder = folder
        self.key = new_key()
        self.store = str(folder / "store")
        self.keep = SealOptions(store=self.store, **{self.rng.choice(("keep", "keep_bytes")): 0})  # type: ignore[arg-type]  # Both are numbers
        self.told: dict[str, tuple[str, int]] = {}
        self.groups: list[Group] = []
        self.journal = folder
        self.end = 0
        self.breaches: list[str] = []

    def take_over(self, name: str) -> None:
        self.journal = self.folder / name
        member = Membership(
            name="edge", store=self.store, key=self.key, journal=self.journal, patience=1_000.0, interval=0.0
        )
        self.groups.append(Group(member))

    @property
    def desk(self) -> FolderCoordinator:
        return FolderCoordinator(str(self.journal))

    def collect(self) -> None:
        with JournalWriter.open(self.journal, SOURCE, replica=self.groups[-1].logs, segment_bytes=1) as writer:
            for _ in range(3):
                append(writer, ROWS)
            self.end = writer.position
        while seal(self.journal, SOURCE, SealOptions(store=self.store, target_bytes=1)) is not None:
            pass
        self.groups[-1].tend(0.0)

    def read(self) -> None:
        """Let a reader claim its name, advance, go back, or be dropped."""
        name = self.rng.choice(NAMES)
        if name in self.told and self.rng.random() < 0.3:
            self.desk.forget(SOURCE, name.partition("@")[0])
            reader = name.partition("@")[0]
            self.told = {other: at for other, at in self.told.items() if other.partition("@")[0] != reader}
        else:
            query, _ = self.told.get(name, (f"query-{self.rng.randrange(1_000)}", 0))
            position = self.rng.randrange(Journal(self.journal).reader(SOURCE).first, self.end + 1)
            self.desk.commit(SOURCE, name, position, query=query)
            self.told[name] = query, position
        self.compare(self.stored(), "the store")

    def stored(self) -> dict[str, Cursor]:
        """Return the readers that a successor would know now."""
        bundles = Sequence(FolderStore(self.store), "edge")
        while True:
            found = Ownership(bundles, "looks", b"", lambda: 0.0)
            try:
                ownership._recall(found, bundles, bundles.numbers())
            except Superseded:
                # The owner has written and deleted bundles meanwhile.
                continue
            return found.logs[SOURCE].readers or {}

    def compare(self, found: dict[str, Cursor], what: str) -> None:
        for name in found.keys() - self.told.keys():
            self.breaches.append(f"{what} knows reader {name}, which was dropped")
        for name, (query, position) in self.told.items():
            cursor = found.get(name)
            if cursor is None or cursor.query != query or cursor.position > position:
                self.breaches.append(f"{what} has {cursor} of reader {name}, which is at {position} for {query}")

    def check(self) -> None:
        """Check what the owner knows, and that retention heeds it."""
        self.compare(readers.cursors(log_folder(self.journal, SOURCE), self.uuid()), "the owner")
        for name, (_, position) in self.told.items():
            try:
                self.desk.commit(SOURCE, name, position, query="somebody-else")
            except JournalMismatch:
                continue
            self.breaches.append(f"another query has taken the name {name}")
        first = retire(self.journal, SOURCE, self.keep)
        needed = min((at for _, at in self.told.values()), default=self.end)
        reader = Journal(self.journal).reader(SOURCE)
        rows = [row for batch in reader.read(needed, self.end) for row in batch["position"].to_pylist()]
        if rows != list(range(needed, self.end)):
            self.breaches.append(f"rows from {needed} on were removed although a reader needs them")
        if not self.told and first < self.end - ROWS:
            self.breaches.append(f"rows from {first} on are kept for nobody")

    def uuid(self) -> str:
        return Journal(self.journal).reader(SOURCE).uuid

    def close(self) -> None:
        for group in self.groups:
            group.close()


def successors(folder: Path) -> Iterator[str]:
    """Let collectors end by a stop, by silence or with their machine, while readers come, go on, go back and go."""
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(ownership, "SNAPSHOT_BUNDLES", 3))
        stack.enter_context(mock.patch.object(readers, "LOOK_SECONDS", 0.02))
        stack.enter_context(mock.patch.object(asks, "POLL", 0.005))
        for seed in range(SEEDS):
            world = World(folder / str(seed), seed)
            try:
                yield from _follow(world)
            except JournalError as error:
                yield f"{type(error).__name__}: {error}"
            finally:
                world.close()
        yield from _former_owner(folder / "former")
        for elsewhere in (True, False):
            yield from _paused_owner(folder / f"paused-{elsewhere}", elsewhere=elsewhere)


def _follow(world: World) -> Iterator[str]:
    for number in range(TAKE_OVERS):
        world.take_over(world.rng.choice(("one", "two")) if number else "one")
        if number:
            world.check()
        world.collect()
        for _ in range(world.rng.randrange(4)):
            world.read()
        world.check()
        yield from world.breaches
        end = world.rng.choice(("stop", "silence", "loss"))
        if end == "stop":
            world.groups.pop().close()
        elif end == "loss":
            world.groups[-1].close()
            shutil.rmtree(world.journal)


def _former_owner(folder: Path) -> Iterator[str]:
    """Let a former owner retire rows when a reader has gone back at its successor; then let it own the group again."""
    world = World(folder, 0)
    try:
        world.take_over("one")
        world.collect()
        world.desk.commit(SOURCE, "lake", 2 * ROWS, query="query")
        former = world.journal
        world.take_over("two")
        world.desk.commit(SOURCE, "lake", 0, query="query")
        with mock.patch.object(asks, "PATIENCE", 0.2):
            try:
                retire(former, SOURCE, world.keep)
            except JournalError:
                pass
        if Journal(world.journal).reader(SOURCE).first:
            yield "a former owner, which does not know the readers, has removed rows"
        world.desk.forget(SOURCE, "lake")
        world.take_over("one")
        if Journal(world.journal).readers(SOURCE):
            yield "a reader that was dropped at another owner is known again"
    finally:
        world.close()


def _paused_owner(folder: Path, *, elsewhere: bool) -> Iterator[str]:
    """Pause an owner while it retires rows, at each request in turn; a reader goes back, also at a successor."""
    number, reached = 0, True
    while reached:
        number += 1
        world = World(folder / str(number), 0)
        promised: list[int] = []
        try:
            world.take_over("one")
            world.collect()
            world.desk.seek(SOURCE, "export", 2 * ROWS)
            steps = Steps(number, partial(_go_back, world, promised, elsewhere))
            with mock.patch.object(retiring, "journal_store", steps.store(retiring.journal_store)):
                try:
                    retire(world.folder / "one", SOURCE, world.keep)
                except JournalError:
                    pass
            reached = steps.count >= number
            for position in promised:
                if Journal(world.journal).reader(SOURCE).first > position:
                    yield f"rows were removed that a reader was promised before request {number}, {elsewhere=}"
        finally:
            world.close()


def _go_back(world: World, promised: list[int], elsewhere: bool) -> None:
    if elsewhere:
        world.take_over("two")
    try:
        promised.append(world.desk.seek(SOURCE, "export", 0))
    except LocalError:
        return


class Overwriting(FolderStore):
    """A store that ignores the condition."""

    def create(self, name: str, data: Data) -> bool:
        self.put(name, data)
        return True


def careless_stores(folder: Path) -> Iterator[str]:
    """Take groups over in stores that ignore conditions, that fail while they are asked, and that change."""
    with mock.patch.dict(os.environ, CREDENTIALS), mock.patch.object(remote, "_WAITS", (0.0, 0.0, None)):
        for conditional in (True, False):
            for number in (None, 0, 1):
                for lasting in (False, True):
                    yield from _asked(conditional, number, lasting)
    first = take(Sequence(FolderStore(folder), "edge"))
    second = Sequence(Overwriting(folder), "edge")
    first._sequence = second
    with mock.patch.object(Sequence, "probe"):
        take(second)
    try:
        first.append()
    except Superseded:
        return
    yield "a former owner writes on in a store that no longer holds the condition"


def _asked(conditional: bool, number: int | None, lasting: bool) -> Iterator[str]:
    """Take a group over while the answers to a request, or to all from it on, are lost after it was executed."""
    with Bucket(conditional=conditional).served() as bucket:
        bucket.fail = lambda method, before, executed: (
            503
            if number is not None
            and method == "PUT"
            and executed
            and (before >= number if lasting else before == number)
            else None
        )
        what = f"a store {'with' if conditional else 'without'} conditions, failing at {number}, {lasting=}"
        try:
            take(Sequence(open_store(bucket.uri), "edge"))
        except ConditionIgnored:
            if conditional:
                yield f"{what}, is refused"
        except StoreError:
            if number is None or not lasting:
                yield f"{what}, is not used"
        else:
            if not conditional or (number is not None and lasting):
                yield f"{what}, is accepted"
        if any("_probe" in name for name in bucket.objects):
            yield f"{what}, keeps an object that was created to ask it"
