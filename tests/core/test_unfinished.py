from __future__ import annotations

from typing import Any

import pytest

from tests.builds import Build

LIMIT = 30.0


class World:
    """An unfinished frame, its account, and the timers of its session."""

    def __init__(self, build: Build) -> None:
        self.account = build.module("weirpool.account").Account(1 << 30)
        self.timer = build.module("weirpool.core.timers").Timer.FRAME
        self.timers = build.module("weirpool.core.timers").TimerTable()
        self.unfinished = build.module("weirpool.core.unfinished").Unfinished(self.account, self.timers, LIMIT)

    def expire(self) -> Any:
        """Let the next timer expire; return whether the frame is overdue."""
        now = self.timers.next()
        assert self.timers.expired(now) == [self.timer]
        return self.unfinished.overdue(now)


@pytest.fixture
def world(build: Build) -> World:
    return World(build)


def test_bytes_are_counted_until_the_frame_is_complete(world: World) -> None:
    # THREATS 86
    world.unfinished.update(1_000, 0.0)
    world.unfinished.update(5_000, 1.0)
    assert world.account.held == world.unfinished.held == 5_000
    world.unfinished.update(0, 2.0)
    assert world.account.held == 0


def test_frame_that_does_not_grow_is_overdue(world: World) -> None:
    # THREATS 86
    world.unfinished.update(1_000_000, 5.0)
    assert world.timers.next() == 5.0 + LIMIT
    assert world.expire()


def test_frame_that_grows_slowly_is_not_overdue(world: World) -> None:
    for second in range(0, 300, 29):
        world.unfinished.update(second + 1, float(second))
        while world.timers.next() <= second:
            assert not world.expire()
    while not world.expire():
        assert world.timers.next() == 290.0 + LIMIT


def test_time_in_which_the_link_was_not_read_does_not_count(world: World) -> None:
    world.unfinished.update(1_000, 0.0)
    world.unfinished.excuse(LIMIT)
    assert not world.expire()
    assert world.timers.next() == 2 * LIMIT
    assert world.expire()


def test_completed_frame_needs_no_timer(world: World) -> None:
    world.unfinished.update(100, 0.0)
    world.unfinished.update(0, 1.0)
    assert not world.expire()
    assert world.timers.next() is None


def test_whole_frames_set_no_timer(world: World) -> None:
    world.unfinished.update(0, 0.0)
    assert world.timers.next() is None


def test_next_frame_is_watched_after_a_completed_one(world: World) -> None:
    # THREATS 86
    world.unfinished.update(100, 0.0)
    world.unfinished.update(0, 1.0)
    assert not world.expire()
    world.unfinished.update(100, 40.0)
    assert world.timers.next() == 40.0 + LIMIT
    assert world.expire()


def test_frame_that_grows_keeps_its_timer(world: World) -> None:
    world.unfinished.update(100, 0.0)
    world.unfinished.update(200, 10.0)
    assert world.timers.next() == LIMIT
    assert not world.expire()
    assert world.timers.next() == 10.0 + LIMIT
    world.unfinished.update(300, 35.0)
    assert world.timers.next() == 10.0 + LIMIT


def test_time_without_reading_does_not_count(world: World) -> None:
    world.unfinished.update(100, 0.0)
    world.account.paused = True
    assert not world.expire()
    world.account.paused = False
    assert world.timers.next() == 2 * LIMIT
    assert world.expire()


def test_lost_link_drops_the_frame(world: World) -> None:
    world.unfinished.update(100, 0.0)
    world.unfinished.drop()
    assert (world.account.held, world.unfinished.held, world.timers.next()) == (0, 0, None)


def test_frames_of_the_next_link_are_watched(world: World) -> None:
    # THREATS 86
    world.unfinished.update(100, 0.0)
    assert not world.unfinished.overdue(LIMIT - 1.0)
    world.unfinished.drop()
    assert world.timers.next() is None
    world.unfinished.update(100, 50.0)
    assert world.timers.next() == 50.0 + LIMIT
