"""Weirpool by River, over WebSocket: calls with typed values, or with encoded bytes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from weirpool import Payload, Peer, Service, connect, serve, typed

from . import PAYLOAD

service = Service()


class Text(msgspec.Struct):
    text: str


item = Text("x" * len(PAYLOAD))
octets = Payload(msgspec.msgpack.encode(item))


@service.call("bench.echo")
def echo(init: Text) -> Text:
    return init


@service.call("bench.bytes")
def echo_bytes(request: Payload) -> Payload:
    return request


class Client:
    def __init__(self, peer: Peer) -> None:
        self.peer = peer

    async def calls(self, count: int, in_flight: int) -> None:
        asked = typed(self.peer)

        async def caller(share: int) -> None:
            for _ in range(share):
                await asked.call("bench.echo", item, returns=Text)

        await asyncio.gather(*(caller(count // in_flight) for _ in range(in_flight)))

    async def calls_by_bytes(self, count: int, in_flight: int) -> None:
        async def caller(share: int) -> None:
            for _ in range(share):
                await self.peer.call("bench.bytes", octets)

        await asyncio.gather(*(caller(count // in_flight) for _ in range(in_flight)))


@asynccontextmanager
async def serving(tuned: bool) -> AsyncIterator[str]:
    async with serve(service, "river+ws://127.0.0.1:0/?codec=msgpack") as server:
        yield server.urls[0]


@asynccontextmanager
async def connected(address: str, tuned: bool) -> AsyncIterator[Client]:
    async with connect(address) as peer:
        yield Client(peer)
