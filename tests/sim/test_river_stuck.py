"""River over real sockets with one side that reads nothing: which streams wait, and how much is held."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import weirpool
from tests.aio.serving import noted_drivers
from tests.river.serving import make_service
from tests.waiting import turns, until
from weirpool import Items, Payload, Settings

LITTLE = Settings(max_held_bytes=20_000)
READ = 256 * 1024
"""The maximum size of one read."""


def url_of(transport: str, folder: Path) -> str:
    return f"river+unix://{folder}/s" if transport == "unix" else f"river+{transport}://127.0.0.1:0"


def with_stuck_handlers(reached: asyncio.Event, go: asyncio.Event) -> weirpool.Service:
    service = make_service([])

    @service.upload("demo.stuck")
    async def stuck(request: Payload, items: Items) -> bytes:
        reached.set()
        await go.wait()
        return b"%d" % len([item async for item in items])

    return service


async def others_work(peer: weirpool.Peer) -> None:
    for _ in range(3):
        assert (await peer.call("demo.add", b'{"a":1,"b":2}')).data == b'{"sum":3}'
        async with peer.stream("demo.count", b'{"upto":100}') as items:
            assert len([item async for item in items]) == 100
        assert (await peer.upload("demo.sum", b'{"start":0}', [b'{"n":1}'] * 10)).data == b'{"total":10}'
        async with peer.channel("demo.echo", b'{"prefix":""}', [b'{"msg":"a"}']) as items:
            assert [item.data async for item in items] == [b'{"response":"a"}']


@pytest.mark.parametrize("transport", ["tcp", "unix", "ws"])
async def test_a_stuck_handler_and_a_stuck_consumer_stop_no_other_stream(transport: str, tmp_path: Path) -> None:
    reached, go = asyncio.Event(), asyncio.Event()
    async with (
        weirpool.serve(with_stuck_handlers(reached, go), url_of(transport, tmp_path)) as server,
        weirpool.connect(server.urls[0]) as peer,
    ):
        upload = asyncio.ensure_future(peer.upload("demo.stuck", b"{}", [b"1"] * 4_000))
        async with peer.stream("demo.count", b'{"upto":4000}', credit=1) as stuck:
            await reached.wait()
            await others_work(peer)
            go.set()
            assert (await upload).data == b"4000"
            assert len([item async for item in stuck]) == 4_000


@pytest.mark.parametrize("transport", ["tcp", "ws"])
async def test_a_consumer_that_takes_nothing_for_long_holds_little_and_loses_nothing(
    transport: str, tmp_path: Path
) -> None:
    async with weirpool.serve(make_service([]), url_of(transport, tmp_path)) as server:
        with noted_drivers() as drivers:
            async with weirpool.connect(server.urls[0], settings=LITTLE) as peer:
                async with peer.stream("demo.count", b'{"upto":20000}', credit=1) as stuck:
                    [driver] = drivers
                    await until(lambda: driver.session.full)
                    await turns(200)
                    assert driver.session._inbound.held_bytes < LITTLE.max_held_bytes + READ
                    assert [item.data async for item in stuck] == [b'{"i":%d}' % at for at in range(20_000)]
                await others_work(peer)


async def test_a_handler_that_takes_nothing_for_long_stops_its_own_session_alone(tmp_path: Path) -> None:
    reached, go = asyncio.Event(), asyncio.Event()
    service = with_stuck_handlers(reached, go)
    async with weirpool.serve(service, url_of("tcp", tmp_path), settings=LITTLE) as server:
        async with weirpool.connect(server.urls[0], settings=LITTLE) as peer:
            upload = asyncio.ensure_future(peer.upload("demo.stuck", b"{}", [b"1"] * 20_000))
            await reached.wait()
            theirs: Any
            [theirs] = server._drivers
            await until(lambda: theirs.full)
            waiting = asyncio.ensure_future(peer.call("demo.add", b'{"a":1,"b":2}'))
            async with weirpool.connect(server.urls[0], settings=LITTLE) as another:
                await others_work(another)
            await turns(50)
            assert not waiting.done() and theirs._inbound.held_bytes < LITTLE.max_held_bytes + READ
            go.set()
            assert (await upload).data == b"20000"
            assert (await waiting).data == b'{"sum":3}'
