"""Items and requests that are larger than the output that may wait: each costs its own stream, not the connection."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import weirpool
from tests.waiting import turns, until
from weirpool import Items, LocalError, Payload, PayloadRun, Service, Settings, UnsupportedKind, WeirpoolError

pytestmark = pytest.mark.usefixtures("tidy")

PROTOCOLS = ("rsocket", "reactivesocket-0.2", "reactivesocket-0.0", "river", "reactive-streams")
WHOLE = ("rsocket", "reactivesocket-0.2", "reactivesocket-0.0", "river")
"""Protocols that send an item as a whole. Those of reactive-streams are sent in parts, as the link accepts them."""
LIMIT = 100_000
SMALL = Settings(max_output_bytes=LIMIT, output_high_bytes=10_000, fragment_bytes=20_000)


def blob(size: int) -> bytes:
    """Return an item that every protocol can carry."""
    return b'"%b"' % (b"x" * (size - 2))


async def consumed(stream: Any) -> list[int]:
    return [len(item.data) async for item in stream]


class World:
    """A service, and a call that waits while others fail."""

    def __init__(self) -> None:
        self.released = asyncio.Event()
        self.answer = asyncio.Event()
        self.waiting = 0
        self.service = Service()
        self.service.call("t.slow")(self._slow)
        self.service.call("t.plain")(lambda request: blob(int(request.data)))
        self.service.call("t.size")(lambda request: b"%d" % len(request.data))
        self.service.call("t.later")(self._later)
        self.service.stream("t.items")(self._items)
        self.service.stream("t.async")(self._async)
        self.service.stream("t.run")(self._run)
        self.service.upload("t.up")(self._up)
        self.service.channel("t.ch")(self._channel)

    async def _slow(self, request: Payload) -> bytes:
        self.waiting += 1
        await self.released.wait()
        return b"1"

    async def _later(self, request: Payload) -> bytes:
        self.waiting += 1
        await self.answer.wait()
        return blob(int(request.data))

    def _items(self, request: Payload) -> Iterator[bytes]:
        yield b"1"
        yield blob(int(request.data))
        yield b"2"

    async def _async(self, request: Payload) -> AsyncIterator[bytes]:
        for item in self._items(request):
            yield item

    def _run(self, request: Payload) -> Iterator[PayloadRun]:
        yield PayloadRun.of([Payload(b"1"), Payload(blob(int(request.data))), Payload(b"2")])

    async def _up(self, request: Payload, items: Items) -> bytes:
        return b"%d" % sum(await consumed(items))

    async def _channel(self, request: Payload, items: Items) -> AsyncIterator[bytes]:
        async for item in items:
            yield b"%d" % len(item.data)


@asynccontextmanager
async def served(protocol: str) -> AsyncIterator[tuple[World, weirpool.Peer]]:
    """Return a world and its client. At the end, a call that has waited all the time is answered."""
    world = World()
    async with weirpool.serve(world.service, f"{protocol}+memory://oversized", settings=SMALL) as server:
        async with weirpool.connect(server.urls[0], settings=SMALL) as peer:
            innocent = asyncio.ensure_future(peer.call("t.slow", b"1"))
            await until(lambda: world.waiting == 1)
            yield world, peer
            await until(lambda: peer.outstanding == 1)
            assert not innocent.done()
            world.released.set()
            assert (await innocent).data == b"1"


@pytest.mark.parametrize("protocol", WHOLE)
async def test_oversized_response_costs_its_own_stream(protocol: str, caplog: pytest.LogCaptureFixture) -> None:
    size = b"%d" % (LIMIT + 1)
    async with served(protocol) as (_, peer):
        for ask in (
            lambda: peer.call("t.plain", size),
            lambda: consumed(peer.stream("t.items", size)),
            lambda: consumed(peer.stream("t.async", size)),
            lambda: consumed(peer.stream("t.run", size)),
        ):
            caplog.clear()
            with pytest.raises(WeirpoolError, match=r"the handler failed|max_output_bytes"):
                await ask()
            (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
            assert f"max_output_bytes ({LIMIT})" in record.getMessage() and record.exc_info is None


@pytest.mark.parametrize("protocol", WHOLE)
async def test_oversized_request_is_not_sent(protocol: str) -> None:
    async with served(protocol) as (_, peer):
        large = blob(LIMIT + 1)
        asks: list[Callable[[], Any]] = [
            lambda: peer.call("t.size", large),
            lambda: peer.fire("t.size", large),
            lambda: consumed(peer.stream("t.items", large)),
            lambda: peer.upload("t.up", large, [b"1"]),
            lambda: peer.upload("t.up", b"1", [b"1", large]),
            lambda: consumed(peer.channel("t.ch", b"1", [b"1", large])),
        ]
        failed = 0
        for ask in asks:
            try:
                await ask()
            except UnsupportedKind:
                continue
            except LocalError as error:
                failed += 1
                assert f"max_output_bytes ({LIMIT})" in str(error)
        assert failed >= 3
        # Nothing was registered, and no lease or place was used.
        await turns(5)
        assert peer.outstanding == 1


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_largest_items_are_sent_one_after_the_other(protocol: str) -> None:
    # Together they exceed the limit many times: each waits until the link accepts output.
    async with served(protocol) as (world, peer):
        size = LIMIT - 1_000
        wanted = b"%d" % size
        answers = [asyncio.ensure_future(peer.call("t.later", wanted)) for _ in range(8)]
        await until(lambda: world.waiting == 9)
        streams = [asyncio.ensure_future(consumed(peer.stream("t.async", wanted))) for _ in range(8)]
        sizes = [] if protocol == "reactive-streams" else [peer.call("t.size", blob(size)) for _ in range(8)]
        assert await asyncio.gather(*streams) == [[1, size, 1]] * 8
        assert [answer.data for answer in await asyncio.gather(*sizes)] == [wanted] * len(sizes)
        world.answer.set()
        assert [len(answer.data) for answer in await asyncio.gather(*answers)] == [size] * 8


@pytest.mark.parametrize("protocol", ["reactivesocket-0.0"])
async def test_request_that_cannot_be_fragmented_is_limited_by_the_frame(protocol: str) -> None:
    settings = Settings(max_frame_bytes=50_000, fragment_bytes=20_000)
    world = World()
    async with weirpool.serve(world.service, f"{protocol}+memory://frame", settings=settings) as server:
        async with weirpool.connect(server.urls[0], settings=settings) as peer:
            with pytest.raises(LocalError, match="max_frame_bytes"):
                await peer.call("t.size", b"x" * 50_000)
            assert (await peer.call("t.size", b"x" * 49_000)).data == b"49000"


async def test_oversized_request_uses_no_lease() -> None:
    world = World()
    lease = weirpool.FixedLease(1, 3600.0)
    async with weirpool.serve(world.service, "rsocket+memory://lease", settings=Settings(lease=lease)) as server:
        settings = Settings(lease=True, max_output_bytes=LIMIT, lease_timeout=1.0)
        async with weirpool.connect(server.urls[0], settings=settings) as peer:
            with pytest.raises(LocalError, match="max_output_bytes"):
                await peer.call("t.size", b"x" * (LIMIT + 1))
            assert (await peer.call("t.size", b"x")).data == b"1"


async def test_reactive_streams_sends_items_of_any_size_in_parts() -> None:
    async with served("reactive-streams") as (_, peer):
        assert await consumed(peer.stream("t.items", b"500000")) == [1, 500_000, 1]
        assert len((await peer.call("t.plain", b"500000")).data) == 500_000
