"""Halves whose tasks send: they are woken in one iteration of the loop, and send in the next one."""

from __future__ import annotations

import pytest

from tests.aio.test_scheduler import Half, Q, World
from tests.builds import Build


@pytest.fixture
def world(build: Build) -> World:
    return World(build)


class TaskHalf(Half):
    """A half whose task sends in the next iteration of the loop."""

    turn_number = -1
    back = True

    def step(self) -> int:
        if not self.back:
            self.lane.wait_for(self, self.turn_number)
            return 0
        self.back = False
        self.world.served.append(self.name)
        self.world.loop.call_soon(self.run)
        self.turn_number = self.lane.woke(self)
        return Q

    def run(self) -> None:
        self.world.now += self.world.cost
        self.world.served.append(self.name.upper())
        self.back = True
        self.lane.queue(self)


def test_task_that_was_woken_keeps_its_place(world: World) -> None:
    lane = world.lane()
    task = TaskHalf(world, lane, "t", [])
    lane.queue(task)
    world.queue(lane, "a", *[Q] * 9)
    world.scheduler.wakes = 8
    assert world.turn() == "ta"
    assert world.turn() == "Tta"


def test_task_that_does_not_come_back_is_forgotten(world: World) -> None:
    lane = world.lane()
    task = TaskHalf(world, lane, "t", [])
    task.run = lambda: None  # type: ignore[method-assign]
    lane.queue(task)
    world.queue(lane, "a", *[Q] * 9)
    assert world.turn() == "t"
    assert world.turn() == "a" * 9
    assert (world.turn(), world.loop.soon) == ("", [])


def test_turn_is_shorter_by_the_time_of_woken_tasks(world: World) -> None:
    lane = world.lane()
    task = TaskHalf(world, lane, "t", [])

    def run() -> None:
        world.now += world.module.TURN_SECONDS * 3 / 4

    task.run = run  # type: ignore[method-assign]
    lane.queue(task)
    world.queue(lane, "a", *[Q] * 9)
    world.cost = world.module.TURN_SECONDS / 4
    assert world.turn() == "t"
    assert world.turn() == "a"


def test_time_of_others_is_not_that_of_woken_tasks(world: World) -> None:
    lane = world.lane()
    world.scheduler.wakes = 8
    lane.queue(TaskHalf(world, lane, "t", []))
    world.queue(lane, "a")
    world.cost = world.module.TURN_SECONDS
    assert world.turn() == "ta"
    world.cost = 0.0
    world.turn()
    assert world.scheduler.wakes == 8


def test_number_of_woken_tasks_adapts(world: World) -> None:
    lanes = [world.lane() for _ in range(200)]
    for lane in lanes:
        lane.queue(TaskHalf(world, lane, "t", []))
    assert [world.turn().count("t") for _ in range(8)] == [1, 2, 4, 8, 16, 32, 64, 64]
    world.cost = world.module.TURN_SECONDS / 12
    assert [world.turn().count("t") for _ in range(5)] == [32, 16, 8, 4, 4]


def test_one_task_is_woken_at_least_and_more_when_they_are_fast_again(world: World) -> None:
    lane = world.lane()
    lane.queue(TaskHalf(world, lane, "t", []))
    world.cost = 1.0
    for _ in range(9):
        world.turn()
        assert world.scheduler.wakes == 1
    world.cost = 0.0
    for _ in range(9):
        world.turn()
    assert world.scheduler.wakes == 2


def test_task_that_is_woken_at_once_is_timed_from_then(world: World) -> None:
    world.now = 100.0
    lane = world.lane()
    lane.ready(TaskHalf(world, lane, "t", []))
    world.turn()
    assert world.scheduler.wakes == 2
