"""Two collectors of one group: one of them stops at every step of its life, and goes on after the other one's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.replica.groups import MemoryStore, Outage, sequence, update
from weirpool.errors import StoreError
from weirpool.replica import ownership as ownership_module
from weirpool.replica.ownership import Ownership, Superseded, take

SOURCES = ("a", "b")


class World:
    """A store, what is sealed, and what was acknowledged to publishers."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.acknowledged: dict[tuple[str, int], str] = {}
        self.sealed: dict[tuple[str, int], str] = {}

    def life(self, tag: str) -> Iterator[None]:
        """Live as a collector that collects, seals and sweeps, until it is superseded."""
        owned = take(sequence(self.store))
        for turn in range(6):
            updates = [update(owned, source, 1 + turn % 2, tag) for source in SOURCES[: 1 + turn % 2]]
            self.settled(owned, updates)
            for each in updates:
                for position in range(each.part.first, each.part.end):
                    assert (each.part.source, position) not in self.acknowledged
                    self.acknowledged[each.part.source, position] = tag
            if turn % 2:
                self.seal(owned)
            yield

    def settled(self, owned: Ownership, updates: list[ownership_module.Update]) -> None:
        try:
            owned.append(updates)
        except Outage:
            while True:
                try:
                    owned.settle()
                    return
                except Outage:
                    continue

    def seal(self, owned: Ownership) -> None:
        """Seal everything but the last row of each log, and delete bundles."""
        ends = {source: part.end - 1 for source, part in owned.logs.items()}
        for (source, position), tag in self.content().items():
            if position < ends.get(source, 0):
                assert self.sealed.setdefault((source, position), tag) == tag
        owned.release(ends)
        try:
            owned.sweep()
        except Outage:
            pass

    def content(self) -> dict[tuple[str, int], str]:
        """Return what the bundles have."""
        step, self.store.step = self.store.step, lambda what: None
        found = {}
        for number in sequence(self.store).numbers():
            bundle = sequence(self.store).read(number)
            assert bundle is not None
            for source in SOURCES:
                for line in bytes(bundle.batches(source)).decode().splitlines():
                    position, tag = line.split()
                    assert (source, int(position)) not in found
                    found[source, int(position)] = tag
        self.store.step = step
        return found

    def check(self) -> None:
        """Check that what was acknowledged is there, once, and as its writer wrote it."""
        held = {**self.sealed, **self.content()}
        for key, tag in self.acknowledged.items():
            assert held.get(key) == tag, key
        for source in SOURCES:
            positions = sorted(position for name, position in held if name == source)
            assert positions == list(range(len(positions)))
        for source, part in take(sequence(self.store)).logs.items():
            assert part.end == sum(name == source for name, _ in held)


def live(world: World, tag: str) -> bool:
    """Live to the end, and return True; False if another one has taken over."""
    try:
        for _ in world.life(tag):
            pass
    except Superseded:
        return False
    return True


def steps(world: World) -> int:
    """Return how many steps a life has that nobody disturbs."""
    count = 0

    def step(what: str) -> None:
        nonlocal count
        count += 1

    world.store.step = step
    assert live(world, "alone")
    world.store.step = lambda what: None
    return count


@pytest.fixture(autouse=True)
def frequent_snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ownership_module, "SNAPSHOT_BUNDLES", 3)


def disturb(world: World, at: int, *, lose_answer: bool = False) -> None:
    """Let a second collector live while the first one is stopped at a step."""
    count = 0

    def step(what: str) -> None:
        nonlocal count
        count += 1
        if count == at:
            world.store.step = lambda what: None
            assert live(world, "second")
            world.store.step = step
            if lose_answer:
                raise Outage(what)

    world.store.step = step
    try:
        first = live(world, "first")
        assert not first or at >= count or "first" in world.acknowledged.values()
    finally:
        world.store.step = lambda what: None


def test_a_collector_may_stop_at_every_step() -> None:
    for at in range(1, steps(World()) + 1):
        world = World()
        disturb(world, at)
        world.check()
        assert "second" in world.acknowledged.values()


def test_a_collector_may_stop_where_answers_are_lost() -> None:
    """The second collector lives while the first one waits for an answer, which is lost."""
    for at in range(1, steps(World()) + 1):
        world = World()
        # Without the answer, the first collector may be unable to take the group over.
        with suppress(StoreError):
            disturb(world, at, lose_answer=True)
        world.check()


def test_a_chain_of_collectors_wakes_up_late() -> None:
    world = World()
    lives = [world.life(tag) for tag in ("one", "two", "three")]
    next(lives[0])
    next(lives[0])
    next(lives[1])
    assert live(world, "between")
    next(lives[2])
    for each in (lives[0], lives[1]):
        with pytest.raises(Superseded):
            next(each)
    for _ in lives[2]:
        pass
    world.check()
