from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

import weirpool
from tests.waiting import until
from weirpool import ApplicationError, Items, Payload, Service, UnsupportedKind
from weirpool.aio.peer import Peer
from weirpool.kinds import Kind
from weirpool.load.measured import Measured
from weirpool.load.requests import Load, sender
from weirpool.load.round import Pace, Round

service = Service()


@service.call("echo")
def echo(request: Payload) -> Payload:
    return request


@service.call("fail")
def fail(request: Payload) -> Payload:
    raise ApplicationError(0x301, "boom")


@service.fire("log")
def log(request: Payload) -> None:
    pass


@service.stream("three")
def three(request: Payload) -> Iterator[bytes]:
    return iter([b"12", b"34", b"56"])


@service.stream("forever")
async def forever(request: Payload) -> AsyncIterator[bytes]:
    while True:
        yield b"x"


@service.upload("count")
async def count(request: Payload, items: Items) -> bytes:
    return b"%d" % len([item async for item in items])


@service.channel("back")
async def back(request: Payload, items: Items) -> AsyncIterator[Payload]:
    async for item in items:
        yield item


@asynccontextmanager
async def connected(number: int = 1, served: Service = service) -> AsyncIterator[list[Peer]]:
    async with weirpool.serve(served, "rsocket+memory://load") as server:
        peers = [await weirpool.connect(server.urls[0]) for _ in range(number)]
        try:
            yield peers
        finally:
            for peer in peers:
                await peer.close(0)


async def measured(kind: Kind, route: str, pace: Pace, number: int = 1, data: bytes = b"hello") -> Measured:
    async with connected(number) as peers:
        return await Round(peers, sender(Load(kind=kind, route=route, payload=Payload(data), items=4)), pace).run()


COUNTED = Pace(in_flight=3, seconds=None, count=20)


@pytest.mark.parametrize(
    ("kind", "route", "items", "size"),
    [
        (Kind.CALL, "echo", 0, 10),
        (Kind.FIRE, "log", 0, 5),
        (Kind.STREAM, "three", 3, 5 + 6),
        (Kind.UPLOAD, "count", 4, 4 * 5 + 1),
        (Kind.CHANNEL, "back", 8, 5 + 8 * 5),
    ],
)
async def test_each_kind_counts_requests_items_and_bytes(kind: Kind, route: str, items: int, size: int) -> None:
    found = await measured(kind, route, COUNTED, number=2)
    assert (found.requests, found.items, found.bytes, found.failed) == (20, 20 * items, 20 * size, 0)
    assert (found.latency.count, found.complete, found.unfinished) == (20, True, 0)
    assert found.first_item.count == (20 if kind.answers_items else 0)
    assert sum(found.series.counts) == 20


async def test_errors_are_counted_by_code_and_not_as_requests() -> None:
    found = await measured(Kind.CALL, "fail", COUNTED)
    assert (found.requests, found.errors, found.texts) == (0, {"0x301": 20}, {"0x301": "boom"})
    assert found.latency.count == 0


async def test_stall_counts_for_requests_that_were_due_meanwhile() -> None:
    stalled, open_again = Service(), asyncio.Event()

    @stalled.call("stall")
    async def stall(request: Payload) -> bytes:
        await open_again.wait()
        return b""

    async with connected(served=stalled) as peers:
        asyncio.get_running_loop().call_later(0.4, open_again.set)
        pace = Pace(in_flight=1, seconds=None, count=100, rate=1_000)
        found = await Round(peers, sender(Load(kind=Kind.CALL, route="stall", payload=Payload())), pace).run()
    # Only one request was in the stalled server; the other 99 were due in its first tenth of a second.
    assert found.requests == 100
    assert found.latency.percentile(1) > 0.25e9


async def test_time_ends_a_round_with_streams_that_never_end() -> None:
    found = await measured(Kind.STREAM, "forever", Pace(in_flight=2, seconds=0.2))
    assert (found.requests, found.unfinished, found.complete) == (0, 2, True)
    assert found.items > 10
    assert found.bytes == found.items + 2 * 5


async def test_take_ends_a_stream() -> None:
    load = Load(kind=Kind.STREAM, route="forever", payload=Payload(), take=7)
    async with connected() as peers:
        found = await Round(peers, sender(load), COUNTED).run()
    assert (found.requests, found.items) == (20, 140)


async def test_warm_up_is_not_measured() -> None:
    found = await measured(Kind.CALL, "echo", Pace(in_flight=1, seconds=None, count=5, warm_up=0.05))
    assert (found.requests, found.latency.count) == (5, 5)


async def test_requests_that_were_due_and_not_sent_are_reported() -> None:
    found = await measured(Kind.STREAM, "forever", Pace(in_flight=1, seconds=0.2, rate=100))
    assert found.unfinished >= 20


async def test_wrong_use_ends_the_round() -> None:
    async with weirpool.serve(service, "river+memory://load") as server, weirpool.connect(server.urls[0]) as peer:
        with pytest.raises(UnsupportedKind):
            await Round([peer], sender(Load(kind=Kind.FIRE, route="log", payload=Payload())), COUNTED).run()


async def test_lost_connection_ends_the_round_with_its_results() -> None:
    async with weirpool.serve(service, "rsocket+memory://load") as server:
        async with weirpool.connect(server.urls[0]) as peer:
            one = Round(
                [peer], sender(Load(kind=Kind.CALL, route="echo", payload=Payload())), Pace(in_flight=4, seconds=30)
            )
            running = asyncio.ensure_future(one.run())
            await until(lambda: one.measured.requests > 0)
            await server.close(0)
            with pytest.raises(weirpool.SessionError):
                await running
    assert one.measured.requests > 0
    assert one.measured.seconds > 0


async def test_canceled_round_keeps_what_it_measured() -> None:
    async with connected() as peers:
        one = Round(peers, sender(Load(kind=Kind.CALL, route="echo", payload=Payload())), Pace(in_flight=1, seconds=30))
        running = asyncio.ensure_future(one.run())
        await until(lambda: one.measured.requests > 0)
        running.cancel()
        await asyncio.wait([running])
    assert (running.cancelled(), one.measured.complete) == (True, False)
    assert one.measured.requests == one.measured.latency.count > 0
