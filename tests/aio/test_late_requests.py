from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.aio.fakes import FakeSession, fake_connection
from tests.builds import Build
from tests.waiting import turns, until


class World:
    """A connection whose handlers take a second of its own clock each."""

    def __init__(self, build: Build, address: str = "tcp://peer:1") -> None:
        self.events = build.module("weirpool.events")
        self.payload = build.module("weirpool.payload").Payload
        self.kind = build.module("weirpool.kinds").Kind.CALL
        module = build.module("weirpool.aio.flow")
        settings = build.module("weirpool.settings").Settings()
        loop = asyncio.get_running_loop()
        self.flow = module.Flow(loop, FakeSession(build), settings, fake_connection(build, address), lambda: None)
        self.exchanges = exchanges = build.module("weirpool.aio.exchanges").Exchanges(self.flow)
        self.now = 0.0
        self.flow.turns.clock = lambda: self.now
        self.flow.reader.step = self.step
        self.begun: list[list[Any]] = []
        self.turns = 0
        self.late = build.module("weirpool.aio.late_requests").LateRequests(exchanges, self.begin)

    def step(self) -> bool:
        self.turns += 1
        self.late.step()
        return bool(self.late.active)

    def begin(self, events: list[Any]) -> None:
        assert not self.late.active
        self.begun.append(events)
        self.now += 1.0

    def request(self, stream: int) -> Any:
        return self.events.Requested(stream, self.kind, "demo", self.payload(bytes(1_000)), 1, True)

    def hold(self, *events: Any) -> list[Any]:
        if not self.late.active:
            self.late.start()
        passed: list[Any] = self.late.sift(list(events))
        return passed


async def test_each_turn_begins_one_slow_request(build: Build) -> None:
    world = World(build)
    requests = [world.request(stream) for stream in range(1, 5)]
    assert world.hold(*requests) == []
    assert world.flow.account.held == 4 * (1_000 + 400)
    await until(lambda: not world.late.active)
    assert world.begun == [[request] for request in requests]
    assert world.turns == 4
    assert world.flow.account.held == 0


async def test_input_goes_before_each_turn(build: Build) -> None:
    world = World(build)
    world.hold(world.request(1), world.request(2))
    seen = []
    while world.late.active:
        # asyncio handles input after the callbacks that wait already.
        asyncio.get_running_loop().call_soon(lambda: seen.append(len(world.begun)))
        await asyncio.sleep(0)
    assert seen == [0, 1, 1, 2]


async def test_only_streams_that_have_not_begun_wait(build: Build) -> None:
    world = World(build)
    item, credit = world.events.CreditGranted(7, 1), world.events.CreditGranted(1, 1)
    request = world.request(1)
    assert world.hold(request, item, credit) == [item]
    world.late.step()
    assert not world.late.active
    assert world.begun == [[request, credit]]


@pytest.mark.parametrize("how", ["canceled", "failed"])
async def test_request_that_has_ended_is_not_begun(build: Build, how: str) -> None:
    world = World(build)
    end = world.events.Canceled(1, True) if how == "canceled" else world.events.Failed(1, ValueError())
    assert world.hold(world.request(1), world.request(2), end) == []
    await until(lambda: not world.late.active)
    assert [[event.stream_id for event in events] for events in world.begun] == [[2]]
    assert world.flow.account.held == 0


@pytest.mark.parametrize("addresses", [("1", "2"), ("1", "1")], ids=["clients", "one client"])
async def test_connections_begin_requests_in_turn(build: Build, addresses: tuple[str, str]) -> None:
    order: list[str] = []

    class Named(World):
        name = ""

        def begin(self, events: list[Any]) -> None:
            order.append(self.name)
            super().begin(events)

    one, two = (Named(build, address) for address in addresses)
    one.name, two.name = "one", "two"
    one.flow.turns.clock = lambda: one.now + two.now
    for world in (one, two):
        world.hold(*(world.request(stream) for stream in range(1, 4)))
    await until(lambda: not (one.late.active or two.late.active))
    assert order == ["one", "two"] * 3


async def test_requests_that_wait_for_a_slot_take_no_turns(build: Build) -> None:
    world = World(build)
    limit = world.flow.settings.max_streams
    slots = world.exchanges.slots
    for _ in range(limit):
        slots.take(True)
    assert world.hold(world.request(1)) == []
    await turns(10)
    assert (world.begun, world.turns) == ([], 0)
    slots.free(True)
    await until(lambda: not world.late.active)
    assert len(world.begun) == 1


async def test_close_waits_for_requests_without_a_response(build: Build) -> None:
    world = World(build)
    loop = asyncio.get_running_loop()
    world.hold(*(world.request(stream) for stream in range(1, 4)))
    await world.late.finish_fires(loop.time() - 1.0)
    assert len(world.begun) < 3
    await world.late.finish_fires(loop.time() + 1_000.0)
    assert len(world.begun) == 3
