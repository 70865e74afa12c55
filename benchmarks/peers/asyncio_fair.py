"""asyncio's streams: lines of a fixed size, a connection per stream or one for all, and no flow control but TCP's."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from . import PAYLOAD, READ_BYTES
from .latency import Load, raise_file_limit

HEAD = struct.Struct(">BI")
CALL, STREAMS = 1, 2


BURST = 400
"""Items after which a stream yields to the loop; `drain` alone does not, and a fast reader would stop all others."""


async def endless(writer: asyncio.StreamWriter, number: int) -> None:
    message = HEAD.pack(STREAMS, number) + PAYLOAD
    while not writer.is_closing():
        for _ in range(BURST):
            writer.write(message)
        await writer.drain()
        await asyncio.sleep(0)


async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    tasks = []
    try:
        while True:
            kind, number = HEAD.unpack(await reader.readexactly(HEAD.size))
            if kind == CALL:
                writer.write(await reader.readexactly(len(PAYLOAD)))
                await writer.drain()
            else:
                tasks += [asyncio.create_task(endless(writer, each)) for each in range(number)]
    except (asyncio.IncompleteReadError, ConnectionError):
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        writer.close()


class Client(Load):
    def __init__(self, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        super().__init__()
        self.port = port
        self.reader = reader
        self.writer = writer

    async def call(self) -> None:
        self.writer.write(HEAD.pack(CALL, 0) + PAYLOAD)
        await self.reader.readexactly(len(PAYLOAD))

    async def saturate(self, streams: int, own: bool) -> None:
        # One reader for all streams of a connection.
        self.streams = 1 if own else streams
        await super().saturate(streams if own else min(streams, 1), own)

    async def read(self, number: int, own: bool) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(HEAD.pack(STREAMS, self.streams))
            while data := await reader.read(READ_BYTES):
                self.received += len(data) // (HEAD.size + len(PAYLOAD))
        finally:
            writer.transport.abort()


@asynccontextmanager
async def serving(tuned: bool) -> AsyncIterator[str]:
    raise_file_limit()
    server = await asyncio.start_server(accept, "127.0.0.1", 0, backlog=1024)
    async with server:
        yield str(server.sockets[0].getsockname()[1])


@asynccontextmanager
async def connected(address: str, tuned: bool) -> AsyncIterator[Client]:
    raise_file_limit()
    client = Client(int(address), *await asyncio.open_connection("127.0.0.1", int(address)))
    try:
        yield client
    finally:
        await client.stop()
        client.writer.close()
