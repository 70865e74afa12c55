"""Weirpool: routed calls, a stream item by item, and a stream of record batches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pyarrow as pa

from weirpool import Payload, Peer, Service, connect, serve

from . import BATCH_ROWS, PAYLOAD

service = Service()
item = Payload(PAYLOAD)


@service.call("echo")
def echo(request: Payload) -> Payload:
    return request


@service.stream("items")
def items(request: Payload) -> Iterator[Payload]:
    for _ in range(int(request.data)):
        yield item


@service.stream("rows")
def rows(request: Payload) -> Iterator[pa.RecordBatch]:
    batch = pa.record_batch({"data": pa.array([PAYLOAD] * BATCH_ROWS, pa.binary())})
    for _ in range(int(request.data) // BATCH_ROWS):
        yield batch


class Client:
    def __init__(self, peer: Peer) -> None:
        self.peer = peer

    async def calls(self, count: int, in_flight: int) -> None:
        async def caller(share: int) -> None:
            for _ in range(share):
                await self.peer.call("echo", item)

        await asyncio.gather(*(caller(count // in_flight) for _ in range(in_flight)))

    async def items(self, count: int) -> None:
        got = 0
        async with self.peer.stream("items", b"%d" % count) as stream:
            async for _ in stream:
                got += 1
        assert got == count, f"{got} of {count} items"

    async def rows(self, count: int) -> None:
        got = 0
        async with self.peer.stream("rows", b"%d" % count) as stream:
            async for batch in stream.batches():
                got += batch.num_rows
        assert got == count, f"{got} of {count} rows"


@asynccontextmanager
async def serving(tuned: bool) -> AsyncIterator[str]:
    async with serve(service, "rsocket+tcp://127.0.0.1:0") as server:
        yield server.urls[0]


@asynccontextmanager
async def connected(address: str, tuned: bool) -> AsyncIterator[Client]:
    async with connect(address) as peer:
        yield Client(peer)
