"""Messages above `max_frame_bytes` over every transport, in both directions, and peers that reject them. THREATS 92."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect as their_connect
from websockets.asyncio.server import ServerConnection
from websockets.asyncio.server import serve as their_serve
from websockets.exceptions import ConnectionClosed

import weirpool
from tests.sim.test_river_live import TRANSPORTS, url_of
from weirpool import Invalid, Items, LimitExceeded, Payload, Rejected, Service, Settings

LIMIT = 50_000
SMALL = Settings(max_frame_bytes=LIMIT, fragment_bytes=1_000)
LARGE = b'"' + b"x" * 3_000_000 + b'"'


def make_service() -> Service:
    service = Service()

    @service.call("demo.size")
    def size(request: Payload) -> bytes:
        return b"%d" % len(request.data)

    @service.call("demo.large")
    def large(request: Payload) -> bytes:
        return LARGE

    @service.call("demo.echo")
    def echo(request: Payload) -> bytes:
        return request.data

    @service.call("demo.slow")
    async def slow(request: Payload) -> bytes:
        await asyncio.sleep(0.05)
        return b"1"

    @service.call("demo.never")
    async def never(request: Payload) -> bytes:
        await asyncio.get_running_loop().create_future()
        return b""

    @service.stream("demo.items")
    async def items(request: Payload) -> AsyncIterator[bytes]:
        yield b"1"
        yield LARGE
        yield b"3"

    @service.upload("demo.upload")
    async def upload(request: Payload, items: Items) -> bytes:
        return b"%d" % len([item async for item in items])

    return service


@pytest.mark.parametrize("codec", ["json", "msgpack"])
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_server_refuses_what_is_too_long(transport: str, codec: str, tmp_path: Path) -> None:
    url = f"{url_of(transport, tmp_path)}?codec={codec}"
    large = LARGE if codec == "json" else b"\xdb" + (3_000_000).to_bytes(4, "big") + b"x" * 3_000_000
    one = b"1" if codec == "json" else b"\x01"

    async def many() -> AsyncIterator[bytes]:
        yield one
        yield large

    service = make_service() if codec == "json" else packed_service()
    async with weirpool.serve(service, url, settings=SMALL) as server, weirpool.connect(server.urls[0]) as peer:
        slow = asyncio.create_task(peer.call("demo.slow", one))
        with pytest.raises(Invalid, match=r"a message of 3000\d+ bytes exceeds the server's max_frame_bytes \(50000\)"):
            await peer.call("demo.size", large)
        with pytest.raises(Invalid, match="max_frame_bytes"):
            await peer.upload("demo.upload", one, many())
        assert (await slow).data == one
        assert (await peer.call("demo.size", one)).data == one
        assert server.connections == 1


def packed_service() -> Service:
    service = Service()

    @service.call("demo.size")
    def size(request: Payload) -> bytes:
        return b"%c" % len(request.data)

    @service.call("demo.slow")
    async def slow(request: Payload) -> bytes:
        await asyncio.sleep(0.05)
        return b"\x01"

    @service.upload("demo.upload")
    async def upload(request: Payload, items: Items) -> bytes:
        return b"%c" % len([item async for item in items])

    return service


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_client_refuses_what_is_too_long(transport: str, tmp_path: Path) -> None:
    async with weirpool.serve(make_service(), url_of(transport, tmp_path)) as server:
        async with weirpool.connect(server.urls[0], settings=SMALL) as peer:
            slow = asyncio.create_task(peer.call("demo.slow", b"1"))
            why = r"a message of 3000\d+ bytes exceeds the client's max_frame_bytes \(50000\)"
            with pytest.raises(LimitExceeded, match=why):
                await peer.call("demo.large", b"1")
            got = []
            with pytest.raises(LimitExceeded, match=why):
                async with peer.stream("demo.items", b"1") as items:
                    async for item in items:
                        got += [item.data]
            assert got == [b"1"]
            assert (await slow).data == b"1"
            assert (await peer.call("demo.size", b"1")).data == b"1"


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_an_answer_above_the_servers_own_limit_says_so(
    transport: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with weirpool.serve(make_service(), url_of(transport, tmp_path), settings=SMALL) as server:
        async with weirpool.connect(server.urls[0]) as peer:
            with pytest.raises(weirpool.ApplicationError, match="exceeds the server's max_frame_bytes") as failed:
                await peer.call("demo.large", b"1")
            assert failed.value.code == "UNCAUGHT_ERROR"
            assert (await peer.call("demo.size", b"1")).data == b"1"
    [record] = [record for record in caplog.records if "failed" in record.message]
    assert record.exc_info is None


@asynccontextmanager
async def refusing(url: str, to_server: int | None, to_client: int | None) -> AsyncIterator[str]:
    """A third-party WebSocket proxy before a server, which closes with 1009 after a message that is too large."""
    target = url.removeprefix("river+")

    async def relay(client: ServerConnection) -> None:
        async with their_connect(target, max_size=to_client) as server:

            async def copy(one: Any, other: Any) -> None:
                try:
                    async for message in one:
                        await other.send(message)
                except ConnectionClosed:
                    pass
                finally:
                    await other.close(one.close_code if one.close_code in (1000, 1009) else 1000)

            async with asyncio.TaskGroup() as group:
                group.create_task(copy(client, server))
                group.create_task(copy(server, client))

    async with their_serve(relay, "127.0.0.1", 0, max_size=to_server, compression=None) as proxy:
        port = next(iter(proxy.sockets)).getsockname()[1]
        yield f"river+ws://127.0.0.1:{port}/river"


async def test_a_server_that_closes_with_1009_fails_the_call_and_no_other(tmp_path: Path) -> None:
    async with weirpool.serve(make_service(), url_of("ws", tmp_path)) as server:
        async with refusing(server.urls[0], LIMIT, None) as url, weirpool.connect(url) as peer:
            assert (await peer.call("demo.size", b"1")).data == b"1"
            never = asyncio.create_task(peer.call("demo.never", b"1"))
            slow = asyncio.create_task(peer.call("demo.slow", b"1"))
            # More often than the client retries.
            for size in (90_000, 80_000, 70_000, 60_000, 55_000, 52_000, 51_500):
                with pytest.raises(Invalid, match=rf"rejected a message of {size // 1_000}\d\d\d bytes as too large"):
                    await peer.call("demo.size", b'"' + b"x" * size + b'"')
                assert (await peer.call("demo.size", b"1")).data == b"1"
            with pytest.raises(weirpool.LocalError, match="is not sent"):
                await peer.call("demo.size", LARGE)
            assert (await slow).data == b"1" and not never.done()
            assert server.connections == 1
            never.cancel()


async def test_streams_beyond_the_limit_are_refused_for_now_and_calls_wait(tmp_path: Path) -> None:
    async with weirpool.serve(make_service(), url_of("tcp", tmp_path), settings=Settings(max_streams=2)) as server:
        async with weirpool.connect(server.urls[0]) as peer:
            open_ones = [asyncio.create_task(peer.call("demo.slow", b"1")) for _ in range(2)]
            await asyncio.sleep(0)
            with pytest.raises(Rejected, match="max_streams") as refused:
                # Its items may have been read, so it is not sent again.
                await peer.upload("demo.size", b"1", iter([]))
            assert refused.value.code == "INVALID_REQUEST"
            assert json.loads(refused.value.data)["retriable"] is True
            assert (await peer.call("demo.size", b"1")).data == b"1"
            for each in open_ones:
                await each


async def test_what_cannot_be_sent_back_is_one_line_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # THREATS 93
    async with weirpool.serve(make_service(), url_of("tcp", tmp_path)) as server:
        async with weirpool.connect(server.urls[0]) as peer:
            for wrong in (b'{"$t":"!!!"}', b'"\\ud800"', b"[" * 126 + b"]" * 126):
                with pytest.raises(weirpool.LocalError, match="the data is not valid json for River"):
                    await peer.call("demo.echo", wrong)
            deepest = b"[" * 125 + b"]" * 125
            assert (await peer.call("demo.echo", deepest)).data == deepest
    assert caplog.records == []
