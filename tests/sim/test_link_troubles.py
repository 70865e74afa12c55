"""On any link, every call ends, and every item arrives at most once (THREATS 58, 91).

One seed determines the size of messages, rate, delay, buffers, cuts at any byte, stalls, timeouts, restarts of either
side, and delays of the loop at any await. ``pytest -k "river and 17"`` repeats one.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import weirpool
from tests.sim.clockwork import Network, network, run
from tests.sim.links import Road
from weirpool import Payload, Service, Settings, WeirpoolError
from weirpool.urls import fitting

SEEDS = 30
LIMIT = 20_000.0
"""Seconds of the simulation within which everything must have ended."""
ITEMS = 40


class World:
    """A server, its requests, and the items of its clients."""

    def __init__(self, protocol: str, seed: int) -> None:
        self.rng = rng = random.Random(seed)
        self.url = f"{protocol}+memory://troubles"
        self.rate = 10.0 ** rng.uniform(4.3, 7.0)
        self.delay = rng.choice((0.0, 0.01, 0.3))
        self.buffer = rng.choice((0, 0, 65_536))
        self.sizes = [int(10.0 ** rng.uniform(1.0, 5.7)) for _ in range(4)]
        self.trouble = rng.choice((0.0, 0.5, 0.9))
        self.restarts = rng.choice((0, 0, 1, 2))
        self.late = rng.choice((0.0, 0.02, 0.3))
        self.settings = Settings(
            resume=True,
            resume_timeout=60.0,
            session_grace=rng.choice((5.0, 60.0)),
            keepalive_interval=1.0,
            keepalive_lifetime=rng.choice((2.0, 10.0)),
            heartbeats_until_dead=rng.choice((1, 2, 10)),
            handshake_timeout=rng.choice((1.0, 5.0)),
            close_grace=0.0,
        )
        self.handled: Counter[str] = Counter()
        # Sessions that the client began, and those that the server knew.
        self.begun = 0
        self.known = 0
        self.service = Service()
        self.service.call("demo.large")(self.large)
        self.service.stream("demo.numbers")(self.numbers)

    def roads(self, number: int) -> tuple[Road, Road]:
        """Return the properties of the next link."""
        return self._road(), self._road()

    def _road(self) -> Road:
        rng = self.rng
        troubled = rng.random() < self.trouble
        at = int(10.0 ** rng.uniform(0.0, 6.0))
        stalls = rng.random() < 0.3
        cut, stall = (None, at) if stalls else (at, None)
        return Road(self.rate, self.delay, self.buffer, cut if troubled else None, stall if troubled else None)

    def large(self, request: Payload) -> bytes:
        asked = json.loads(request.data)
        self.handled[asked["id"]] += 1
        return json.dumps(asked["id"] + "y" * asked["size"]).encode()

    async def numbers(self, request: Payload) -> AsyncIterator[bytes]:
        for number in range(ITEMS):
            yield b"%d" % number
            if number % 8 == 0:
                await asyncio.sleep(0.05)

    async def main(self, net: Network) -> None:
        server = await self._serve()
        client = asyncio.create_task(self._client())
        for _ in range(self.restarts):
            await asyncio.sleep(self.rng.uniform(0.0, 10.0))
            await server.close(0)
            server = await self._serve()
        await client
        net.cut()
        await server.close(0)

    @property
    def forgetful(self) -> bool:
        """Whether the server may have lost a session that its client resumed.

        River: a session from which the client has received nothing may begin again unnoticed.
        """
        return self.restarts > 0 or self.known > self.begun

    def _serve(self) -> weirpool.Server:
        @asynccontextmanager
        async def count(connection: weirpool.Connection) -> AsyncIterator[None]:
            self.known += 1
            yield

        return weirpool.serve(
            self.service, self.url, settings=fitting(self.settings, self.url, serving=True), on_connection=count
        )

    async def _client(self) -> None:
        """Send all requests, also over a second connection, like a restarted client."""
        for life in range(2):
            self.begun += 1
            try:
                async with weirpool.connect(
                    self.url, settings=fitting(self.settings, self.url), reconnect=False
                ) as peer:
                    calls = [self._call(peer, f"{life}-{at}", size) for at, size in enumerate(self.sizes)]
                    await asyncio.gather(*calls, self._stream(peer))
            except (weirpool.ConnectError, weirpool.SessionError):
                # The server was not listening during its restart.
                continue

    async def _call(self, peer: Any, name: str, size: int) -> None:
        asked = {"id": name, "size": self.sizes[-1], "ballast": "x" * size}
        try:
            answer = await peer.call("demo.large", json.dumps(asked).encode())
        except WeirpoolError:
            return
        assert json.loads(answer.data) == name + "y" * self.sizes[-1]
        assert self.handled[name] >= 1

    async def _stream(self, peer: Any) -> None:
        seen: list[int] = []
        try:
            async with peer.stream("demo.numbers", b"{}") as stream:
                async for item in stream:
                    seen.append(json.loads(item.data))  # noqa: PERF401  # What came before an error counts.
        except WeirpoolError:
            assert seen == list(range(len(seen)))
        else:
            assert seen == list(range(ITEMS))


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("protocol", ["river", "rsocket", "reactivesocket-0.2", "reactive-streams"])
def test_every_call_ends_and_nothing_comes_twice(protocol: str, seed: int) -> None:
    # THREATS 58, 91
    world = World(protocol, seed)
    if protocol == "reactive-streams":
        # A stalled link is detected by an idle timeout, which is off by default.
        world.settings = Settings(idle_timeout=10.0, close_grace=0.0)
    with network(world.roads) as net:
        run(world.main(net), seed=seed, late=world.late, limit=LIMIT)
    if not world.forgetful:
        assert all(times == 1 for times in world.handled.values())
