"""A rolling restart of two servers behind a balancer, under load, over all protocols and transports. THREATS 102"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import weirpool
from tests.transports.every import PLACES, Place, make_place
from tests.waiting import until
from weirpool import Payload, Reconnect, Service

CALLERS = 20
STREAMS = 5
ROUNDS = 2
PER_STEP = 100
"""Calls that are answered between two steps of the restart."""
QUICK = Reconnect(first_delay=0.01, longest_delay=0.05)
CASES = [
    *(("rsocket", transport) for transport in PLACES),
    ("reactivesocket-0.2", "tcp"),
    ("reactivesocket-0.0", "tcp"),
    ("reactivesocket-0.0", "ws"),
    ("reactive-streams", "tcp"),
    ("reactive-streams", "ws"),
    ("river", "ws"),
]


class Rolling:
    """Two servers, and what clients of a balancer over them have seen.

    Attributes:
        started: Requests that a handler has started.
        answered: Calls and streams that were answered completely.
        failures: Errors of calls and streams.

    """

    def __init__(self, places: list[Place]) -> None:
        self.places = places
        self.urls = [place.url for place in places]
        self.servers: list[weirpool.Server] = []
        self.started: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.failures: list[str] = []
        self.over = False

    def service(self) -> Service:
        service = Service()

        @service.call("one.call")
        async def answer(request: Payload) -> Payload:
            self.started["call"] += 1
            await asyncio.sleep(0)
            return request

        @service.stream("one.stream")
        async def items(request: Payload) -> AsyncIterator[Payload]:
            self.started["stream"] += 1
            for _ in range(10):
                await asyncio.sleep(0)
                yield request

        return service

    async def start(self, number: int) -> None:
        server = await weirpool.serve(self.service(), self.urls[number], ssl=self.places[0].server)
        self.urls[number] = server.urls[0]
        self.servers[number : number + 1] = [server]

    async def ask(self, balancer: weirpool.Balancer) -> None:
        while not self.over:
            try:
                await balancer.call("one.call", b"0")
                self.answered["call"] += 1
            except weirpool.WeirpoolError as error:
                self.failures.append(f"call: {error!r}")

    async def stream(self, balancer: weirpool.Balancer) -> None:
        while not self.over:
            try:
                assert len([item async for item in balancer.stream("one.stream", b"0")]) == 10
                self.answered["stream"] += 1
            except weirpool.WeirpoolError as error:
                self.failures.append(f"stream: {error!r}")

    async def more(self) -> None:
        """Wait until more calls were answered."""
        wanted = self.answered["call"] + PER_STEP
        await until(lambda: self.answered["call"] >= wanted)

    async def roll(self, balancer: weirpool.Balancer) -> None:
        """Restart each server while the other one serves."""
        for _ in range(ROUNDS):
            for number in range(len(self.servers)):
                await until(lambda: all(node.state == "up" for node in balancer.nodes))
                await self.more()
                await self.servers[number].close()
                await self.more()
                await self.start(number)
        await self.more()
        self.over = True


@pytest.mark.parametrize(("protocol", "transport"), CASES)
@pytest.mark.parametrize("strategy", ["round-robin", "least-loaded"])
async def test_rolling_restart_fails_no_call_and_no_stream(
    protocol: str, transport: str, strategy: str, tmp_path: Path
) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    places = [make_place(transport, protocol, folder) for folder in folders]
    if transport == "memory":
        places = [Place(f"{place.url}{number}", None, None, place.ca) for number, place in enumerate(places)]
    it = Rolling(places)
    for number in range(len(places)):
        await it.start(number)
    urls = [place.for_client(url) for place, url in zip(it.places, it.urls, strict=True)]
    options = {"reconnect": QUICK, "strategy": strategy, "ssl": places[0].client}
    async with weirpool.balance(urls, **options) as balancer:  # type: ignore[arg-type]
        work = [asyncio.ensure_future(it.ask(balancer)) for _ in range(CALLERS)]
        work += [asyncio.ensure_future(it.stream(balancer)) for _ in range(STREAMS)]
        await it.roll(balancer)
        await asyncio.gather(*work)
    for server in it.servers:
        await server.close(0)
    assert it.failures == []
    assert it.started == it.answered
