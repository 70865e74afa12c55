from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.aio.fakes import FakeHalf
from tests.aio.test_driver import World
from tests.builds import Build
from tests.waiting import turns, until

# A peer that does not read.


async def test_senders_wait_for_a_writable_link(build: Build) -> None:
    world = World(build)
    half = FakeHalf()
    world.driver.writing_paused()
    world.driver.flow.lane.ready(half)
    assert world.driver.flow.paused
    waiting = [asyncio.ensure_future(world.driver.writable()) for _ in range(2)]
    await turns(5)
    assert not any(each.done() for each in waiting) and half.told == []
    world.driver.writing_resumed()
    await asyncio.gather(*waiting)
    await until(lambda: half.told == ["stepped"])


async def test_progress_of_output_is_reported_to_the_session(build: Build) -> None:
    # THREATS 91
    world = World(build)
    told = world.session.told
    least = build.module("penstock.aio.flow").BACKLOG_BYTES

    def looked(waiting: int, taken: int) -> bool:
        told.clear()
        world.link.waiting, world.link.taken = waiting, taken
        world.driver.flow.check_progress()
        return ("progressed",) in told

    # The first check has no reference. After that, each byte that leaves is progress.
    assert not looked(least + 100, 0)
    assert looked(least + 99, 1)
    assert not looked(least + 99, 1)
    assert looked(0, least + 100)
    # The system of a peer that hangs still accepts heartbeats.
    assert not looked(least, 20_000)
    assert not looked(0, 30_000)


async def test_full_link_is_checked_before_the_next_timer(build: Build) -> None:
    world = World(build)
    world.link.waiting, world.link.taken = 1_000_000, 50
    world.driver.writing_paused()
    world.link.waiting, world.link.taken = 0, 1_000_050
    world.session.timer = asyncio.get_running_loop().time()
    world.driver.flush()
    await until(lambda: ("handle_timer",) in world.session.told)
    assert world.session.verbs("progressed", "handle_timer") == [("progressed",), ("handle_timer",)]


async def test_new_link_starts_without_backlog(build: Build) -> None:
    world = World(build)
    world.link.waiting = 1_000_000
    world.driver.flow.check_progress()
    other = type(world.link)(world.driver)
    other.taken = 5
    world.driver.attach(other)
    world.driver.flow.check_progress()
    assert ("progressed",) not in world.session.told


async def test_fast_sender_yields_to_other_tasks(build: Build) -> None:
    world = World(build)
    world.session.output = [b"x"]
    sending = asyncio.ensure_future(world.driver.writable())
    await turns(1)
    assert (world.link.written, sending.done()) == ([b"x"], False)
    await sending


async def test_writable_returns_when_the_session_has_ended(build: Build) -> None:
    world = World(build)
    world.driver.writing_paused()
    waiting = asyncio.ensure_future(world.driver.writable())
    await turns(3)
    assert not waiting.done()
    world.end_session()
    world.driver.link_lost(None)
    await waiting


async def test_reading_stops_when_peer_does_not_read(build: Build) -> None:
    # THREATS 40, 41
    world = World(build, output_high_bytes=1_000)
    world.driver.writing_paused()
    world.link.waiting = build.module("penstock.aio.flow").READ_STOP * 1_000
    world.driver.received(b"")
    assert world.link.told == []
    world.link.waiting += 1
    for _ in range(2):
        world.driver.received(b"")
    assert world.link.told == ["pause_reading"]
    world.driver.writing_resumed()
    assert world.link.told == ["pause_reading", "resume_reading"]


async def test_session_ends_when_peer_never_reads(build: Build, caplog: pytest.LogCaptureFixture) -> None:
    world = World(build, max_output_bytes=5_000)
    world.driver.writing_paused()
    world.link.waiting = 5_000
    world.driver.received(b"")
    assert world.link.told == []
    world.link.waiting = 5_001
    world.session.output = [b"last words"]
    world.driver.received(b"")
    verb, error = world.session.told[-1]
    assert verb == "close"
    assert isinstance(error, world.errors.LimitExceeded)
    assert "max_output_bytes (5000)" in str(error) and "tcp://peer:1" in str(error)
    assert world.link.told == ["abort"]
    assert str(error) in caplog.text
    # The peer would not read a final error.
    assert (world.link.written, world.session.output) == ([], [])


async def test_reading_stops_when_too_many_fire_handlers_run(build: Build) -> None:
    world = World(build, max_streams=2)
    released = asyncio.Event()

    @world.service.fire("r")
    async def handler(request: Any) -> None:
        await released.wait()

    def fire() -> None:
        world.session.events = [world.request(kind="FIRE")]
        world.driver.received(b"")

    fire()
    assert world.link.told == []
    fire()
    assert world.link.told == ["pause_reading"]
    released.set()
    await until(lambda: not world.driver.tasks)
    assert world.link.told == ["pause_reading", "resume_reading"]


async def test_reading_resumes_after_all_reasons_are_removed(build: Build) -> None:
    world = World(build, max_streams=1, output_high_bytes=1)
    world.driver.flow.fire_started()
    world.driver.writing_paused()
    world.link.waiting = 1_000
    world.driver.received(b"")
    world.driver.flow.fire_ended()
    assert world.link.told == ["pause_reading"]
    world.driver.writing_resumed()
    assert world.link.told == ["pause_reading", "resume_reading"]


async def test_reading_stops_when_the_session_is_full(build: Build) -> None:
    world = World(build)
    world.session.full = True
    world.driver.received(b"x")
    world.driver.received(b"y")
    assert [each for each in world.link.told if "reading" in each] == ["pause_reading"]
    world.session.full = False
    world.driver.flush()
    assert [each for each in world.link.told if "reading" in each] == ["pause_reading", "resume_reading"]


async def test_senders_wait_for_backlogged_storage(build: Build) -> None:
    world = World(build)
    half = FakeHalf()
    world.driver.flow.storage_backlogged(True)
    assert world.driver.flow.paused
    world.driver.flow.lane.ready(half)
    # The link accepts output again, but storage is still backlogged.
    world.driver.writing_paused()
    world.driver.writing_resumed()
    await turns(3)
    assert world.driver.flow.paused and half.told == []
    world.session.output = [b"durable"]
    world.driver.flow.storage_backlogged(False)
    assert not world.driver.flow.paused
    await until(lambda: half.told == ["stepped"])
    assert world.link.written == [b"durable"]


async def test_storage_progress_does_not_resume_a_full_link(build: Build) -> None:
    world = World(build)
    world.driver.flow.storage_backlogged(True)
    world.driver.writing_paused()
    world.driver.flow.storage_backlogged(False)
    assert world.driver.flow.paused
    world.driver.writing_resumed()
    assert not world.driver.flow.paused
    world.driver.link_lost(None)
    world.driver.flow.storage_backlogged(False)
    assert world.driver.flow.paused
