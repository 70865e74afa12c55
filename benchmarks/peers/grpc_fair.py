"""grpc.aio: calls, and server streams of async generators, without protobuf."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio

from . import PAYLOAD
from .latency import Load, raise_file_limit

OWN = [("grpc.use_local_subchannel_pool", 1)]
"""Without it, channels to one address share a connection."""


async def echo(request: bytes, context: Any) -> bytes:
    return request


async def endless(request: bytes, context: Any) -> AsyncIterator[bytes]:
    while True:
        yield PAYLOAD


class Client(Load):
    def __init__(self, address: str, channel: Any) -> None:
        super().__init__()
        self.address = address
        self.channel = channel
        self.echo = channel.unary_unary("/bench/echo")

    async def call(self) -> None:
        await self.echo(PAYLOAD)

    async def read(self, number: int, own: bool) -> None:
        if not own:
            await self._read(self.channel)
            return
        async with grpc.aio.insecure_channel(self.address, options=OWN) as channel:
            await self._read(channel)

    async def _read(self, channel: Any) -> None:
        async for _ in channel.unary_stream("/bench/endless")(PAYLOAD):
            self.received += 1


@asynccontextmanager
async def serving(tuned: bool) -> AsyncIterator[str]:
    raise_file_limit()
    server = grpc.aio.server(options=[("grpc.max_concurrent_streams", 100_000)])
    handlers = {
        "echo": grpc.unary_unary_rpc_method_handler(echo),
        "endless": grpc.unary_stream_rpc_method_handler(endless),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("bench", handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(0)


@asynccontextmanager
async def connected(address: str, tuned: bool) -> AsyncIterator[Client]:
    raise_file_limit()
    async with grpc.aio.insecure_channel(address, options=OWN) as channel:
        client = Client(address, channel)
        try:
            yield client
        finally:
            await client.stop()
