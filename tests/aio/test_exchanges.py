from __future__ import annotations

import asyncio
import gc
from contextvars import copy_context
from typing import Any

import pytest

import weirpool
from tests.aio.fakes import FakeHalf, FakeSession, fake_connection
from tests.aio.serving import world
from tests.builds import Build
from tests.waiting import until
from weirpool import IntervalLease, LeaseMissing, SessionClosed, Settings

STREAM, OTHER = 1, 3
HOURLY = Settings(lease=IntervalLease(2, 3600.0))


class World:
    """The streams of a session, in the build that the test runs on."""

    def __init__(self, build: Build) -> None:
        self.build = build
        self.session = FakeSession(build)
        self.service = build.module("weirpool.aio.service").Service()
        self.errors = build.module("weirpool.errors")
        settings = build.module("weirpool.settings").Settings()
        loop = asyncio.get_running_loop()
        flow = build.module("weirpool.aio.flow").Flow(loop, self.session, settings, fake_connection(build), list)
        # However slow this machine is, the turn is not over.
        flow.turns.clock = lambda: 0.0
        self.exchanges = build.module("weirpool.aio.exchanges").Exchanges(flow)
        self.dispatch = build.module("weirpool.aio.dispatch").Dispatch(self.exchanges, self.service, list)

    def payload(self, data: bytes) -> Any:
        return self.build.module("weirpool.payload").Payload(data)

    def happen(self, name: str, stream_id: int, *arguments: Any) -> None:
        event = getattr(self.build.module("weirpool.events"), name)(stream_id, *arguments)
        self.dispatch.take([event])

    def call(self, stream_id: int = STREAM) -> Any:
        reply = self.exchanges.calls[stream_id] = self.exchanges.new_reply()
        return reply

    def inbound(self, stream_id: int = STREAM) -> Any:
        module = self.build.module("weirpool.aio.inbound")
        half = self.exchanges.inbound[stream_id] = module.ReceiveBuffer(self.exchanges, stream_id, 100, 100, True)
        return half

    def outbound(self, stream_id: int = STREAM) -> FakeHalf:
        half = self.exchanges.outbound[stream_id] = FakeHalf()
        return half

    def open(self) -> list[int]:
        """Return the streams that are in any table."""
        tables = (self.exchanges.calls, self.exchanges.inbound, self.exchanges.outbound)
        return sorted({stream_id for table in tables for stream_id in table})


# Operations of owners.


async def test_a_call_is_abandoned_once(build: Build) -> None:
    world = World(build)
    world.call()
    world.exchanges.abandon(STREAM)
    world.exchanges.abandon(STREAM)
    assert world.session.told == [("cancel", STREAM)]
    assert world.open() == []


async def test_exiting_a_stream_cancels_it(build: Build) -> None:
    world = World(build)
    inbound = world.inbound()
    world.exchanges.cancel_stream(STREAM)
    world.exchanges.cancel_stream(STREAM)
    assert world.session.told == [("cancel", STREAM)]
    assert isinstance(inbound.error, world.errors.StreamClosed)
    assert world.open() == []


async def test_canceling_a_channel_stops_its_source(build: Build) -> None:
    world = World(build)
    _, outbound = world.inbound(), world.outbound()
    world.exchanges.cancel_stream(STREAM)
    # If the inbound half has ended, a cancellation does not end the outbound half.
    assert [verb for verb, *_ in world.session.told] == ["cancel", "fail"]
    assert (outbound.told, world.open()) == (["canceled"], [])


async def test_canceling_a_stream_with_only_a_sending_half_fails_it(build: Build) -> None:
    # There is no inbound half to cancel.
    world = World(build)
    outbound = world.outbound()
    world.exchanges.cancel_stream(STREAM)
    ((verb, stream_id, error),) = world.session.told
    assert (verb, stream_id) == ("fail", STREAM)
    assert isinstance(error, world.errors.Canceled)
    assert outbound.told == ["canceled"]


# Operations of handlers and sources.


async def test_handler_errors_are_logged_unless_application_errors(
    build: Build, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(build)
    meant = world.errors.ApplicationError(0x301, "sold out")
    world.exchanges.fail(STREAM, meant, "the handler")
    world.exchanges.fail(STREAM, ValueError("ours"), "")
    assert caplog.records == []
    bug = KeyError("a secret")
    world.exchanges.fail(OTHER, bug, "the handler")
    assert [record.getMessage() for record in caplog.records] == ["the handler failed"]
    assert [error for _, _, error in world.session.told][2] is bug


async def test_a_failure_ends_the_receiving_half_too(build: Build) -> None:
    world = World(build)
    inbound = world.inbound()
    error = ValueError("broken")
    world.exchanges.fail(STREAM, error, "")
    assert (inbound.error, world.open()) == (error, [])


async def test_canceled_handler_is_reported_to_the_peer(build: Build) -> None:
    world = World(build)
    world.exchanges.fail(STREAM, asyncio.CancelledError(), "the handler")
    ((_, _, error),) = world.session.told
    assert isinstance(error, world.errors.Canceled)


async def test_base_exception_is_logged_and_reported_as_an_error(
    build: Build, caplog: pytest.LogCaptureFixture
) -> None:
    # THREATS 90
    world = World(build)
    inbound = world.inbound()
    panic = GeneratorExit("a secret")
    world.exchanges.fail(STREAM, panic, "the handler")
    ((_, _, error),) = world.session.told
    assert type(error) is RuntimeError and error.__cause__ is panic
    assert str(error) == "the handler raised GeneratorExit"
    assert inbound.error is error
    (record,) = caplog.records
    assert record.getMessage() == "the handler failed"
    assert record.exc_info is not None and record.exc_info[1] is panic


async def test_plain_build_makes_futures_instead_of_replies(build: Build) -> None:
    assert isinstance(World(build).exchanges.new_reply(), asyncio.Future) == (build.name == "plain")


async def test_unencodable_error_is_replaced(build: Build, caplog: pytest.LogCaptureFixture) -> None:
    world = World(build)
    wrong = world.errors.LocalError("no such code")
    told = []

    def fail(stream_id: int, error: BaseException) -> None:
        told.append(error)
        if len(told) == 1:
            raise wrong

    world.session.fail = fail  # type: ignore[method-assign]
    world.exchanges.fail(STREAM, world.errors.ApplicationError(0, "boom"), "the handler")
    assert [str(error) for error in told[1:]] == ["the error cannot be sent: no such code"]
    assert "its error cannot be sent: no such code" in caplog.text


async def test_unencodable_response_is_logged_in_one_line(build: Build, caplog: pytest.LogCaptureFixture) -> None:
    world = World(build)
    world.exchanges.fail(STREAM, world.errors.LocalError("data is not json"), "the handler")
    [record] = caplog.records
    assert record.getMessage() == "the handler failed: data is not json" and record.exc_info is None


async def test_items_are_canceled_when_the_handler_has_ended(build: Build) -> None:
    world = World(build)
    inbound, outbound = world.inbound(), world.outbound()
    world.exchanges.half_ended(outbound, STREAM, "the handler")
    assert world.session.told == [("cancel", STREAM)]
    assert inbound.over
    assert world.open() == []


async def test_end_of_source_does_not_cancel_inbound_items(build: Build) -> None:
    world = World(build)
    inbound, outbound = world.inbound(), world.outbound()
    world.exchanges.half_ended(outbound, STREAM, "")
    assert (world.session.told, inbound.over) == ([], False)
    assert world.exchanges.outbound == {}


async def test_replacing_half_stays_when_the_old_one_ends(build: Build) -> None:
    world = World(build)
    before, after = FakeHalf(), world.outbound()
    world.exchanges.half_ended(before, STREAM, "")
    assert world.exchanges.outbound == {STREAM: after}


async def test_tasks_are_held_until_they_end(build: Build) -> None:
    # The loop has only weak references to tasks.
    world = World(build)
    released = asyncio.Event()
    ended = []

    async def work() -> int:
        await released.wait()
        return 7

    def finished(task: asyncio.Future[Any]) -> None:
        world.exchanges.tasks.discard(task)
        ended.append(task.result())

    world.exchanges.start(work(), finished, copy_context(), "work")
    gc.collect()
    assert len(world.exchanges.tasks) == 1
    released.set()
    await until(lambda: ended == [7])
    assert world.exchanges.tasks == set()


async def test_finished_work_runs_no_task(build: Build) -> None:
    world = World(build)
    future = asyncio.get_running_loop().create_future()
    future.set_result(None)
    ended: list[Any] = []
    world.exchanges.start(future, ended.append, copy_context(), "work")
    assert (ended, world.exchanges.tasks) == ([future], set())


# Requests that wait for a lease.


async def test_requests_wait_for_the_next_lease_in_order() -> None:
    # Two leases do not allow nine requests.
    async with world(server=Settings(lease=IntervalLease(4, 0.05)), client=Settings(lease=True)) as w:
        done: list[int] = []

        async def ask(number: int) -> None:
            await w.peer.call("echo", b"%d" % number)
            done.append(number)

        await asyncio.gather(*map(ask, range(9)))
        assert done == list(range(9))


async def test_request_without_lease_timeout_fails_at_once() -> None:
    async with world(server=HOURLY, client=Settings(lease=True, lease_timeout=0)) as w:
        while True:
            try:
                await w.peer.call("echo")
                break
            except LeaseMissing:
                # The first lease is on its way.
                await asyncio.sleep(0)
        await w.peer.call("echo")
        for ask in (w.peer.call("echo"), w.peer.fire("log"), w.peer.upload("sum", b"", [])):
            with pytest.raises(LeaseMissing, match="not granted a lease"):
                await ask
        with pytest.raises(LeaseMissing):
            async with w.peer.stream("count", b"3"):
                pass


async def test_lease_wait_times_out() -> None:
    async with world(server=HOURLY, client=Settings(lease=True, lease_timeout=0.05)) as w:
        await w.peer.call("echo")
        await w.peer.call("echo")
        with pytest.raises(LeaseMissing, match=r"within 0\.05 s"):
            await w.peer.call("echo")


async def test_all_kinds_wait_for_a_lease() -> None:
    async with world(server=Settings(lease=IntervalLease(1, 0.02)), client=Settings(lease=True)) as w:
        assert (await w.peer.call("echo", b"x")).data == b"x"
        await w.peer.fire("log", b"logged")
        assert [item.data async for item in w.peer.stream("count", b"2")] == [b"0", b"1"]
        assert (await w.peer.upload("sum", b"0", [b"1", b"2"])).data == b"3"
        doubled = w.peer.channel("double", b"0", [b"4"])
        assert [item.data async for item in doubled] == [b"8"]
        await w.reached.wait()
        assert b"logged" in w.seen


async def test_canceled_waiting_request_is_removed() -> None:
    async with world(server=Settings(lease=IntervalLease(1, 0.1)), client=Settings(lease=True)) as w:
        await w.peer.call("echo")
        waiting = [asyncio.ensure_future(w.peer.call("echo", b"%d" % number)) for number in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        assert (await waiting[1]).data == b"1"
        assert (await waiting[2]).data == b"2"
        assert waiting[0].cancelled()


async def test_waiting_requests_fail_when_the_connection_closes() -> None:
    async with world(server=HOURLY, client=Settings(lease=True)) as w:
        await w.peer.call("echo")
        await w.peer.call("echo")
        waiting = asyncio.ensure_future(w.peer.call("echo"))
        await asyncio.sleep(0)
        await w.peer.close(0)
        with pytest.raises((SessionClosed, weirpool.SessionError)):
            await waiting
