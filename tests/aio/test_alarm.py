"""The timer of a session, on a loop that is late."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

import pytest

from tests.builds import Build
from tests.sim.clockwork import Clockwork


class BusyLoop(Clockwork):
    """A loop that a handler can block."""

    def block(self, seconds: float) -> None:
        self._time += seconds


async def told(build: Build, act: Callable[[BusyLoop, list[str]], None]) -> list[str]:
    """Set an alarm that is due in 1 s, call `act` 0.9 s before, and return what happened in 200 s."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, BusyLoop)
    said: list[str] = []
    alarm = build.module("weirpool.aio.alarm").Alarm(loop, partial(said.append, "alarm"))
    alarm.set(loop.time() + 1)
    loop.call_later(0.1, act, loop, said)
    await asyncio.sleep(200)
    return said


def run(build: Build, act: Callable[[BusyLoop, list[str]], None]) -> list[str]:
    with asyncio.Runner(loop_factory=BusyLoop) as runner:
        return runner.run(told(build, act))


def test_alarm_rings_once(build: Build) -> None:
    assert run(build, lambda loop, said: None) == ["alarm"]


@pytest.mark.parametrize("seconds", [1.5, 100.0])
def test_alarm_that_is_late_lets_input_be_read_before(build: Build, seconds: float) -> None:
    def block(loop: BusyLoop, said: list[str]) -> None:
        loop.block(seconds)
        # What arrived meanwhile is read after the timers that have expired.
        loop.call_later(0.001, said.append, "input")

    assert run(build, block) == ["input", "alarm"]


def test_alarm_that_is_on_time_does_not_wait(build: Build) -> None:
    def block(loop: BusyLoop, said: list[str]) -> None:
        loop.block(0.95)
        loop.call_later(0.001, said.append, "input")

    assert run(build, block) == ["alarm", "input"]


def test_late_alarm_cannot_be_postponed_by_input(build: Build) -> None:
    loop = BusyLoop()
    try:
        said: list[str] = []
        alarm = build.module("weirpool.aio.alarm").Alarm(loop, partial(said.append, "alarm"))
        alarm.set(loop.time() - 1)
        loop.call_soon(loop.stop)
        loop.run_forever()
        # The driver sets an earlier time only.
        assert alarm.due < loop.time() - 1
        assert said == []
    finally:
        loop.close()


def test_stopped_alarm_does_not_ring(build: Build) -> None:
    loop = BusyLoop()
    try:
        said: list[str] = []
        alarm = build.module("weirpool.aio.alarm").Alarm(loop, partial(said.append, "alarm"))
        alarm.set(loop.time() + 1)
        alarm.stop()
        loop.call_later(2, loop.stop)
        loop.run_forever()
        assert said == []
        # No time is earlier, so it is not set again.
        assert alarm.due < 0
    finally:
        loop.close()
