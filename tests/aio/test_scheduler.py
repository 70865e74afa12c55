"""The order in which connections and halves are served. Fairness as a whole is tested in tests/sim/test_fairness.py."""

from __future__ import annotations

import gc
from typing import Any
from weakref import ref

import pytest

from tests.aio.fakes import FakeLoop, fake_exchanges
from tests.builds import Build

Q = 60_000


class Half:
    """A half that always has something to send, and records when it was served."""

    def __init__(self, world: World, lane: Any, name: str, sizes: list[int]) -> None:
        self.world = world
        self.lane = lane
        self.name = name
        self.sizes = sizes
        self.slowed: list[float] = []

    def step(self) -> int:
        size = self.sizes.pop(0)
        self.world.served.append(self.name)
        self.world.now += self.world.cost
        if self.sizes:
            self.lane.queue(self)
        return size

    def slow(self, seconds: float) -> None:
        self.slowed.append(seconds)


class World:
    """A scheduler on a loop whose turns a test runs, and a clock that only bursts move."""

    def __init__(self, build: Build) -> None:
        self.build = build
        self.loop = FakeLoop()
        self.module = build.module("weirpool.aio.scheduler")
        self.scheduler = self.module.scheduler_of(self.loop)
        self.now: float = 0.0
        self.scheduler.clock = lambda: self.now
        self.cost = 0.0
        self.served: list[str] = []

    def lane(self) -> Any:
        flow = fake_exchanges(self.build, self.loop).flow
        assert flow.lane.scheduler is self.scheduler
        return flow.lane

    def half(self, lane: Any, name: str, *sizes: int) -> Half:
        return Half(self, lane, name, list(sizes or (Q,)))

    def queue(self, lane: Any, name: str, *sizes: int, new: bool = False) -> Half:
        half = self.half(lane, name, *sizes)
        lane.queue(half, new)
        return half

    def turn(self) -> str:
        """Run a turn of the loop; return who was served in it."""
        self.served.clear()
        self.loop.turn()
        return "".join(self.served)


@pytest.fixture
def world(build: Build) -> World:
    return World(build)


def test_lone_half_sends_at_once(world: World) -> None:
    lane = world.lane()
    lane.ready(world.half(lane, "a"))
    assert (world.served, world.loop.soon) == (["a"], [])


def test_half_that_has_more_continues_in_the_next_iteration(world: World) -> None:
    lane = world.lane()
    lane.ready(world.half(lane, "a", Q, Q, Q))
    assert world.served == ["a"]
    assert world.turn() == "aa"


def test_nobody_overtakes_those_who_wait(world: World) -> None:
    lane, other = world.lane(), world.lane()
    world.queue(lane, "a")
    other.ready(world.half(other, "b"))
    assert world.served == []
    assert world.turn() == "ab"


def test_nobody_overtakes_those_who_wait_for_the_next_turn(world: World) -> None:
    lane, other = world.lane(), world.lane()
    world.cost = world.module.TURN_SECONDS
    world.queue(lane, "a", Q, Q)
    assert world.turn() == "a"
    other.ready(world.half(other, "b"))
    assert world.served == ["a"]


def test_half_that_becomes_ready_while_another_one_sends_has_its_turn_later(world: World) -> None:
    lane = world.lane()
    inner = world.half(lane, "b")

    class Outer(Half):
        def step(self) -> int:
            lane.ready(inner)
            return super().step()

    lane.ready(Outer(world, lane, "a", [Q]))
    assert world.served == ["a"]
    assert world.turn() == "b"


def test_what_is_sent_at_once_is_paid_later(world: World) -> None:
    lane, other = world.lane(), world.lane()
    lane.ready(world.half(lane, "a", 3 * Q, Q, Q))
    world.queue(other, "x", Q, Q, Q, Q)
    assert world.served == ["a"]
    assert world.turn() == "xxxaxa"


def test_sending_at_once_is_limited(world: World) -> None:
    lane = world.lane()
    world.cost = world.module.TURN_SECONDS / 4
    for name in "abcdefg":
        lane.ready(world.half(lane, name))
    assert "".join(world.served) == "abcd"
    assert world.turn() == "efg"
    lane.ready(world.half(lane, "h"))
    assert world.served[-1] == "h"


def test_what_was_sent_at_once_counts_in_one_iteration_only(world: World) -> None:
    lane = world.lane()
    world.cost = world.module.TURN_SECONDS / 4
    lane.ready(world.half(lane, "a"))
    assert world.turn() == ""
    for name in "bcde":
        lane.ready(world.half(lane, name))
    assert "".join(world.served) == "bcde"


def test_what_was_sent_while_nobody_waited_is_not_paid(world: World) -> None:
    lane, other = world.lane(), world.lane()
    lane.ready(world.half(lane, "a", 3 * Q))
    world.queue(lane, "b", Q, Q)
    world.queue(other, "x", Q, Q)
    assert world.turn() == "bxbx"


def test_turn_ends_after_its_time(world: World) -> None:
    lane = world.lane()
    for name in "abcde":
        world.queue(lane, name)
    world.cost = world.module.TURN_SECONDS / 2
    assert world.turn() == "ab"
    # Input that arrived goes first.
    assert world.turn() == ""
    assert world.turn() == "cd"


def test_halves_take_turns(world: World) -> None:
    lane = world.lane()
    for name in "abc":
        world.queue(lane, name, Q, Q)
    assert world.turn() == "abcabc"


def test_connections_take_turns_whatever_their_streams(world: World) -> None:
    lane, other = world.lane(), world.lane()
    for name in "abcd":
        world.queue(lane, name, Q, Q)
    world.queue(other, "x", Q, Q, Q)
    assert world.turn() == "axbxcxdabcd"


def test_small_bursts_share_the_quantum_of_a_connection(world: World) -> None:
    lane, other = world.lane(), world.lane()
    for name in "abcd":
        world.queue(lane, name, Q // 4)
    world.queue(other, "x", Q, Q)
    assert world.turn() == "abcdxx"


def test_what_is_sent_too_much_is_paid_later(world: World) -> None:
    lane, other = world.lane(), world.lane()
    world.queue(lane, "a", 3 * Q, Q, Q)
    world.queue(other, "x", Q, Q, Q, Q)
    assert world.turn() == "axxxaxa"


def test_interrupted_connection_continues(world: World) -> None:
    lane, other = world.lane(), world.lane()
    for name in "abcdefgh":
        world.queue(lane, name, Q // 4)
    world.queue(other, "x", Q, Q)
    world.cost = world.module.TURN_SECONDS / 2
    # Each turn is followed by one of the loop.
    assert [world.turn() for _ in range(9)] == ["ab", "", "cd", "", "xe", "", "fg", "", "hx"]


def test_new_stream_goes_first(world: World) -> None:
    lane = world.lane()
    world.cost = world.module.TURN_SECONDS
    for name in "abc":
        world.queue(lane, name, Q, Q)
    assert world.turn() == "a"
    world.queue(lane, "n", Q, Q, new=True)
    world.turn()
    assert world.turn() == "n"
    world.turn()
    assert world.turn() == "b"


def test_streams_that_are_opened_without_end_do_not_starve_others(world: World) -> None:
    lane = world.lane()
    world.cost = world.module.TURN_SECONDS
    half = world.queue(lane, "a", *[Q] * 9)
    served = ""
    for _ in range(3 * world.module.PATIENCE):
        for _ in range(2):
            lane.queue(half)
            world.queue(lane, "n", new=True)
            served += world.turn()
    assert "a" in served
    assert served.count("n") > served.count("a")


def test_connection_that_comes_back_within_a_round_is_not_new(world: World) -> None:
    lanes = [world.lane() for _ in range(4)]
    world.cost = world.module.TURN_SECONDS
    for lane, name in zip(lanes, "abcd", strict=True):
        world.queue(lane, name, *[Q] * (1 if name == "a" else 4))
    order = world.turn()
    world.queue(lanes[0], "A")
    for _ in range(10):
        order += world.turn()
    assert order[:5] == "abcdA"


def test_unused_quantum_is_kept_for_the_round(world: World) -> None:
    first, lane, last = (world.lane() for _ in range(3))
    world.cost = world.module.TURN_SECONDS
    world.queue(first, "x", Q, Q, Q, Q)
    world.queue(lane, "a", 100)
    world.queue(last, "y", Q, Q, Q, Q)
    assert [world.turn() for _ in range(5)] == ["x", "", "a", "", "y"]
    world.queue(lane, "b", 100)
    assert [world.turn() for _ in range(4)] == ["", "b", "", "x"]


def test_unused_quantum_is_not_saved_for_later_rounds(world: World) -> None:
    lane, other = world.lane(), world.lane()
    world.queue(lane, "a", Q // 4)
    world.queue(other, "x", Q, Q)
    assert world.turn() == "axx"
    for name in "bc":
        world.queue(lane, name)
    world.queue(other, "y", Q, Q)
    assert world.turn() == "bycy"


def test_full_link_keeps_the_order_of_its_halves(world: World) -> None:
    lane = world.lane()
    for name in "abc":
        world.queue(lane, name, Q, Q)
    world.cost = world.module.TURN_SECONDS
    assert world.turn() == "a"
    lane.flow.paused = True
    for _ in range(3):
        assert world.turn() == ""
    assert world.loop.soon == []
    lane.flow.paused = False
    world.cost = 0.0
    lane.resume()
    assert world.turn() == "bcabc"


def test_half_that_has_ended_is_removed(world: World) -> None:
    lane = world.lane()
    new = world.queue(lane, "n", new=True)
    old = world.queue(lane, "o")
    world.queue(lane, "a")
    lane.remove(new)
    lane.remove(old)
    lane.remove(old)
    assert world.turn() == "a"


@pytest.mark.parametrize("new", [True, False])
def test_half_waits_once(world: World, new: bool) -> None:
    lane = world.lane()
    half = world.queue(lane, "a", new=new)
    lane.queue(half)
    assert world.turn() == "a"


@pytest.mark.parametrize("new", [True, False])
def test_full_link_needs_no_turn_until_it_accepts_output(world: World, new: bool) -> None:
    lane = world.lane()
    lane.flow.paused = True
    lane.ready(world.half(lane, "a"), new)
    assert (world.served, world.loop.soon) == ([], [])
    lane.flow.paused = False
    lane.resume()
    assert world.turn() == "a"
    assert world.turn() == ""
    lane.resume()
    assert world.loop.soon == []


def test_slow_half_is_told(world: World) -> None:
    lane = world.lane()
    world.cost = world.module.SLOW_SECONDS * 1.01
    half = world.half(lane, "a", Q, Q)
    lane.ready(half)
    world.turn()
    assert half.slowed == pytest.approx([world.cost, world.cost])
    world.cost /= 2
    fast = world.half(lane, "b", Q, Q)
    lane.ready(fast)
    world.turn()
    assert world.served == ["b"] and fast.slowed == []


def test_failing_half_does_not_stop_the_others(world: World) -> None:
    lane, other = world.lane(), world.lane()
    half = world.queue(lane, "a")
    half.sizes.clear()
    world.queue(other, "b")
    with pytest.raises(IndexError):
        world.loop.turn()
    world.loop.turn()
    assert world.turn() == "b"


def test_each_loop_has_one_scheduler(world: World) -> None:
    assert world.module.scheduler_of(world.loop) is world.scheduler
    assert world.module.scheduler_of(FakeLoop()) is not world.scheduler


def test_loop_is_released_although_streams_wait(build: Build) -> None:
    world = World(build)
    lane = world.lane()
    world.queue(lane, "a")
    gone = ref(world.loop), ref(world.scheduler)
    del world, lane
    gc.collect()
    assert [each() for each in gone] == [None, None]
