from __future__ import annotations

import asyncio
from typing import Any

import pytest
import uvloop

import weirpool
from tests.aio.fakes import FakeHalf
from tests.aio.serving import make_service, noted_drivers
from tests.aio.test_driver import World
from tests.builds import Build
from tests.waiting import turns, until
from weirpool.transports import Discard

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
    least = build.module("weirpool.aio.flow").BACKLOG_BYTES

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


@pytest.mark.parametrize("reason", ["SLOTS", "ADMISSION", "HOOK", "FULL", "UNREAD", "BACKLOG"])
async def test_silence_is_no_evidence_while_the_link_is_not_read(build: Build, reason: str) -> None:
    # Without progress, a peer that does not read is taken for dead (THREATS 91).
    world = World(build)
    world.driver.flow.stop_reading(getattr(build.module("weirpool.aio.holds"), reason))
    world.driver._alarm_rang()
    told = world.session.verbs("progressed", "handle_timer")
    excused = [] if reason == "BACKLOG" else [("progressed",)]
    # The session is not full, so the link is read again.
    resumed = [("progressed",)] if reason == "FULL" else []
    assert told == [*excused, ("handle_timer",), *resumed]


async def test_the_peer_is_not_late_when_its_link_is_read_again(build: Build) -> None:
    world = World(build)
    flow, holds = world.driver.flow, build.module("weirpool.aio.holds")
    flow.stop_reading(holds.SLOTS)
    flow.stop_reading(holds.FULL)
    flow.resume_reading(holds.FULL)
    assert ("progressed",) not in world.session.told
    flow.resume_reading(holds.SLOTS)
    assert world.session.told[-1] == ("progressed",)


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
    world.link.waiting = build.module("weirpool.aio.flow").READ_STOP * 1_000
    world.driver.received(b"")
    assert world.link.told == []
    world.link.waiting += 1
    for _ in range(2):
        world.driver.received(b"")
    assert world.link.told == ["pause_reading"]
    world.driver.writing_resumed()
    assert world.link.told == ["pause_reading", "resume_reading"]


async def test_session_ends_when_peer_never_reads(build: Build, caplog: pytest.LogCaptureFixture) -> None:
    world = World(build, max_output_bytes=8_000, output_high_bytes=500)
    world.driver.writing_paused()
    # An item of this size may wait, with its headers, after what was sent before it.
    world.link.waiting = 8_000 + 1_000 + 500
    world.driver.received(b"")
    assert "abort" not in world.link.told
    world.link.waiting += 1
    world.session.output = [b"last words"]
    world.driver.received(b"")
    verb, error = world.session.told[-1]
    assert verb == "close"
    assert isinstance(error, world.errors.LimitExceeded)
    assert "max_output_bytes (8000)" in str(error) and "tcp://peer:1" in str(error)
    assert world.link.told[-1] == "abort"
    assert str(error) in caplog.text
    # The peer would not read a final error.
    assert (world.link.written, world.session.output) == ([], [])


async def test_reading_resumes_after_all_reasons_are_removed(build: Build) -> None:
    world = World(build, output_high_bytes=1)
    world.driver.flow.stop_reading(build.module("weirpool.aio.holds").HOOK)
    world.driver.writing_paused()
    world.link.waiting = 1_000
    world.driver.received(b"")
    world.driver.flow.resume_reading(build.module("weirpool.aio.holds").HOOK)
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
    # What had been read meanwhile is decoded first.
    await until(lambda: "resume_reading" in world.link.told)
    assert world.session.verbs("receive")[:2] == [("receive", b"x"), ("receive", b"y")]


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


# Transports that are closed already. SF8.


CLOSED = "unable to perform operation on <TCPTransport closed=True>; the handler is closed"


def close_transport(world: World) -> None:
    """Let the link raise what those over uvloop's closed transports do, and report nothing."""

    def closed(*arguments: object) -> Any:
        raise RuntimeError(CLOSED)

    for name in ("write", "progress", "pause_reading", "resume_reading", "close"):
        setattr(world.link, name, closed)


def written(world: World) -> None:
    world.session.output.append(b"x")


def verb(world: World) -> None:
    written(world)
    world.driver.flow.schedule_write()


def verbs(world: World) -> None:
    for _ in range(100):
        verb(world)


def timer(world: World) -> None:
    written(world)
    world.session.timer = world.driver.loop.time()
    world.driver.flush()


def timer_without_output(world: World) -> None:
    world.session.timer = world.driver.loop.time()
    world.driver.flush()


def read(world: World) -> None:
    written(world)
    world.driver.received(b"request")


def full(world: World) -> None:
    written(world)
    world.driver.writing_paused()
    world.driver.flow.write()


def stop(world: World) -> None:
    world.driver.flow.stop_reading(1)


def resume(world: World) -> None:
    world.driver.flow.holds = 1
    world.driver.flow.resume_reading(1)


def unwanted(world: World) -> None:
    world.session.link_wanted = False
    world.driver.flush()


@pytest.mark.parametrize("use", [verb, verbs, timer, timer_without_output, read, full, stop, resume, unwanted])
async def test_closed_transport_is_a_lost_link(build: Build, use: Any) -> None:
    world = World(build)
    close_transport(world)
    use(world)
    await until(lambda: bool(world.session.verbs("link_down")))
    await turns(3)
    ((_, error),) = world.session.verbs("link_down")
    assert isinstance(error, world.errors.LinkLost)
    assert str(error) == f"the connection broke: {CLOSED}"
    assert (world.driver.link, world.unlinked) == (None, 1)
    assert "abort" in world.link.told
    # A late report of the same loss is ignored.
    world.link.receiver.link_lost(None)
    # Output waits for the next link.
    world.session.output = [b"later"]
    world.driver.flush()
    assert world.new_link().written == [b"later"]


async def test_closed_transport_does_not_cost_a_newer_link(build: Build) -> None:
    world = World(build)
    close_transport(world)
    verb(world)
    world.driver.flush()
    newer = world.new_link()
    await turns(3)
    assert (world.driver.link, world.unlinked) == (newer, 0)
    assert world.session.verbs("link_down") == []


async def test_closed_transport_when_the_session_has_ended(build: Build) -> None:
    world = World(build)
    close_transport(world)
    world.end_session()
    await until(world.driver.over.done)


@pytest.mark.parametrize("scheme", ["rsocket+tcp", "reactivesocket-0.2+tcp"])
@pytest.mark.parametrize("how", ["call", "timer", "close"])
def test_verbs_raise_link_lost_when_uvloop_has_closed_the_transport(scheme: str, how: str) -> None:
    async def use(peer: weirpool.Peer, driver: Any) -> None:
        if how == "call":
            with pytest.raises(weirpool.LinkLost, match="the handler is closed"):
                await peer.call("t.later", b"1")
        elif how == "timer":
            # The keepalive is written by a timer.
            await driver.over
            assert isinstance(driver.error, weirpool.LinkLost)
        else:
            await peer.close(0)

    async def main() -> None:
        service = make_service([], asyncio.Event())
        service.call("t.later")(lambda request: request)
        settings = weirpool.Settings(keepalive_interval=0.05)
        with noted_drivers() as drivers:
            async with weirpool.serve(service, f"{scheme}://127.0.0.1:0") as server:
                async with weirpool.connect(server.urls[0], settings=settings) as peer:
                    await peer.call("t.later", b"1")
                    (driver,) = drivers
                    link = driver.link
                    # The transport reports its end to a receiver that ignores it.
                    link.receiver = Discard()
                    link.abort()
                    await turns(5)
                    link.receiver = driver
                    async with asyncio.timeout(30):
                        await use(peer, driver)

    problems: list[dict[str, Any]] = []
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.get_loop().set_exception_handler(lambda loop, context: problems.append(context))
        runner.run(main())
    assert problems == []


# Output that waits below the mark at which senders pause. THREATS 40
