from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

import weirpool
from tests.waiting import turns
from weirpool import Items, Payload, Service
from weirpool.bridging.demand import Demand
from weirpool.settings import Settings


class Noted:
    """Items, as far as `Demand` knows them: notes what may be requested."""

    def __init__(self) -> None:
        self.allowed: list[int] = []

    def _allow(self, total: int) -> None:
        self.allowed.append(total)


def test_what_is_accepted_is_counted_from_the_first_item() -> None:
    demand, items = Demand(), Noted()
    demand.told(5)
    demand.begin(items)  # type: ignore[arg-type]
    for left in (4, 3):
        demand.passed += 1
        demand.told(left)
    # The receiver's credit was used, and nothing else has happened.
    assert items.allowed == [5]
    demand.told(10)
    assert items.allowed == [5, 12]


async def test_the_first_demand_is_waited_for() -> None:
    demand = Demand()
    demand.told(0)
    waiting = asyncio.ensure_future(demand.first())
    await turns(10)
    assert not waiting.done()
    demand.told(0)
    demand.told(7)
    demand.told(9)
    assert await waiting == 9


async def test_without_a_word_of_the_receiver_the_window_decides() -> None:
    assert await Demand().first() > 1 << 60


WITH_DEMAND = ("rsocket", "reactivesocket-0.2")


class ByHand(Service):
    """Its channel receives items, as many as are allowed, and sends none."""

    by_demand = True

    def __init__(self) -> None:
        super().__init__()
        self.items: asyncio.Future[Items] = asyncio.get_running_loop().create_future()
        self.channel("t.take")(self._take)

    async def _take(self, request: Payload, items: Items) -> AsyncIterator[bytes]:
        self.items.set_result(items)
        await asyncio.get_running_loop().create_future()
        yield b""


class Uploading:
    """Sends an endless channel through a bridge to an upstream that allows items by hand."""

    def __init__(self, source: str, target: str, settings: Settings) -> None:
        self._place, self._to = f"{source}+memory://demand-bridge", f"{target}+memory://demand-upstream"
        self._settings = settings
        self.pulled = 0

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Items]:
        """Open the channel, and yield the items that the upstream receives."""
        service = ByHand()
        async with (
            weirpool.serve(service, self._to, settings=Settings(close_grace=0)),
            weirpool.bridge(self._to, self._place, settings=self._settings),
            weirpool.connect(self._place) as peer,
            peer.channel("t.take", b"0", self._endless()) as stream,
        ):
            receiving = asyncio.ensure_future(anext(aiter(stream)))
            yield await service.items
            receiving.cancel()

    async def sent(self) -> int:
        """Return how many items the client was asked for: it makes one more than that."""
        await turns(200)
        return max(0, self.pulled - 1)

    def _endless(self) -> Iterator[bytes]:
        while True:
            self.pulled += 1
            yield b"%d" % self.pulled


@pytest.mark.parametrize("source", WITH_DEMAND)
@pytest.mark.parametrize("target", WITH_DEMAND)
@pytest.mark.parametrize("credit", [1, 16])
async def test_items_after_a_request_are_requested_as_the_upstream_requests_them(
    source: str, target: str, credit: int
) -> None:
    uploading = Uploading(source, target, Settings(credit=credit, close_grace=0))
    async with uploading.opened() as items:
        assert await uploading.sent() == 0
        for allowed in (3, 5):
            items._allow(allowed)
            assert await uploading.sent() == allowed
        received = aiter(items)
        assert [int((await anext(received)).data) for _ in range(5)] == [1, 2, 3, 4, 5]
        assert await uploading.sent() == 5
        # More than a window arrives by windows.
        items._allow(1 << 20)
        assert [int((await anext(received)).data) for _ in range(100)] == list(range(6, 106))


@pytest.mark.parametrize("protocol", [*WITH_DEMAND, "river"])
async def test_no_item_is_received_before_it_is_allowed(protocol: str) -> None:
    service = ByHand()
    async with weirpool.serve(service, f"{protocol}+memory://by-hand"):
        async with weirpool.connect(f"{protocol}+memory://by-hand") as peer:
            async with peer.channel("t.take", b"0", [b"1", b"2", b"3"]):
                items = await service.items
                await turns(100)
                assert not items.ready
                items._allow(2)
                received = aiter(items)
                assert [(await anext(received)).data for _ in range(2)] == [b"1", b"2"]
                await turns(100)
                assert not items.ready


async def test_the_window_of_uploads_grows_while_items_are_taken_fast() -> None:
    """Otherwise a bridge would carry no more than the first window in a round trip."""
    service, windows = Service(), [0]

    @service.upload("t.count")
    async def count(request: Payload, items: Items) -> bytes:
        total = 0
        async for _ in items:
            total += 1
            if total % 1_000 == 0:
                [driver] = bridge._drivers.values()
                windows.extend(each.window for each in driver.exchanges.inbound.values())
        return b"%d" % total

    async with (
        weirpool.serve(service, "rsocket+memory://grown"),
        weirpool.bridge("rsocket+memory://grown", "rsocket+memory://growing") as bridge,
        weirpool.connect("rsocket+memory://growing") as peer,
    ):
        answer = await peer.upload("t.count", b"", (b"%d" % number for number in range(50_000)))
    assert answer.data == b"50000"
    assert max(windows) > 4 * Settings().credit
