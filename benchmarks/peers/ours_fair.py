"""Weirpool: calls, and streams that never end, over one connection or over one each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager

from weirpool import Payload, Peer, Service, Settings, connect, serve

from . import PAYLOAD
from .latency import Load, raise_file_limit

ALL = 0x7FFF_FFFF
service = Service()
item = Payload(PAYLOAD)


@service.call("echo")
def echo(request: Payload) -> Payload:
    return request


@service.stream("plain")
def plain(request: Payload) -> Iterator[Payload]:
    while True:
        yield item


@service.stream("async")
async def asynchronous(request: Payload) -> AsyncIterator[Payload]:
    while True:
        yield item


class Client(Load):
    route = "plain"

    def __init__(self, address: str, peer: Peer, stack: AsyncExitStack) -> None:
        super().__init__()
        self.address = address
        self.peer = peer
        self.stack = stack

    async def call(self) -> None:
        await self.peer.call("echo", item)

    async def read(self, number: int, own: bool) -> None:
        peer = await self.stack.enter_async_context(connect(self.address)) if own else self.peer
        async with peer.stream(self.route, credit=ALL) as stream:
            async for batch in stream.batches():
                self.received += batch.num_rows


@asynccontextmanager
async def serving(tuned: bool) -> AsyncIterator[str]:
    raise_file_limit()
    settings = Settings(max_connections_per_address=10_000)
    async with serve(service, "rsocket+tcp://127.0.0.1:0", settings=settings) as server:
        yield server.urls[0]


@asynccontextmanager
async def connected(address: str, tuned: bool, kind: type[Client] = Client) -> AsyncIterator[Client]:
    raise_file_limit()
    async with AsyncExitStack() as stack:
        client = kind(address, await stack.enter_async_context(connect(address)), stack)
        try:
            yield client
        finally:
            await client.stop()
            await asyncio.sleep(0)
