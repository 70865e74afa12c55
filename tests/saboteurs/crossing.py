"""The laboratory of links: calls and streams over slow, cut and stalled links, on a late loop and virtual time.

Whatever happens, everything ends, and what was handled once comes once. Where a link is only slow, everything arrives,
and over the first link.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import weirpool
from tests.sim.clockwork import Network, Stuck, network, run
from tests.sim.links import Road
from tests.sim.test_link_troubles import World
from weirpool import Payload, Service, Settings, WeirpoolError
from weirpool.urls import fitting

__all__ = ["outages", "slow_links", "troubled_links", "worn_links"]

PROTOCOLS = ("river", "rsocket", "reactivesocket-0.2")
WATCHFUL = Settings(
    resume=True,
    session_grace=60.0,
    resume_timeout=60.0,
    keepalive_interval=1.0,
    keepalive_lifetime=2.0,
    close_grace=0.0,
)
"""By which a peer that is silent for two seconds is taken for dead."""
LIMIT = 2_000.0
"""Seconds of virtual time within which everything must have ended."""
KIB = 1024


def troubled_links(folder: Path) -> Iterator[str]:
    """Do everything to links; every call ends, and no handler runs twice for one call (THREATS 58, 91)."""
    for seed in range(16):
        for protocol in PROTOCOLS:
            world = World(protocol, seed)
            world.service.channel("demo.count")(_count)
            yield from (f"{protocol}, seed {seed}: {wrong}" for wrong in _ended(world, seed))


def _ended(world: World, seed: int) -> Iterator[str]:
    with network(world.roads) as net:
        try:
            run(world.main(net), seed=seed, late=world.late, limit=LIMIT)
        except (TimeoutError, Stuck):
            yield "a call never ends"
        except AssertionError as error:
            yield f"what arrives is not what was sent: {error}"
    if not world.forgetful and any(times > 1 for times in world.handled.values()):
        yield f"calls were handled more than once: {world.handled.most_common(3)}"


async def _count(request: Payload, items: Any) -> AsyncIterator[bytes]:
    async for item in items:
        yield item.data


def slow_links(folder: Path) -> Iterator[str]:
    """Move messages that take longer than any watchdog waits; they arrive (THREATS 91)."""
    for protocol in PROTOCOLS:
        for number, sizes in enumerate([(400, 1), (1, 400), (400, 400)]):
            for buffer in (0, 65_536):
                road = Road(100_000.0, 0.05, buffer)
                with network(lambda number: (road, road)) as net:  # noqa: B023
                    try:
                        arrived = run(_transfer(protocol, *sizes), seed=number, limit=300.0)
                    except (TimeoutError, WeirpoolError) as error:
                        yield f"{protocol}, {sizes} KiB: {type(error).__name__} {error}"
                        continue
                    if not arrived or net.made != 1:
                        yield f"{protocol}, {sizes} KiB: {net.made} links were needed"


async def _transfer(protocol: str, request: int, answer: int) -> bool:
    service = Service()
    service.call("demo.large")(lambda payload: _text(answer))
    url = f"{protocol}+memory://slow"
    async with weirpool.serve(service, url, settings=fitting(WATCHFUL, url, serving=True)):
        async with weirpool.connect(url, settings=fitting(WATCHFUL, url)) as peer:
            return bool((await peer.call("demo.large", _text(request))).data == _text(answer))


def _text(kib: int) -> bytes:
    return json.dumps("x" * (kib * KIB)).encode()


def worn_links(folder: Path) -> Iterator[str]:
    """Cut each link in the middle of the same message; the call ends with an error that says why (THREATS 91)."""
    for protocol in PROTOCOLS:
        roads = Road(50_000.0, 0.01, cut=100_000), Road(50_000.0, 0.01)
        with network(lambda number: roads) as net:  # noqa: B023
            try:
                run(_transfer(protocol, 200, 1), limit=600.0)
            except WeirpoolError:
                continue
            except TimeoutError:
                yield f"{protocol}: the same message was sent over {net.made} links"


def outages(folder: Path) -> Iterator[str]:
    """Break links, for a moment and for long; streams and channels go on with the next item, each once."""
    for seed in range(8):
        for protocol in PROTOCOLS:
            rng = random.Random(f"{protocol} {seed}")
            # The first of them may break within the set-up.
            cuts = [rng.randrange(1, 300), *(rng.choice((None, rng.randrange(300, 20_000))) for _ in range(7)), None]
            roads = [Road(10.0 ** rng.uniform(4.5, 6.5), 0.01, cut=cut) for cut in cuts]
            with network(lambda number: (roads[min(number, 8)], Road(1e6, 0.01))) as net:  # noqa: B023
                try:
                    wrong = run(_exchange(protocol, rng, net), seed=seed, late=rng.choice((0.0, 0.1)), limit=500.0)
                except (TimeoutError, Stuck, WeirpoolError) as error:
                    wrong = f"{type(error).__name__} {error}"
            if wrong:
                yield f"{protocol}, seed {seed}: {wrong}"


async def _exchange(protocol: str, rng: random.Random, net: Network) -> str:
    service = Service()

    async def numbers(request: Payload, items: Any = ()) -> AsyncIterator[bytes]:
        for number in range(60):
            yield b"%d" % number
            await asyncio.sleep(0.1)

    service.stream("demo.numbers")(numbers)
    service.channel("demo.echo")(_count)
    url = f"{protocol}+memory://outage"
    sent = [b"%d" % number for number in range(100)]

    async def source() -> AsyncIterator[bytes]:
        for each in sent:
            yield each
            await asyncio.sleep(0.05)

    async with (
        weirpool.serve(service, url, settings=fitting(WATCHFUL, url, serving=True)),
        weirpool.connect(url, settings=fitting(WATCHFUL, url), reconnect=False) as peer,
    ):
        stream = asyncio.create_task(_all(peer.stream("demo.numbers", b"{}", credit=4)))
        channel = asyncio.create_task(_all(peer.channel("demo.echo", b"{}", source())))
        await asyncio.sleep(rng.uniform(1.0, 3.0))
        await net.outage(rng.choice((0.1, 20.0)))
        begun = asyncio.get_running_loop().time()
        got = await stream, await channel
        # Sixty items take six seconds.
        if asyncio.get_running_loop().time() - begun > 30.0:
            return "it went on long after the link was back"
    if got[0] != [b"%d" % number for number in range(60)]:
        return f"the stream brought {got[0]}"
    return "" if got[1] == sent else f"the channel brought {got[1]}"


async def _all(opening: Any) -> list[bytes]:
    async with opening as stream:
        return [item.data async for item in stream]
