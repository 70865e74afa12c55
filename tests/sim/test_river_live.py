"""River by `serve` and `connect`, over every transport that carries it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import weirpool
from tests.aio.serving import noted_drivers
from tests.river.serving import make_service
from tests.waiting import until
from weirpool import ApplicationError, LocalError, Payload, Settings, UnsupportedKind

TRANSPORTS = ("memory", "tcp", "unix", "ws")


def url_of(transport: str, folder: Path) -> str:
    place = {"unix": str(folder / "s"), "memory": f"river-{folder.name}"}.get(transport, "127.0.0.1:0/river")
    return f"river+{transport}://{place}".replace(":0/river", ":0" if transport == "tcp" else ":0/river")


@asynccontextmanager
async def world(url: str, seen: list[object] | None = None, **options: Any) -> AsyncIterator[tuple[Any, Any]]:
    async with weirpool.serve(make_service([] if seen is None else seen), url) as server:
        with noted_drivers() as drivers:
            async with weirpool.connect(server.urls[0], **options) as peer:
                # Tests break links through the client's driver.
                vars(server)["noted"] = drivers
                yield server, peer


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_every_kind(transport: str, tmp_path: Path) -> None:
    async with world(url_of(transport, tmp_path), confirm=True) as (_, peer):
        assert (await peer.call("demo.add", b'{"a": 1, "b": 2}')).data == b'{"sum":3}'
        async with peer.stream("demo.count", b'{"upto": 1000}') as items:
            assert [item.data async for item in items] == [b'{"i":%d}' % i for i in range(1000)]
        assert (await peer.upload("demo.sum", b'{"start":10}', [b'{"n":1}', b'{"n":2}'])).data == b'{"total":13}'
        sent = [b'{"msg":"a"}', b'{"msg":"b"}']
        async with peer.channel("demo.echo", b'{"prefix":">"}', sent) as items:
            assert [item.data async for item in items] == [b'{"response":">a"}', b'{"response":">b"}']
        with pytest.raises(ApplicationError) as failed:
            await peer.call("demo.add", b'{"a":-1,"b":2}')
        assert (failed.value.code, failed.value.message, failed.value.data) == (
            "NEGATIVE",
            "a is negative",
            b'{"a":-1}',
        )
        with pytest.raises(ApplicationError) as failed:
            await peer.call("demo.boom")
        assert failed.value.code == "UNCAUGHT_ERROR" and "secret" not in failed.value.message
        with pytest.raises(weirpool.Rejected, match=r"demo\.nope"):
            await peer.call("demo.nope")
        assert peer.outstanding == 0


@pytest.mark.parametrize("transport", ["tcp", "ws"])
async def test_a_link_that_breaks_is_not_noticed(transport: str, tmp_path: Path) -> None:
    async with world(url_of(transport, tmp_path) + "?codec=json") as (server, peer):
        driver = server.noted[-1]

        async def break_link() -> None:
            # What was received before may be read while there is no link.
            await until(lambda: driver.link is not None)
            driver.link.abort()

        answers = []
        async with peer.stream("demo.count", b'{"upto":3000}') as items:
            async for item in items:
                answers.append(item.data)
                if len(answers) % 1_000 == 500:
                    await break_link()
        assert answers == [b'{"i":%d}' % i for i in range(3_000)]
        await break_link()
        assert (await peer.call("demo.add", b'{"a":1,"b":2}')).data == b'{"sum":3}'
        assert server.noted[-1] is driver


async def test_a_message_out_of_order_closes_the_link_and_not_the_session(tmp_path: Path) -> None:
    async with world(url_of("ws", tmp_path), confirm=True) as (server, peer):
        driver = server.noted[-1]
        first = driver.link
        driver.session.sequence.seq += 1
        call = asyncio.ensure_future(peer.call("demo.add", b'{"a":1,"b":2}'))
        await until(lambda: driver.link is not first)
        driver.session.sequence.seq -= 1
        call.cancel()


async def test_msgpack_and_names_in_the_url(tmp_path: Path) -> None:
    service = weirpool.Service()

    @service.call("demo.echo")
    def echo(request: Payload) -> Payload:
        return request

    url = url_of("tcp", tmp_path) + "?codec=msgpack&server=backend"
    async with weirpool.serve(service, url) as server:
        async with weirpool.connect(server.urls[0] + "&client=web-1") as peer:
            assert (await peer.call("demo.echo", b"\x93\x01\x02\x03")).data == b"\x93\x01\x02\x03"
            with pytest.raises(LocalError, match="msgpack"):
                await peer.call("demo.echo", b"\xc1")
            with pytest.raises(UnsupportedKind):
                await peer.fire("demo.echo", b"\x01")
        with pytest.raises(weirpool.SetupRejected, match="MALFORMED_HANDSHAKE"):
            await weirpool.connect(server.urls[0].replace("backend", "other"), confirm=True)


async def test_the_acceptor_sees_the_metadata(tmp_path: Path) -> None:
    async def accept(setup: weirpool.Setup) -> None:
        await asyncio.sleep(0)
        if setup.payload.data != b'{"token":"good"}':
            raise weirpool.SetupRejected("who are you?", "MALFORMED_HANDSHAKE_META")

    async with weirpool.serve(make_service([]), url_of("tcp", tmp_path), acceptor=accept) as server:
        async with weirpool.connect(server.urls[0], setup=b'{"token": "good"}') as peer:
            assert (await peer.call("demo.add", b'{"a":1,"b":2}')).data == b'{"sum":3}'
        for setup in (b"", b'{"token": 5}'):
            with pytest.raises(weirpool.SetupRejected, match="who are you") as refused:
                await weirpool.connect(server.urls[0], setup=setup, confirm=True)
            assert refused.value.code == "MALFORMED_HANDSHAKE_META"


async def test_a_canceled_call_cancels_its_handler(tmp_path: Path) -> None:
    seen: list[object] = []
    async with world(url_of("tcp", tmp_path), seen) as (_, peer):
        call = asyncio.ensure_future(peer.call("demo.never"))
        await until(lambda: peer.outstanding == 1)
        await peer.call("demo.nothing")
        call.cancel()
        await until(lambda: seen == [b"{}", "never ended"])


async def test_a_stuck_consumer_stops_nobody_else(tmp_path: Path) -> None:
    async with world(url_of("tcp", tmp_path), settings=Settings(max_held_bytes=10_000)) as (_, peer):
        async with peer.stream("demo.count", b'{"upto":100}', credit=1) as stuck:
            await peer.call("demo.nothing")
            assert (await peer.call("demo.add", b'{"a":1,"b":2}')).data == b'{"sum":3}'
            assert len([item async for item in stuck]) == 100


async def test_a_server_that_restarts_is_connected_to_anew(tmp_path: Path) -> None:
    url = url_of("unix", tmp_path)
    server = await weirpool.serve(make_service([]), url)
    async with weirpool.connect(url, reconnect=weirpool.Reconnect(first_delay=0.01)) as peer:
        assert (await peer.call("demo.add", b'{"a":1,"b":2}')).data == b'{"sum":3}'
        call = asyncio.ensure_future(peer.call("demo.never"))
        await until(lambda: peer.outstanding == 1)
        # The response acknowledges it, so the server's session has proceeded.
        await peer.call("demo.nothing")
        await server.close(0)
        server = await weirpool.serve(make_service([]), url)
        with pytest.raises(ApplicationError) as failed:
            await call
        assert failed.value.code == "UNEXPECTED_DISCONNECT"
        assert (await peer.call("demo.add", b'{"a":1,"b":3}')).data == b'{"sum":4}'
    await server.close()


@pytest.mark.parametrize("codec", ["json", "msgpack"])
async def test_the_command_line(codec: str, tmp_path: Path) -> None:
    service = weirpool.Service()

    @service.call("demo.echo")
    def echo(request: Payload) -> Payload:
        return request

    @service.stream("demo.twice")
    def twice(request: Payload) -> list[Payload]:
        return [request, request]

    @service.channel("demo.back")
    async def back(request: Payload, items: weirpool.Items) -> AsyncIterator[Payload]:
        async for item in items:
            yield item

    @service.upload("demo.last")
    async def last(request: Payload, items: weirpool.Items) -> Payload:
        async for item in items:
            request = item
        return request

    async with weirpool.serve(service, f"river+unix://{tmp_path}/s?codec={codec}") as server:
        for arguments, expected in (
            (("call", "demo.echo", "-d", '{"n": 3}'), '{"n":3}\n'),
            (("stream", "demo.twice", "-d", '{"n": 3}'), '{"n":3}\n' * 2),
            (("channel", "demo.back", "1"), "1\n"),
            (("upload", "demo.last", "[1]"), "[1]\n"),
        ):
            verb, *rest = arguments
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "weirpool", verb, server.urls[0], *rest, stdout=asyncio.subprocess.PIPE
            )
            out, _ = await process.communicate()
            assert (process.returncode, out.decode()) == (0, expected)


async def test_early_failure_of_a_source_precedes_the_response(tmp_path: Path) -> None:
    async def source() -> AsyncIterator[bytes]:
        await asyncio.sleep(0)
        yield b"1"
        raise ValueError("the source failed")

    async with world(url_of("memory", tmp_path), confirm=True) as (_, peer):
        with pytest.raises(ValueError, match="the source failed"):
            await peer.upload("demo.nothing", b"0", source())
