"""Only bytes over asyncio's TCP, without messages, streams or batches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from .ours_packed import KB, READ_BYTES, WIDTH

WRITE_BYTES = 60_000


class Sender(asyncio.Protocol):
    """Sends the number of bytes in each request of eight bytes."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.piece = bytes(WRITE_BYTES)
        self.left = 0
        self.paused = False

    def data_received(self, data: bytes) -> None:
        self.left = int.from_bytes(data, "big")
        self.send()

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False
        self.send()

    def send(self) -> None:
        while self.left > 0 and not self.paused:
            self.transport.write(self.piece[: self.left])  # type: ignore[attr-defined]
            self.left -= WRITE_BYTES


class Client(asyncio.BufferedProtocol):
    """Reads the requested bytes into one buffer."""

    def __init__(self) -> None:
        self.buffer = memoryview(bytearray(READ_BYTES))
        self.left = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.left -= nbytes
        if self.left <= 0:
            self.done.set_result(None)

    async def batches(self, count: int) -> None:
        """Receive `count` kB."""
        self.done = asyncio.get_running_loop().create_future()
        self.left = count * KB * WIDTH
        self.transport.write(self.left.to_bytes(8, "big"))  # type: ignore[attr-defined]
        await self.done


@asynccontextmanager
async def serving(tuned: bool) -> AsyncIterator[str]:
    server = await asyncio.get_running_loop().create_server(Sender, "127.0.0.1", 0)
    async with server:
        yield str(server.sockets[0].getsockname()[1])


@asynccontextmanager
async def connected(address: str, tuned: bool) -> AsyncIterator[Client]:
    transport, client = await asyncio.get_running_loop().create_connection(Client, "127.0.0.1", int(address))
    yield client
    transport.close()
