from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

import weirpool
from tests.builds import Build
from tests.sim.clockwork import network
from tests.sim.fairness import SCENARIOS, BusyLoop, breaches
from weirpool import Payload, Service, Settings
from weirpool.aio.scheduler import QUANTUM, TURN_SECONDS, scheduler_of

ITEM_SECONDS = 10e-6
ITEM = b"x" * 1_000
BURST_SECONDS = (QUANTUM / (len(ITEM) + 16) + 1) * ITEM_SECONDS


# THREATS 89


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_no_stream_starves_another_nor_a_call(build: Build, scenario: str) -> None:
    assert list(breaches(build, scenario)) == []


@pytest.mark.parametrize("protocol", ["rsocket", "river", "reactive-streams"])
def test_call_to_a_saturated_server_waits_for_a_few_turns(protocol: str) -> None:
    service = Service()

    @service.stream("demo.endless")
    def endless(request: Payload) -> Iterator[bytes]:
        while True:
            loop.work(ITEM_SECONDS)
            yield b'"' + ITEM + b'"'

    @service.call("demo.echo")
    def echo(request: Payload) -> Payload:
        return request

    async def read(url: str) -> None:
        async with weirpool.connect(url) as peer, peer.stream("demo.endless", b"{}") as stream:
            async for _ in stream:
                counts[asyncio.current_task()] = counts.get(asyncio.current_task(), 0) + 1

    async def main() -> float:
        scheduler = scheduler_of(loop)
        scheduler.clock = loop.time
        url = f"{protocol}+memory://busy"
        longest = 0.0
        async with weirpool.serve(service, url), weirpool.connect(url) as peer:
            await peer.call("demo.echo", b"{}")
            readers = [asyncio.create_task(read(url)) for _ in range(20)]
            for _ in range(40):
                await asyncio.sleep(0.01)
                begun = loop.time()
                await peer.call("demo.echo", b"{}")
                longest = max(longest, loop.time() - begun)
            for reader in readers:
                reader.cancel()
            await asyncio.gather(*readers, return_exceptions=True)
        return longest

    counts: dict[object, int] = {}
    loop = BusyLoop()
    with network(), asyncio.Runner(loop_factory=lambda: loop) as runner:
        longest = runner.run(main())
    # Request and response each wait for one turn at most, and so does each task that makes or receives them.
    assert longest < 5 * (TURN_SECONDS + BURST_SECONDS)
    assert len(counts) == 20 and min(counts.values()) > max(counts.values()) / 2


@pytest.mark.parametrize("protocol", ["rsocket", "river", "reactive-streams"])
def test_streams_of_one_connection_have_equal_shares(protocol: str) -> None:
    service = Service()

    @service.stream("demo.endless")
    def endless(request: Payload) -> Iterator[bytes]:
        while True:
            loop.work(ITEM_SECONDS)
            yield b'"' + ITEM + b'"'

    async def read(peer: weirpool.Peer, number: int) -> None:
        async with peer.stream("demo.endless", b"{}") as stream:
            async for _ in stream:
                counts[number] += 1

    async def main() -> None:
        scheduler_of(loop).clock = loop.time
        url = f"{protocol}+memory://shared"
        async with weirpool.serve(service, url, settings=settings), weirpool.connect(url, settings=settings) as peer:
            readers = [asyncio.create_task(read(peer, number)) for number in range(len(counts))]
            await asyncio.sleep(0.15)
            for reader in readers:
                reader.cancel()
            await asyncio.gather(*readers, return_exceptions=True)

    # All streams of a River session share what may be unacknowledged.
    settings = Settings(max_unacked=200) if protocol == "river" else Settings()
    counts = [0] * 20
    loop = BusyLoop()
    with network(), asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(main())
    assert min(counts) > max(counts) / 4
