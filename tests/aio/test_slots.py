"""THREATS 36: what counts of a canceled request is its handler, until it has returned."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.aio.test_driver import World as DriverWorld
from tests.builds import Build
from tests.waiting import turns, until

LIMIT = 3


class World(DriverWorld):
    """A driver whose handlers ignore that they are canceled until they are released."""

    def __init__(self, build: Build, **settings: Any) -> None:
        super().__init__(build, **{"max_streams": LIMIT, **settings})
        self.begun = 0
        self.running = 0
        self.most = 0
        self.released = asyncio.Event()
        self.next_id = 0
        # Without annotations, handlers receive payloads of either build.
        for register in (self.service.call, self.service.fire):
            register("r")(lambda request: self._stubborn())
        self.service.stream("r")(lambda request: self._stubborn_items())

    async def _stubborn(self) -> bytes:
        self.begun += 1
        self.running += 1
        self.most = max(self.most, self.running)
        while not self.released.is_set():
            try:
                await self.released.wait()
            except asyncio.CancelledError:
                pass
        self.running -= 1
        return b""

    async def _stubborn_items(self) -> AsyncIterator[bytes]:
        yield await self._stubborn()

    def say(self, *events: Any) -> None:
        self.session.events += events
        self.driver.received(b"")

    def ask(self, kind: str = "CALL") -> int:
        """Let the peer send a request, which is not canceled; return its stream."""
        self.next_id += 2
        request = self.request(kind=kind)
        request.stream_id = self.next_id
        request.credit = 1
        self.say(request)
        return self.next_id

    async def cancel(self, stream_id: int) -> None:
        """Let the peer cancel a request, after its handler has begun."""
        await turns(2)
        self.say(self.events.Canceled(stream_id, True))
        await turns(2)

    @property
    def told(self) -> list[str]:
        return [each for each in self.link.told if "reading" in each]


@pytest.mark.parametrize("kind", ["CALL", "STREAM"])
async def test_canceled_handlers_that_run_on_count(build: Build, kind: str) -> None:
    world = World(build)
    for _ in range(LIMIT):
        await world.cancel(world.ask(kind))
    assert (world.running, world.told) == (LIMIT, [])
    world.ask(kind)
    await turns(5)
    assert (world.running, world.told) == (LIMIT, ["pause_reading"])
    world.released.set()
    await until(lambda: world.begun == LIMIT + 1)
    assert (world.most, world.told) == (LIMIT, ["pause_reading", "resume_reading"])
    await until(lambda: not world.driver.exchanges.tasks)
    slots = world.driver.exchanges.slots
    assert (slots.taken, slots.lingering) == (0, 0)


async def test_fires_count_until_their_handlers_return(build: Build) -> None:
    world = World(build)
    for _ in range(LIMIT):
        world.ask("FIRE")
    await turns(2)
    assert world.told == []
    world.ask("FIRE")
    await turns(5)
    assert (world.running, world.told) == (LIMIT, ["pause_reading"])
    world.released.set()
    await until(lambda: world.begun == LIMIT + 1)
    assert world.told == ["pause_reading", "resume_reading"]


async def test_handlers_of_open_streams_make_no_request_wait(build: Build) -> None:
    # The session refuses requests above the limit. A FIRE must not wait for streams that may be endless.
    world = World(build)
    for _ in range(LIMIT):
        world.ask("STREAM")
    await turns(2)
    world.ask("FIRE")
    await turns(2)
    assert (world.begun, world.told) == (LIMIT + 1, [])
    world.released.set()
    await until(lambda: not world.driver.exchanges.tasks)


async def test_handler_that_returns_when_canceled_is_not_noticed(build: Build) -> None:
    world = World(build)

    @world.service.call("ordinary")
    async def ordinary(request):
        await asyncio.get_running_loop().create_future()

    for stream_id in range(2, 200, 2):
        request = world.request("ordinary")
        request.stream_id = stream_id
        world.say(request)
        await world.cancel(stream_id)
    assert world.told == []
    assert world.driver.exchanges.slots.taken == 0


class Timers:
    """A loop whose timers a test lets expire."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.set: list[tuple[float, Callable[[], None]]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)

    def call_later(self, seconds: float, function: Callable[..., None], *arguments: Any) -> Any:
        self.set.append((seconds, function))
        return self._loop.call_later(1_000.0, function, *arguments)

    def expire(self) -> None:
        """Let the last timer expire."""
        self.set.pop()[1]()


async def waiting(build: Build, kind: str) -> tuple[World, Timers]:
    """Return a world in which a request waits for slots."""
    world = World(build, unread_timeout=7.0)
    for _ in range(LIMIT):
        stream_id = world.ask(kind)
        if kind != "FIRE":
            await world.cancel(stream_id)
    await turns(2)
    timers = world.driver.flow.loop = Timers(asyncio.get_running_loop())
    world.ask(kind)
    await turns(2)
    assert timers.set[-1][0] == 7.0
    return world, timers


async def test_session_ends_when_canceled_handlers_do_not_return(
    build: Build, caplog: pytest.LogCaptureFixture
) -> None:
    world, timers = await waiting(build, "CALL")
    timers.expire()
    verb, error = world.session.told[-1]
    assert (verb, type(error).__name__) == ("close", "LimitExceeded")
    assert f"max_streams ({LIMIT}) handlers run" in str(error) and "unread_timeout (7 s)" in str(error)
    assert str(error) in caplog.text
    world.released.set()
    await until(lambda: not world.driver.exchanges.tasks)


async def test_session_goes_on_while_only_fires_take_long(build: Build) -> None:
    world, timers = await waiting(build, "FIRE")
    timers.expire()
    assert timers.set[-1][0] == 7.0
    assert not world.session.verbs("close")
    world.released.set()
    await until(lambda: world.begun == LIMIT + 1)


async def test_session_that_has_ended_waits_for_no_slot(build: Build) -> None:
    world, _ = await waiting(build, "CALL")
    world.session.events.append(world.events.Failed(world.next_id, ValueError()))
    world.end_session()
    world.released.set()
    await until(lambda: world.told[-1] == "resume_reading")
    assert world.begun == LIMIT
    await until(lambda: not world.driver.exchanges.tasks)
