"""Links that are dead without notice: the timeouts of both sides, over real sockets.

River, Detecting phantom disconnects.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import weirpool
from tests.waiting import until
from weirpool import Payload, Service, Settings

FAST = Settings(heartbeat_interval=0.05, heartbeats_until_dead=2, session_grace=30.0)


class Proxy:
    """A proxy that can drop the bytes of its current links.

    Attributes:
        links: The number of links so far.
        swallows: The directions whose bytes are dropped.

    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.links = 0
        self.swallows: set[tuple[int, str]] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: list[asyncio.StreamWriter] = []

    def swallow(self, *directions: str) -> None:
        """Drop the bytes of the newest link in these directions."""
        self.swallows |= {(self.links, direction) for direction in directions}

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.links += 1
        link = self.links
        there, back = await asyncio.open_connection("127.0.0.1", self.port)
        self._writers += [writer, back]
        pairs = ((reader, back, "c>s"), (there, writer, "s>c"))
        self._tasks |= {asyncio.create_task(self._pipe(link, *pair)) for pair in pairs}

    async def _pipe(self, link: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, where: str) -> None:
        try:
            while data := await reader.read(65_536):
                if (link, where) not in self.swallows:
                    writer.write(data)
        except ConnectionError:
            pass
        # A phantom does not report its end, either.
        if (link, where) not in self.swallows:
            writer.close()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        for writer in self._writers:
            writer.close()
        closed = [writer.wait_closed() for writer in self._writers]
        await asyncio.gather(*self._tasks, *closed, return_exceptions=True)


@asynccontextmanager
async def through(service: Service, client: Settings, server: Settings) -> AsyncIterator[tuple[Any, Any, Proxy]]:
    async with weirpool.serve(service, "river+tcp://127.0.0.1:0", settings=server) as serving:
        proxy = Proxy(int(serving.urls[0].rpartition(":")[2]))
        listening = await asyncio.start_server(proxy.accept, "127.0.0.1", 0)
        async with listening:
            url = f"river+tcp://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
            try:
                async with weirpool.connect(url, settings=client, confirm=True) as peer:
                    yield serving, peer, proxy
            finally:
                await proxy.close()


@pytest.mark.parametrize("directions", [("c>s",), ("s>c",), ("c>s", "s>c")])
async def test_a_phantom_is_found_and_nothing_is_lost(directions: tuple[str, ...]) -> None:
    seen: list[int] = []
    service = Service()

    @service.call("demo.note")
    def note(request: Payload) -> Payload:
        seen.append(json.loads(request.data))
        return request

    @service.channel("demo.echo")
    async def echo(request: Payload, items: weirpool.Items) -> AsyncIterator[Payload]:
        async for item in items:
            yield item

    async def outgoing() -> AsyncIterator[bytes]:
        for number in range(30):
            if number % 10 == 5:
                proxy.swallow(*directions)
                links = proxy.links
                yield b"%d" % number
                await until(lambda: proxy.links > links)  # noqa: B023
            else:
                yield b"%d" % number

    async with through(service, FAST, FAST) as (_, peer, proxy):
        async with peer.channel("demo.echo", b"{}", outgoing()) as items:
            assert [json.loads(item.data) async for item in items] == list(range(30))
        proxy.swallow(*directions)
        answers = await asyncio.gather(*(peer.call("demo.note", b"%d" % number) for number in range(20)))
        assert [json.loads(answer.data) for answer in answers] == seen == list(range(20))
        assert proxy.links >= 5


async def test_each_side_finds_out_by_itself() -> None:
    # The client has a longer limit than the server: the server abandons the link and keeps the session.
    patient = Settings(heartbeat_interval=0.05, heartbeats_until_dead=10_000, session_grace=30.0)
    for client, server in ((patient, FAST), (FAST, patient)):
        async with through(Service(), client, server) as (serving, peer, proxy):
            [driver] = serving._drivers.values()
            proxy.swallow("c>s", "s>c")
            if server is FAST:
                await until(lambda: driver.link is None)  # noqa: B023
                assert serving.connections == 1 and not driver.closed
                await peer.close(0)
            else:
                await until(lambda: proxy.links >= 2)


async def test_a_session_dies_when_its_grace_is_over() -> None:
    short = Settings(heartbeat_interval=0.05, heartbeats_until_dead=2, session_grace=0.1)
    service = Service()
    ended = asyncio.Event()

    @service.call("demo.never")
    async def never(request: Payload) -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.set()

    async with weirpool.serve(service, "river+tcp://127.0.0.1:0", settings=short) as serving:
        proxy = Proxy(int(serving.urls[0].rpartition(":")[2]))
        listening = await asyncio.start_server(proxy.accept, "127.0.0.1", 0)
        url = f"river+tcp://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        async with weirpool.connect(url, settings=short, confirm=True) as peer:
            call = asyncio.ensure_future(peer.call("demo.never"))
            await until(lambda: bool(serving._drivers) and next(iter(serving._drivers.values())).session.open_streams)
            listening.close()
            proxy.swallow("c>s", "s>c")
            with pytest.raises(weirpool.ApplicationError) as failed:
                await call
            assert failed.value.code == "UNEXPECTED_DISCONNECT"
            # The server's handler has ended.
            await ended.wait()
            await until(lambda: serving.connections == 0)
        await proxy.close()
