from __future__ import annotations

import asyncio

import pytest

import penstock
from penstock import Payload, Service
from penstock.aio.peer import Peer
from penstock.aio.streams import Stream
from penstock.bridging.demand import DemandedItems
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
        items = DemandedItems(requested.open, settings)
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
    items = DemandedItems(lambda credit: opened.append(credit), Settings())  # type: ignore[arg-type, func-returns-value]
    items.demanded(0)
    waiting = asyncio.ensure_future(anext(items))
    await turns(10)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert opened == []
    await items.aclose()
