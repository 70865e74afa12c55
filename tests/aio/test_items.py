from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest

import weirpool
from tests.aio.serving import world
from tests.waiting import turns, until
from weirpool import Items, Payload, Service, Settings
from weirpool.wire.columns import ColumnBuilder


async def test_items_arrive_in_order_one_by_one() -> None:
    async with world() as w, w.peer.stream("count", b"1000") as items:
        assert [int(item.data) async for item in items] == list(range(1000))


async def test_batches_hold_the_same_items() -> None:
    async with world(client=Settings(batch_rows=300)) as w, w.peer.stream("acount", b"1000", credit=500) as items:
        found: list[int] = []
        async for batch in items.batches():
            assert batch.schema.names == ["data", "metadata"]
            assert batch.num_rows <= 300
            found += [int(value) for value in batch.column("data").to_pylist()]
        assert found == list(range(1000))


async def test_second_loop_continues_after_the_first() -> None:
    async with world() as w, w.peer.stream("count", b"20", credit=3) as items:
        found = []
        async for item in items:
            found.append(int(item.data))
            if len(found) == 7:
                break
        found += [int(item.data) async for item in items]
        assert found == list(range(20))


async def test_ready_tells_whether_the_next_item_is_here() -> None:
    async with world() as w, w.peer.stream("count", "3", credit=8) as items:
        assert not items.ready
        seen = [items.ready async for _ in items]
        # They arrived together, so another one is ready after each but the last.
        assert seen == [True, True, False]


# Several tasks. RS4.


async def one_by_one(items: Any, found: list[int], turns_after: int = 0) -> None:
    async for item in items:
        found.append(int(item.data))
        await turns(turns_after)


async def in_batches(items: Any, found: list[int], turns_after: int = 0) -> None:
    async for batch in items.batches():
        found += [int(value) for value in batch.column("data").to_pylist()]
        await turns(turns_after)


@pytest.mark.parametrize("route", ["count", "acount"])
@pytest.mark.parametrize("credit", [3, None])
@pytest.mark.parametrize("slow", [(0, 0, 0), (1, 3, 0)])
@pytest.mark.parametrize(
    "consumers",
    [(one_by_one, one_by_one, one_by_one), (in_batches, in_batches, in_batches), (one_by_one, in_batches, one_by_one)],
)
async def test_each_item_goes_to_one_of_several_tasks(
    consumers: tuple[Any, ...], slow: tuple[int, ...], credit: int | None, route: str
) -> None:
    async with world() as w, w.peer.stream(route, b"500", credit=credit) as items:
        found: list[list[int]] = [[] for _ in consumers]
        await asyncio.gather(
            *(consume(items, mine, delay) for consume, mine, delay in zip(consumers, found, slow, strict=True))
        )
        assert sorted(number for mine in found for number in mine) == list(range(500))
        assert all(first < second for mine in found for first, second in pairwise(mine))


async def test_tasks_that_wait_together_all_see_the_end() -> None:
    go = asyncio.Event()
    service = Service()

    @service.stream("late")
    async def late(request: Payload) -> AsyncIterator[bytes]:
        await go.wait()
        yield b"1"
        if request.data:
            raise ValueError("broken")

    async with weirpool.serve(service, "rsocket+memory://late") as server, weirpool.connect(server.urls[0]) as peer:
        for fails in (b"", b"fails"):
            go.clear()
            found: list[int] = []
            async with peer.stream("late", fails) as items:
                tasks = [asyncio.ensure_future(each(items, found)) for each in (one_by_one, one_by_one, in_batches)]
                await turns(20)
                go.set()
                results = await asyncio.gather(*tasks, return_exceptions=True)
            assert found == [1]
            assert [isinstance(result, weirpool.ApplicationError) for result in results] == [bool(fails)] * 3


async def test_a_task_that_stops_leaves_its_items_to_the_others() -> None:
    async with world() as w, w.peer.stream("count", b"100", credit=10) as items:
        found: list[int] = []

        async def some() -> None:
            async for item in items:
                found.append(int(item.data))
                if len(found) % 7 == 0:
                    return
                await asyncio.sleep(0)

        await asyncio.gather(*(some() for _ in range(3)))
        await one_by_one(items, found)
        assert sorted(found) == list(range(100))


async def test_canceled_tasks_do_not_add_up() -> None:
    async with world() as w, w.peer.stream("count", b"2", manual=True, credit=1) as items:
        inbound = items._inbound
        assert inbound is not None and await items.arrival()
        others = [asyncio.ensure_future(one_by_one(items, [])) for _ in range(2)]
        for _ in range(50):
            waiting = asyncio.ensure_future(one_by_one(items, []))
            await turns(2)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        assert len(inbound.waiters) <= 3
        items.grant(1)
        await asyncio.gather(*others)


async def test_tasks_may_share_the_items_of_a_handler() -> None:
    service = Service()

    @service.upload("sum")
    async def total(request: Payload, items: Items) -> bytes:
        found: list[int] = []
        await asyncio.gather(*(one_by_one(items, found, 1) for _ in range(3)))
        return b"%d" % sum(found)

    async with weirpool.serve(service, "rsocket+memory://shared") as server, weirpool.connect(server.urls[0]) as peer:
        assert (await peer.upload("sum", b"", [b"%d" % number for number in range(300)])).data == b"44850"


async def test_shared_iterator_raises_at_once() -> None:
    async with world() as w, w.peer.stream("count", b"2", manual=True, credit=1) as items:
        shared = aiter(items)
        await anext(shared)
        waiting = asyncio.ensure_future(anext(shared))
        await turns(2)
        with pytest.raises(RuntimeError, match="already running"):
            await anext(shared)
        items.grant(1)
        assert (await waiting).data == b"1"


async def test_stream_that_two_tasks_begin_is_opened_once() -> None:
    async with world(client=Settings(lease=True), server=Settings(lease=weirpool.IntervalLease(5, 0.05))) as w:
        stream = w.peer.stream("count", b"50")
        found: list[int] = []
        await asyncio.gather(*(one_by_one(stream, found) for _ in range(3)))
        assert sorted(found) == list(range(50))
        await until(lambda: w.peer.outstanding == 0)
        assert w.seen == list(range(50))


# Consumers that stop, and others that continue.


async def test_arrival_sees_the_items_that_a_loop_has_left() -> None:
    async with world() as w, w.peer.stream("count", b"100") as items:
        found = []
        async for item in items:
            found.append(int(item.data))
            if len(found) == 3:
                break
        builder = ColumnBuilder()
        async with asyncio.timeout(5):
            while await items.arrival():
                items.take(builder)
        found += [int(value) for value in builder.finish().column("data").to_pylist()]
        assert found == list(range(100))


@pytest.mark.parametrize("end", [False, True])
async def test_canceled_batches_leave_their_rows_to_the_next_consumer(end: bool) -> None:
    """A batch that waits for more rows is canceled, which costs neither rows nor credit."""
    go = asyncio.Event()
    service = Service()

    @service.stream("paced")
    async def paced(request: Payload) -> AsyncIterator[Payload]:
        for number in range(20):
            yield Payload(b"%d" % number, None if number % 2 else b"even")
        await go.wait()
        for number in range(20, 200):
            yield Payload(b"%d" % number, None)

    async with weirpool.serve(service, "rsocket+memory://paced") as server, weirpool.connect(server.urls[0]) as peer:
        async with peer.stream("paced", credit=10) as items:
            inbound = items._inbound
            assert inbound is not None
            for _ in range(5):
                batches = asyncio.ensure_future(anext(items.batches()))
                await until(lambda: len(inbound.pending) > 0 or inbound.builder is not None)
                await turns(1)
                batches.cancel()
                await asyncio.gather(batches, return_exceptions=True)
                assert batches.cancelled()
            go.set()
            if end:
                items.cancel()
            found = [(int(item.data), item.metadata) async for item in _before_error(items)]
        count = len(found) if end else 200
        assert count >= 10
        assert found == [(number, b"even" if number < 20 and number % 2 == 0 else None) for number in range(count)]
        assert inbound.account.held == 0


async def _before_error(items: Any) -> AsyncIterator[Payload]:
    with suppress(weirpool.StreamClosed):
        async for item in items:
            yield item


async def test_a_waiter_is_done_at_the_next_item_and_at_the_end() -> None:
    async with world() as w:
        stream = w.peer.stream("acount", b"3", credit=8)
        with pytest.raises(weirpool.LocalError, match="enter its block first"):
            stream.waiter()
        async with stream as items:
            builder = ColumnBuilder()
            while not items.over:
                waiter = items.waiter()
                if waiter is not None:
                    await waiter
                items.take(builder)
            items.take(builder)
            assert items.waiter() is None
            assert builder.finish()["data"].to_pylist() == [b"0", b"1", b"2"]
