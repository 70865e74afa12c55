"""Requests are counted until the handlers that may hold them have ended, and pay like items."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

import weirpool
from tests.waiting import until
from weirpool import Admitted, Canceled, Items, LimitExceeded, Payload, Service, Settings, Setup
from weirpool.ledger import LEDGER
from weirpool.transports import memory

URL = "rsocket+memory://requests"
SIZE = 50_000
QUICK = Settings(close_grace=0.0)


@pytest.fixture(autouse=True)
def _nothing_is_left() -> None:
    """Let go of what other tests have not consumed; what their reports refer to remains."""
    gc.collect()


def make_service() -> Service:
    service = Service()

    @service.call("call")
    async def call(request: Payload) -> bytes:
        await asyncio.get_running_loop().create_future()
        return request.data

    @service.fire("fire")
    async def fire(request: Payload) -> None:
        await asyncio.get_running_loop().create_future()

    @service.stream("plain")
    def plain(request: Payload) -> Iterator[bytes]:
        while request.data:
            yield b"x"

    @service.stream("async")
    async def waits(request: Payload) -> AsyncIterator[bytes]:
        yield b"x"
        await asyncio.get_running_loop().create_future()

    @service.stream("awaited")
    async def awaited(request: Payload) -> Any:
        await asyncio.sleep(0)
        return plain(request)

    @service.channel("channel")
    async def channel(request: Payload, items: Items) -> AsyncIterator[bytes]:
        yield b"x"
        await asyncio.get_running_loop().create_future()

    return service


def ask(peer: weirpool.Peer, kind: str) -> Any:
    """Make a request whose handler does not end."""
    if kind in ("call", "fire"):
        return asyncio.ensure_future(getattr(peer, kind)(kind, bytes(SIZE)))
    if kind == "channel":
        return peer.channel(kind, bytes(SIZE), [], credit=1)
    return peer.stream(kind, bytes(SIZE), credit=1)


async def end(asked: Any) -> None:
    if isinstance(asked, asyncio.Future):
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
    else:
        await asked.__aexit__(None, None, None)


@pytest.mark.parametrize("kind", ["call", "plain", "async", "awaited", "channel"])
async def test_request_is_counted_until_its_handler_has_ended(kind: str) -> None:
    # THREATS 85
    async with weirpool.serve(make_service(), URL, settings=QUICK) as server, weirpool.connect(URL) as peer:
        left = server.metrics().held_bytes
        asked = ask(peer, kind)
        if not isinstance(asked, asyncio.Future):
            await asked.__aenter__()
            await asked.arrival()
        await until(lambda: server.metrics().held_bytes - left >= SIZE)
        assert server.metrics().held_bytes - left < 2 * SIZE
        await end(asked)
        # The client has not consumed an item.
        await until(lambda: server.metrics().held_bytes - left < 200)


async def test_requests_of_streams_that_have_ended_are_not_counted() -> None:
    service = Service()

    @service.stream("short")
    def short(request: Payload) -> list[bytes]:
        return [b"1", b"2"]

    async with weirpool.serve(service, URL) as server, weirpool.connect(URL) as peer:
        left = server.metrics().held_bytes
        for _ in range(3):
            async with peer.stream("short", bytes(SIZE)) as items:
                assert len([item async for item in items]) == 2
        await until(lambda: server.metrics().held_bytes <= left)


@pytest.mark.parametrize("kind", ["call", "plain", "async", "awaited", "channel", "fire"])
async def test_largest_request_pays(kind: str) -> None:
    # THREATS 85
    limits = Settings(close_grace=0.0, max_connection_bytes=SIZE, unread_timeout=0.001)
    async with weirpool.serve(make_service(), URL, settings=limits) as server, weirpool.connect(URL) as peer:
        before, left = LEDGER.payments, server.metrics().held_bytes
        by_limit = server.metrics().payments_by_limit
        asked = ask(peer, kind)
        if kind == "fire":
            await asked
        else:
            with pytest.raises(Canceled, match="unread_timeout"):
                await asked if isinstance(asked, asyncio.Future) else [item async for item in asked]
        await until(lambda: LEDGER.payments == before + 1)
        paid = {limit: count - by_limit[limit] for limit, count in server.metrics().payments_by_limit.items()}
        assert {limit for limit, count in paid.items() if count} == {"unread_timeout"}
        await until(lambda: server.metrics().held_bytes - left < 200)


async def test_connection_counts_for_its_principal() -> None:
    # THREATS 87, 95
    async def accept(setup: Setup) -> Admitted:
        return Admitted(principal=setup.payload.data.decode())

    async with weirpool.serve(make_service(), URL, acceptor=accept):
        async with weirpool.connect(URL, setup="alice") as alice, weirpool.connect(URL, setup="bob") as bob:
            asked = [ask(each, "call") for each in (alice, alice, bob)]
            identities = LEDGER.identities
            await until(lambda: {"principal alice", "principal bob"} <= identities.keys())
            await until(lambda: identities["principal alice"].held >= 2 * SIZE)
            assert SIZE <= identities["principal bob"].held < 2 * SIZE
            for call in asked:
                await end(call)
    await until(lambda: not {"principal alice", "principal bob"} & LEDGER.identities.keys())


async def test_early_river_requests_begin_within_the_limit() -> None:
    # THREATS 85: these are sent before the client has received the server's first message. Their decoded values take
    # 50 times their bytes.
    service = Service()
    begun = asyncio.Event()
    end = asyncio.Event()

    @service.call("test.keep")
    async def keep(request: list[Any]) -> int:
        begun.set()
        await end.wait()
        return len(request)

    url, limits = "river+memory://early", Settings(max_connection_bytes=1_000_000)
    async with weirpool.serve(service, url, settings=limits) as server, weirpool.connect(url) as peer:
        left = server.metrics().held_bytes
        calls = [asyncio.ensure_future(peer.call("test.keep", b"[%s[]]" % (b"[]," * 3_999))) for _ in range(60)]
        await begun.wait()
        # All of them would hold 38 MB; those of a portion of 64 KiB exceed the limit.
        assert server.metrics().held_bytes - left < 8_000_000
        end.set()
        assert {(await call).data for call in calls} == {b"4000"}


async def test_consumer_learns_why_its_stream_has_failed() -> None:
    service = Service()

    @service.stream("items")
    def items(request: Payload) -> Iterator[bytes]:
        while True:
            yield bytes(10_000)

    limits = Settings(close_grace=0.0, max_connection_bytes=SIZE, unread_timeout=0.001)
    async with weirpool.serve(service, URL), weirpool.connect(URL, settings=limits) as peer:
        before = LEDGER.payments
        async with peer.stream("items") as stream:
            await until(lambda: LEDGER.payments > before)
            with pytest.raises(LimitExceeded, match="consume items faster"):
                [item async for item in stream]


def test_handlers_that_a_closed_loop_leaves_behind_hold_nothing() -> None:
    # Their tasks never end, so nobody releases what they hold.
    before = LEDGER.process.held

    async def begin() -> list[object]:
        server = await weirpool.serve(make_service(), URL, settings=QUICK)
        peer = await weirpool.connect(URL)
        asked = [ask(peer, "call"), ask(peer, "fire")]
        await until(lambda: server.metrics().held_bytes - before >= 2 * SIZE)
        return [server, peer, asked]

    loop = asyncio.new_event_loop()
    kept = loop.run_until_complete(begin())
    for task in asyncio.all_tasks(loop):
        # Nobody wants to know of them.
        task._log_destroy_pending = False  # type: ignore[attr-defined]
    loop.close()
    assert LEDGER.process.held - before >= 2 * SIZE
    # The listener would be found by others in its loop.
    memory._listeners.clear()
    del kept, task
    gc.collect()
    assert LEDGER.process.held == before


class Broken:
    """Items that cannot be iterated over."""

    def __iter__(self) -> Iterator[bytes]:
        raise ValueError("broken")


async def test_request_is_released_when_awaited_items_are_broken() -> None:
    service = Service()

    @service.stream("broken")
    async def broken(request: Payload) -> Any:
        await asyncio.sleep(0)
        return Broken()

    before = LEDGER.process.held
    async with weirpool.serve(service, URL, settings=QUICK), weirpool.connect(URL) as peer:
        for _ in range(3):
            with pytest.raises(weirpool.ApplicationError):
                async for _ in peer.stream("broken", bytes(SIZE)):
                    pass
        await until(lambda: LEDGER.process.held - before < SIZE)


def test_requests_of_a_loop_that_has_ended_are_not_counted() -> None:
    before = LEDGER.snapshot()

    async def leave() -> None:
        server = await weirpool.serve(make_service(), URL)
        peer = await weirpool.connect(URL)
        stream = await peer.stream("plain", bytes(SIZE), credit=1).__aenter__()
        await stream.arrival()
        assert LEDGER.snapshot().held_bytes >= before.held_bytes + SIZE
        assert server.connections == 1

    # Nobody closes the server or the peer.
    asyncio.run(leave())
    memory._listeners.clear()
    gc.collect()
    assert LEDGER.snapshot().connections == before.connections
