from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.builds import Build
from tests.waiting import turns, until

LARGE = 10_000
"""Bytes of a read whose time is measured."""
TURN = 0.002
STEP = 0.0005
"""What decoding a slice takes, on a clock that only decoding moves."""


class World:
    """Readers of one event loop, which log whose slice was decoded."""

    def __init__(self, build: Build) -> None:
        self.module = build.module("weirpool.transports.turns")
        self.now = 100.0
        self.turns = self.module.turns_of(asyncio.get_running_loop())
        self.turns.clock = lambda: self.now
        self.log: list[str] = []

    def reader(self, name: str, client: str, work: int = 0) -> Any:
        """Return a reader with `work` slices to decode."""
        left = [work]

        def step() -> bool:
            while left[0]:
                left[0] -= 1
                self.log.append(name)
                self.now += STEP
                if self.turns.over():
                    break
            return left[0] > 0

        return self.module.Reader(self.turns, client, step)

    def arrives(self, reader: Any, seconds: float) -> bool:
        """Let data arrive that takes `seconds` to decode; return True if it was decoded at once."""
        if not self.turns.enter(reader, LARGE):
            self.turns.wait(reader)
            return False
        self.now += seconds
        self.turns.leave(reader)
        return True

    def share(self, name: str) -> float:
        return self.log.count(name) / len(self.log)


async def test_what_arrives_is_decoded_at_once(build: Build) -> None:
    world = World(build)
    reader = world.reader("a", "a")
    for _ in range(5):
        assert world.arrives(reader, STEP / 10)
    assert not reader.waits
    assert world.log == []


async def test_input_of_one_iteration_has_one_allowance(build: Build) -> None:
    world = World(build)
    first, second = world.reader("a", "a"), world.reader("b", "b", 1)
    assert world.arrives(first, TURN + STEP)
    assert not world.arrives(second, STEP)
    await until(lambda: not second.waits)
    assert world.log == ["b"]
    await turns(3)
    assert world.arrives(first, STEP)


async def test_one_turn_lasts_no_longer_than_its_time(build: Build) -> None:
    world = World(build)
    for name in "abcdefgh":
        world.turns.wait(world.reader(name, name, 100))
    await turns(1)
    before = world.now
    while world.log == []:
        await turns(1)
    assert world.now - before <= TURN + STEP


async def test_each_client_has_the_same_share(build: Build) -> None:
    world = World(build)
    crowd = [world.reader("crowd", "crowd", 10_000) for _ in range(20)]
    alone = world.reader("alone", "alone", 10_000)
    for reader in (*crowd, alone):
        world.turns.wait(reader)
    await until(lambda: len(world.log) > 400)
    assert world.share("alone") == pytest.approx(0.5, abs=0.05)


async def test_each_link_of_a_client_has_the_same_share(build: Build) -> None:
    world = World(build)
    readers = [world.reader(name, "client", 10_000) for name in "abcd"]
    for reader in readers:
        world.turns.wait(reader)
    await until(lambda: len(world.log) > 400)
    assert [world.share(name) for name in "abcd"] == pytest.approx([0.25] * 4, abs=0.05)


async def test_who_has_used_less_goes_first(build: Build) -> None:
    world = World(build)
    flood = world.reader("flood", "a", 10_000)
    world.turns.wait(flood)
    await until(lambda: len(world.log) > 100)
    for client in ("another", "a"):
        # Of another client, or another link of the same: it does not even wait for a turn.
        assert world.arrives(world.reader("honest", client), STEP / 10)
        await turns(2)
    assert flood.waits


async def test_the_time_without_input_is_not_saved(build: Build) -> None:
    world = World(build)
    rested, busy = world.reader("rested", "rested", 10_000), world.reader("busy", "busy", 20_000)
    world.turns.wait(busy)
    await until(lambda: len(world.log) > 400)
    world.log.clear()
    world.turns.wait(rested)
    await until(lambda: len(world.log) > 100)
    assert world.share("rested") == pytest.approx(0.5, abs=0.1)


async def test_readers_without_a_name_are_clients_of_their_own(build: Build) -> None:
    world = World(build)
    assert world.reader("a", "").client is not world.reader("b", "").client
    named = world.reader("a", "name")
    assert world.reader("b", "name").client is named.client


async def test_small_reads_are_charged_although_most_are_not_measured(build: Build) -> None:
    world = World(build)
    reader = world.reader("a", "a")
    measured = []
    for _ in range(8):
        before = reader.used
        assert world.turns.enter(reader, 20)
        world.now += STEP / 10
        assert not world.turns.over()
        assert not world.turns.leave(reader)
        measured.append(reader.used - before == pytest.approx(STEP / 10))
        assert reader.used > before
    assert measured == [False, False, False, True] * 2


async def test_small_reads_have_an_end(build: Build) -> None:
    world = World(build)
    reader = world.reader("a", "a")
    count = 0
    while world.turns.enter(reader, 20):
        world.turns.leave(reader)
        count += 1
    assert 100 < count < 200
    world.turns.wait(reader)
    await until(lambda: not reader.waits)
    await turns(3)
    assert world.turns.enter(reader, 20)
    world.turns.leave(reader)


async def test_tasks_are_charged_to_the_reader_that_starts_them(build: Build) -> None:
    world = World(build)
    reader = world.reader("a", "a")
    assert world.turns.enter(reader, LARGE)
    count = 0
    while not world.turns.over():
        world.turns.task_started()
        count += 1
    world.turns.leave(reader)
    assert count == 100
    assert reader.used == pytest.approx(TURN)


async def test_a_reader_within_another_is_charged_alone(build: Build) -> None:
    world = World(build)
    outer, inner = world.reader("outer", "a"), world.reader("inner", "b")
    assert world.turns.enter(outer, LARGE)
    assert world.arrives(inner, STEP)
    world.now += STEP / 5
    assert not world.turns.leave(outer)
    assert (outer.used, inner.used) == (pytest.approx(STEP / 5), pytest.approx(STEP))


async def test_a_reader_that_fails_loses_its_turn_alone(build: Build) -> None:
    world = World(build)

    def fail() -> bool:
        raise ValueError("broken")

    told: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: told.append(context["exception"]))
    other = world.reader("other", "b", 3)
    world.turns.wait(world.module.Reader(world.turns, "a", fail))
    world.turns.wait(other)
    await until(lambda: not other.waits)
    assert world.log == ["other"] * 3
    assert [str(each) for each in told] == ["broken"]


async def test_waiting_twice_is_waiting_once(build: Build) -> None:
    world = World(build)
    reader = world.reader("a", "a", 2)
    world.turns.wait(reader)
    world.turns.wait(reader)
    await until(lambda: not reader.waits)
    await turns(5)
    assert world.log == ["a", "a"]


@pytest.mark.parametrize("busy", [0.0, 10 * TURN])
async def test_what_the_last_turn_has_caused_shortens_the_next_one(build: Build, busy: float) -> None:
    world = World(build)
    world.turns.wait(world.reader("a", "a", 100))
    await until(lambda: len(world.log) > 0)
    count = len(world.log)
    # Tasks, say.
    world.now += busy
    await until(lambda: len(world.log) > count)
    assert len(world.log) - count == (1 if busy else 4)


def test_turns_are_those_of_a_loop(build: Build) -> None:
    turns_of: Callable[..., Any] = build.module("weirpool.transports.turns").turns_of
    one, two = asyncio.new_event_loop(), asyncio.new_event_loop()
    held = turns_of(one)
    assert turns_of(one) is held
    assert turns_of(two) is not held
    one.close()
    two.close()
