from __future__ import annotations

import asyncio
from contextvars import ContextVar

import pytest

import weirpool
from tests.aio.serving import noted_drivers
from tests.aio.test_exchanges import World
from tests.builds import Build
from tests.waiting import turns, until
from weirpool import Service, Settings, current_connection
from weirpool.aio.holds import UNREAD

owner: ContextVar[str] = ContextVar("owner", default="nobody")
MANY = 30_000


class Slow:
    """A push handler that waits until it may go on."""

    def __init__(self) -> None:
        self.seen: list[bytes] = []
        self.running = self.most = 0
        self.free = asyncio.Event()

    async def __call__(self, metadata: bytes) -> None:
        self.running += 1
        self.most = max(self.most, self.running)
        await self.free.wait()
        self.seen.append(metadata)
        self.running -= 1


async def test_pushes_are_handled_in_order_one_at_a_time(build: Build) -> None:
    world, slow = World(build), Slow()
    world.service.push(slow)
    before = len(asyncio.all_tasks())
    for number in range(1_000):
        world.happen("MetadataPushed", 0, b"%d" % number)
    await turns(3)
    assert (slow.running, len(asyncio.all_tasks()) - before) == (1, 1)
    # 999 wait, and count as received and not consumed.
    account = world.exchanges.flow.account
    assert account.held > 999 * 256
    slow.free.set()
    await until(lambda: len(slow.seen) == 1_000)
    await turns(2)
    assert slow.seen == [b"%d" % number for number in range(1_000)]
    assert (slow.most, account.held, world.exchanges.fires, world.exchanges.tasks) == (1, 0, set(), set())


async def test_plain_handler_is_called_at_once(build: Build) -> None:
    world, seen = World(build), []
    world.service.push(seen.append)
    world.happen("MetadataPushed", 0, b"1")
    assert (seen, world.exchanges.fires) == ([b"1"], set())


async def test_errors_are_logged_and_the_next_push_is_handled(build: Build, caplog: pytest.LogCaptureFixture) -> None:
    world, seen = World(build), []

    async def push(metadata: bytes) -> None:
        await asyncio.sleep(0)
        seen.append(metadata)
        if metadata == b"exit":
            raise SystemExit
        if metadata == b"cancel":
            raise asyncio.CancelledError
        raise ValueError(metadata)

    world.service.push(push)
    for metadata in (b"1", b"exit", b"2"):
        world.happen("MetadataPushed", 0, metadata)
    await until(lambda: seen == [b"1", b"exit", b"2"])
    await turns(2)
    assert [record.getMessage() for record in caplog.records] == ["the push handler failed"] * 3
    assert world.exchanges.flow.account.held == 0


async def test_too_many_pushes_may_be_dropped(build: Build, caplog: pytest.LogCaptureFixture) -> None:
    world, slow = World(build), Slow()
    world.service.push(slow)
    for number in range(10):
        world.happen("MetadataPushed", 0, b"%d" % number)
    [holding] = world.exchanges.holdings()
    world.exchanges.drop(holding, "the connection holds too much")
    await turns(3)
    assert (slow.seen, world.exchanges.flow.account.held, world.exchanges.fires) == ([], 0, set())
    assert "9 pushes were received and not handled" in caplog.text
    slow.free.set()
    world.happen("MetadataPushed", 0, b"later")
    await until(lambda: slow.seen == [b"later"])


async def test_each_push_has_its_context_and_its_connection() -> None:
    service, seen = Service(), []

    @service.push
    async def push(metadata: bytes) -> None:
        seen.append((current_connection().is_client, owner.get()))
        owner.set("a push")
        await asyncio.sleep(0)
        seen.append((current_connection().is_client, owner.get()))

    async with weirpool.serve(service, "rsocket+memory://pushes") as server:
        async with weirpool.connect(server.urls[0]) as peer:
            await peer.push(b"1")
            await peer.push(b"2")
            await until(lambda: len(seen) == 4)
    assert seen == [(False, "nobody"), (False, "a push")] * 2


async def test_flood_of_pushes_stops_reading_and_piles_up_nothing() -> None:
    slow, service = Slow(), Service()
    service.push(slow)
    settings = Settings(max_connection_bytes=1 << 20, unread_timeout=60.0)
    async with weirpool.serve(service, "rsocket+tcp://127.0.0.1:0", settings=settings) as server:
        with noted_drivers() as drivers:
            peer = await weirpool.connect(server.urls[0])
            before = len(asyncio.all_tasks())
            session = drivers[0].session
            for number in range(MANY):
                session.push(b"%d" % number)
            drivers[0].flow.schedule_write()
            [there] = server._drivers.values()
            await until(lambda: there.flow.holds & UNREAD != 0 and slow.running == 1)
            assert len(asyncio.all_tasks()) - before <= 2
            # What waits is limited by the account, and by one read.
            assert 1 << 20 <= there.flow.account.held < 16 << 20
            slow.free.set()
            await until(lambda: len(slow.seen) == MANY)
            assert slow.seen[-1] == b"%d" % (MANY - 1)
            await until(lambda: there.flow.account.held == 0)
            await peer.close()


async def test_pushes_of_a_client_that_has_left_are_handled() -> None:
    slow, service = Slow(), Service()
    service.push(slow)
    async with weirpool.serve(service, "rsocket+tcp://127.0.0.1:0") as server:
        async with weirpool.connect(server.urls[0]) as peer:
            for number in range(3):
                await peer.push(b"%d" % number)
        await until(lambda: slow.running == 1 and server.connections == 0)
        slow.free.set()
        await until(lambda: len(slow.seen) == 3)


async def test_closing_server_waits_for_the_push_handler() -> None:
    slow, service = Slow(), Service()
    service.push(slow)
    async with weirpool.serve(service, "rsocket+tcp://127.0.0.1:0") as server:
        peer = await weirpool.connect(server.urls[0])
        for number in range(3):
            await peer.push(b"%d" % number)
        await until(lambda: slow.running == 1)
        closing = asyncio.ensure_future(server.close())
        await turns(5)
        slow.free.set()
        await closing
        assert len(slow.seen) == 3
        await peer.close()


async def test_pushes_that_are_not_handled_before_the_end_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    slow, service = Slow(), Service()
    service.push(slow)
    async with weirpool.serve(service, "rsocket+tcp://127.0.0.1:0") as server:
        peer = await weirpool.connect(server.urls[0])
        for number in range(3):
            await peer.push(b"%d" % number)
        await until(lambda: slow.running == 1)
        [there] = server._drivers.values()
        await until(lambda: any(each.held for each in there.exchanges.fires))
        await server.close(0)
        await peer.close()
    assert slow.seen == []
    assert any("pushes were received and not handled" in record.getMessage() for record in caplog.records)
