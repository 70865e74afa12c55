"""Outages shorter than the grace period, and rapid cuts: nothing is lost, and no caller waits for long."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

import weirpool
from tests.sim.clockwork import Network, network, passing, run
from tests.sim.links import Road
from weirpool import ConnectError, Payload, Service, Settings
from weirpool.errors import ApplicationError
from weirpool.journal import Journal
from weirpool.journal.collect import Collector
from weirpool.urls import fitting

PATIENT = Settings(session_grace=60.0, resume=True)
WATCHFUL = replace(PATIENT, heartbeat_interval=0.5, keepalive_interval=0.5, keepalive_lifetime=5.0)
SECONDS = 3.0
"""Seconds after the link's return within which streams continue."""


def items(count: int, pause: float) -> Service:
    service = Service()

    @service.stream("demo.numbers")
    async def numbers(request: Payload) -> AsyncIterator[bytes]:
        for number in range(count):
            yield b"%d" % number
            await asyncio.sleep(pause)

    @service.call("demo.echo")
    def echo(request: Payload) -> bytes:
        return bytes(request.data)

    return service


async def flapping(net: Network, cuts: int, pause: float) -> None:
    """Repeatedly cut all links, each shortly after it was opened."""
    for _ in range(cuts):
        before = net.made
        net.cut()
        await passing(lambda: net.made > before, 0.01)  # noqa: B023
        await asyncio.sleep(pause)


TROUBLES = {
    "outage": lambda net: net.outage(8.0),
    "long outage": lambda net: net.outage(50.0),
    "forty cuts": lambda net: flapping(net, 40, 0.02),
}


@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize("protocol", ["river", "rsocket", "reactivesocket-0.2"])
@pytest.mark.parametrize("late", [0.0, 0.2])
def test_a_session_gets_a_link_soon_after_an_outage(protocol: str, trouble: str, late: float) -> None:
    url = f"{protocol}+memory://outage"

    async def main(net: Network) -> float:
        loop = asyncio.get_running_loop()
        async with (
            weirpool.serve(items(100, 0.1), url, settings=fitting(PATIENT, url, serving=True)),
            weirpool.connect(url, settings=fitting(PATIENT, url), reconnect=False) as peer,
        ):
            async with peer.stream("demo.numbers", b"{}") as opened:
                stream = aiter(opened)
                seen = [await anext(stream) for _ in range(10)]
                await TROUBLES[trouble](net)
                back = loop.time()
                seen.append(await anext(stream))
                waited = loop.time() - back
                seen += [item async for item in stream]
            assert [json.loads(item.data) for item in seen] == list(range(100))
            return waited

    with network(lambda number: (Road(1e6, 0.01), Road(1e6, 0.01))) as net:
        waited = run(main(net), seed=7, late=late)
    assert waited < SECONDS + 20 * late


@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize("protocol", ["river", "rsocket", "reactivesocket-0.2"])
def test_a_collector_records_no_gap_for_a_short_outage(protocol: str, trouble: str, tmp_path: Path) -> None:
    url = f"{protocol}+memory://outage"

    async def main(net: Network) -> tuple[int, float]:
        loop = asyncio.get_running_loop()
        async with weirpool.serve(items(600, 0.1), url, settings=fitting(PATIENT, url, serving=True)):
            collector = Collector(url, "demo.numbers", tmp_path, settings=fitting(PATIENT, url), data=b"{}")
            task = asyncio.create_task(collector.run())
            await passing(lambda: collector.progress.rows >= 20)
            await TROUBLES[trouble](net)
            back, rows = loop.time(), collector.progress.rows
            await passing(lambda: collector.progress.rows > rows)
            waited = loop.time() - back
            await task
            return collector.progress.gaps, waited

    with network(lambda number: (Road(1e6, 0.01), Road(1e6, 0.01))) as net:
        gaps, waited = run(main(net))
    assert gaps == 0 and waited < SECONDS
    reader = Journal(tmp_path).reader("demo.numbers")
    kept = [json.loads(each) for batch in reader.read(reader.first, reader.end) for each in batch["data"].to_pylist()]
    assert kept == list(range(600))


@pytest.mark.parametrize("seed", range(5))
def test_a_call_waits_for_the_last_try_of_the_budget(seed: int) -> None:
    # The attempts are made 0, 0.15, 0.45, 1.05 and 2.25 s after the end, or up to 1 s later; the fifth one succeeds.
    url = "river+memory://deploy"

    async def main() -> Payload:
        async with weirpool.serve(items(1, 0.0), url) as server:
            peer = await weirpool.connect(url)
            await peer.call("demo.echo", b"1")
            await asyncio.sleep(2.0)
            await server.close(0)
        await asyncio.sleep(2.1)
        async with weirpool.serve(items(1, 0.0), url):
            answer = await peer.call("demo.echo", b"2")
            await peer.close()
            return answer

    with network(lambda number: (Road(1e6, 0.01), Road(1e6, 0.01))):
        assert run(main(), seed=seed).data == b"2"


def test_an_ordinary_river_client_stops_at_its_budget() -> None:
    # As in the reference, requests after the last attempt fail immediately, and not after the grace period.
    url = "river+memory://outage"

    async def main(net: Network) -> None:
        loop = asyncio.get_running_loop()
        async with (
            weirpool.serve(items(1, 0.0), url, settings=fitting(PATIENT, url, serving=True)),
            weirpool.connect(url, settings=fitting(PATIENT, url)) as peer,
        ):
            await peer.call("demo.echo", b"1")
            outage = asyncio.create_task(net.outage(20.0))
            await asyncio.sleep(15.0)
            tries, asked = net.tries, loop.time()
            with pytest.raises(ConnectError, match="retry budget is used up"):
                await peer.call("demo.echo", b"2")
            with pytest.raises(ConnectError, match="retry budget is used up"):
                async with peer.stream("demo.numbers", b"{}") as stream:
                    await anext(aiter(stream))
            assert loop.time() == asked
            await outage
            assert net.tries == tries
            peer.reset_budget()
            assert (await peer.call("demo.echo", b"3")).data == b"3"

    with network() as net:
        run(main(net))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("protocol", ["river", "rsocket", "reactivesocket-0.2"])
def test_a_message_that_is_cut_again_and_again_ends_its_session(protocol: str, seed: int) -> None:
    # THREATS 91. Each link breaks within the request.
    url = f"{protocol}+memory://cut"
    large = json.dumps("x" * 200_000).encode()

    async def main() -> BaseException | None:
        async with (
            weirpool.serve(items(1, 0.0), url, settings=fitting(WATCHFUL, url, serving=True)),
            weirpool.connect(url, settings=fitting(WATCHFUL, url), reconnect=False) as peer,
        ):
            with pytest.raises((ApplicationError, weirpool.LinkLost)) as failed:
                await peer.call("demo.echo", large)
            if protocol != "river":
                return failed.value
            assert getattr(failed.value, "code", "") == "UNEXPECTED_DISCONNECT"
            return failed.value.__cause__

    with network(lambda number: (Road(50_000.0, 0.01, cut=100_000 + seed), Road(50_000.0, 0.01))) as net:
        error = run(main(), seed=seed, limit=300.0)
    assert isinstance(error, weirpool.LinkLost)
    assert re.search(r"\b200\d\d\d bytes .*sent (again and again|repeatedly)", str(error))
    # The first link of an RSocket session does not count: the received position is known only after resuming.
    assert net.made == (8 if protocol == "river" else 9)
