"""Requests refused for other reasons: streams because calls hold all places, calls because they come too fast."""

from __future__ import annotations

import asyncio

import pytest

import weirpool
from tests.aio.test_queueing import PROTOCOLS, SMALL, Held, gathered, queue_of, service_of
from tests.sim.clockwork import run
from tests.waiting import turns, until
from weirpool import Rejected, Settings

pytestmark = pytest.mark.usefixtures("tidy")


async def consumed(stream: weirpool.Stream) -> list[bytes]:
    return [item.data async for item in stream]


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_stream_that_calls_crowd_out_is_opened_when_one_has_ended(protocol: str) -> None:
    async with service_of(protocol, server=SMALL) as (held, peer):
        held.service.stream("demo.count")(lambda request: iter([b"0", b"1"]))
        calls = [asyncio.ensure_future(peer.call("demo.held", b"%d" % each)) for each in range(8)]
        await until(lambda: held.open == 8)
        streams = [asyncio.ensure_future(consumed(peer.stream("demo.count", b"1"))) for _ in range(3)]
        later = [asyncio.ensure_future(peer.call("demo.held", b"%d" % each)) for each in range(8, 20)]
        await until(lambda: len(queue_of(peer)) == 15)
        assert not any(stream.done() for stream in streams)
        held.released.set()
        assert await asyncio.gather(*streams) == [[b"0", b"1"]] * 3
        await asyncio.gather(*calls, *later)


async def test_stream_is_not_repeated_if_streams_hold_the_places() -> None:
    async with service_of("rsocket", server=Settings(max_streams=1)) as (held, peer):
        held.service.stream("demo.endless")(lambda request: iter(lambda: b"x", b""))
        async with peer.stream("demo.endless", credit=1) as stream:
            await anext(aiter(stream))
            with pytest.raises(Rejected, match="max_streams"):
                await consumed(peer.stream("demo.endless"))


async def test_crowded_out_stream_can_be_canceled() -> None:
    async with service_of("rsocket", server=Settings(max_streams=1)) as (held, peer):
        held.service.stream("demo.count")(lambda request: iter([b"0"]))
        call = asyncio.ensure_future(peer.call("demo.held", b"0"))
        await until(lambda: held.open == 1)
        stream = asyncio.ensure_future(consumed(peer.stream("demo.count")))
        await until(lambda: len(queue_of(peer)) == 1)
        stream.cancel()
        await turns(3)
        assert len(queue_of(peer)) == 0
        held.released.set()
        await call
        assert peer.outstanding == 0


@pytest.mark.parametrize("protocol", [protocol for protocol in PROTOCOLS if protocol != "river"])
def test_calls_keep_to_the_rate_at_which_the_peer_opens_streams(protocol: str) -> None:
    async def main() -> None:
        held = Held()
        held.released.set()
        settings = Settings(max_open_rate=50)
        async with weirpool.serve(held.service, f"{protocol}+memory://rated", settings=settings) as server:
            async with weirpool.connect(server.urls[0]) as peer:
                loop = asyncio.get_running_loop()
                began = loop.time()
                answers = await gathered(peer, "demo.held", 400)
                assert [getattr(each, "data", each) for each in answers] == [b"%d" % each for each in range(400)]
                assert len(held.begun) == 400
                # 100 in the first burst; the rest at about the rate, and calls that come later, too.
                assert loop.time() - began < 300 / 50 + 4
                await gathered(peer, "demo.held", 100)
                assert len(held.begun) == 500

    run(main())
