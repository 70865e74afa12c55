from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

import penstock
from penstock import Payload, Service
from penstock.aio.peer import Peer
from penstock.aio.streams import Stream
from penstock.bridging.demand import DemandedItems, Response
from penstock.settings import Settings
from tests.waiting import turns


class Requested:
    """Opens a stream of an endless publisher, and notes the demand."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self.credits: list[int] = []

    def open(self, credit: int) -> Stream:
        self.credits.append(credit)
        stream = self._peer.stream("flood", credit=credit, manual=True)
        return stream


async def used(settings: Settings, size: int, demands: list[int], count: int) -> tuple[list[int], int]:
    """Return the first credit, and how many items were taken ahead of those that were consumed."""
    service = Service()
    pulled = [0]

    @service.stream("flood")
    def flood(request: Payload) -> object:
        while True:
            pulled[0] += 1
            yield bytes(size)

    async with penstock.serve(service, "rsocket+memory://demand"), penstock.connect("rsocket+memory://demand") as peer:
        requested = Requested(peer)
        items = DemandedItems(Response(requested.open), settings)
        for demand in demands:
            items.demanded(demand)
        for _ in range(count):
            await anext(items)
        await turns(100)
        await items.aclose()
    return requested.credits, pulled[0]


async def test_first_credit_is_the_demand() -> None:
    assert await used(Settings(), 1, [5], 5) == ([5], 6)


async def test_demand_before_the_stream_is_open_is_the_newest() -> None:
    assert await used(Settings(), 1, [2, 7], 3) == ([7], 8)


async def test_large_demand_is_requested_by_windows() -> None:
    credits, pulled = await used(Settings(credit=16), 1, [1 << 31], 40)
    assert credits == [16]
    assert 40 <= pulled <= 40 + 16 + 1


async def test_large_items_shrink_the_window() -> None:
    _, pulled = await used(Settings(credit=64, max_credit_bytes=100_000), 50_000, [1 << 31], 80)
    assert 80 <= pulled <= 64 + 80


async def test_stream_is_not_opened_without_demand() -> None:
    opened = []
    items = DemandedItems(Response(lambda credit: opened.append(credit)), Settings())  # type: ignore[arg-type, func-returns-value]
    items.demanded(0)
    waiting = asyncio.ensure_future(anext(items))
    await turns(10)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert opened == []
    await items.aclose()


PROTOCOLS_WITH_DEMAND = ("rsocket", "reactivesocket-0.2")


class Uploaded:
    """Sends an endless channel through a bridge to a responder that requests items by hand."""

    def __init__(self, source: str, target: str, settings: Settings) -> None:
        self._urls = f"{source}+memory://demand-bridge", f"{target}+memory://demand-upstream"
        self._settings = settings
        self.pulled = 0
        self.items: asyncio.Future[penstock.Items] = asyncio.get_running_loop().create_future()

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[penstock.Items]:
        """Open the channel, and yield the items that the responder receives."""
        service = Service()
        service.manual = True
        service.channel("t.take")(self._take)
        place, to = self._urls
        async with (
            penstock.serve(service, to, settings=Settings(close_grace=0)),
            penstock.bridge(to, place, settings=self._settings),
            penstock.connect(place) as peer,
            peer.channel("t.take", b"0", self._endless()) as stream,
        ):
            receiving = asyncio.ensure_future(anext(aiter(stream)))
            yield await self.items
            receiving.cancel()

    async def pulls(self) -> int:
        """Return how many items the bridge has requested of the client, one less than the client has made."""
        await turns(200)
        return max(0, self.pulled - 1)

    async def _take(self, request: Payload, items: penstock.Items) -> AsyncIterator[bytes]:
        self.items.set_result(items)
        await asyncio.get_running_loop().create_future()
        yield b""

    def _endless(self) -> Iterator[bytes]:
        while True:
            self.pulled += 1
            yield b"%d" % self.pulled


@pytest.mark.parametrize("source", PROTOCOLS_WITH_DEMAND)
@pytest.mark.parametrize("target", PROTOCOLS_WITH_DEMAND)
async def test_items_after_a_request_are_requested_as_the_upstream_requests_them(source: str, target: str) -> None:
    uploaded = Uploaded(source, target, Settings(credit=16, close_grace=0))
    async with uploaded.opened() as items:
        assert await uploaded.pulls() == 0
        items.grant(3)
        assert await uploaded.pulls() == 3
        items.grant(2)
        assert await uploaded.pulls() == 5
        received = aiter(items)
        assert [int((await anext(received)).data) for _ in range(5)] == [1, 2, 3, 4, 5]
        assert await uploaded.pulls() == 5
        # If the upstream requests more than a window, it arrives by windows.
        items.grant(1 << 20)
        assert [int((await anext(received)).data) for _ in range(100)] == list(range(6, 106))
