"""Plain handlers that compute for long: everybody else waits for one of them, not for all that were called."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from statistics import median

import pytest

import weirpool
from tests.sim.clockwork import network
from tests.sim.fairness import BusyLoop
from tests.sim.links import Road
from weirpool import Payload, Service, Settings
from weirpool.aio.scheduler import scheduler_of

HANDLER_SECONDS = 0.05
CALLS = 60
WATCHFUL = {
    "rsocket": Settings(keepalive_interval=0.3, keepalive_lifetime=1.0),
    "reactive-streams": Settings(idle_timeout=1.0),
    "river": Settings(heartbeat_interval=0.5, heartbeats_until_dead=2),
}
"""All calls together take three times as long as a peer may be silent."""


# THREATS 89


@pytest.mark.parametrize("protocol", ["rsocket", "river", "reactive-streams"])
def test_others_wait_for_one_slow_handler(protocol: str) -> None:
    service = Service()

    @service.call("demo.compute")
    def compute(request: Payload) -> Payload:
        loop.work(HANDLER_SECONDS)
        return request

    @service.call("demo.echo")
    def echo(request: Payload) -> Payload:
        return request

    @service.stream("demo.count")
    async def count(request: Payload) -> AsyncIterator[Payload]:
        while True:
            await asyncio.sleep(0.01)
            yield request

    def road(number: int) -> tuple[Road, Road]:
        links.add(number)
        return Road(), Road()

    async def read(peer: weirpool.Peer) -> None:
        last = loop.time()
        async with peer.stream("demo.count", b"{}") as stream:
            async for _ in stream:
                gaps.append(loop.time() - last)
                last = loop.time()

    async def main() -> None:
        scheduler = scheduler_of(loop)
        scheduler.clock = loop.time
        url, settings = f"{protocol}+memory://slow", WATCHFUL[protocol]
        async with (
            weirpool.serve(service, url, settings=settings),
            weirpool.connect(url, settings=settings) as greedy,
            weirpool.connect(url, settings=settings) as peer,
        ):
            await asyncio.gather(greedy.call("demo.echo", b"{}"), peer.call("demo.echo", b"{}"))
            reader = asyncio.create_task(read(peer))
            slow = asyncio.gather(*(greedy.call("demo.compute", b"%d" % number) for number in range(CALLS)))
            while not slow.done():
                begun = loop.time()
                await peer.call("demo.echo", b"{}")
                waits.append(loop.time() - begun)
                await asyncio.sleep(0.01)
            assert [response.data for response in await slow] == [b"%d" % number for number in range(CALLS)]
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)

    gaps: list[float] = []
    waits: list[float] = []
    links: set[int] = set()
    loop = BusyLoop()
    with network(road), asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(main())
    # Request, response and the task that waits for it may each wait for one handler, but most do not. So may the timer,
    # the task, the turn and the link of an item, and the request before the first one.
    assert len(waits) > CALLS / 5 and max(waits) < 3.5 * HANDLER_SECONDS
    assert len(gaps) > CALLS / 5 and max(gaps) < 5.5 * HANDLER_SECONDS
    assert median(waits) < 2.5 * HANDLER_SECONDS and median(gaps) < 3.5 * HANDLER_SECONDS
    # Nobody was taken for dead.
    assert links == {0, 1}
