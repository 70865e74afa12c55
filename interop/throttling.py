"""A slow relay, on which a large message takes longer than the timeout for heartbeats."""

from __future__ import annotations

import asyncio
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

__all__ = ["BYTES_A_SECOND", "throttling"]

BYTES_A_SECOND = 64_000
CHUNK_BYTES = 4_096


async def _copy(source: StreamReader, sink: StreamWriter) -> None:
    with suppress(ConnectionError):
        while chunk := await source.read(CHUNK_BYTES):
            await asyncio.sleep(len(chunk) / BYTES_A_SECOND)
            sink.write(chunk)
            await sink.drain()
        sink.write_eof()


@asynccontextmanager
async def throttling(target: int) -> AsyncIterator[int]:
    """Relay to port `target` of 127.0.0.1 while the block lasts, and yield the relay's port."""

    async def accept(reader: StreamReader, writer: StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", target)
        tasks = [asyncio.create_task(_copy(reader, back)), asyncio.create_task(_copy(there, writer))]
        relayed.update(tasks)
        try:
            await asyncio.wait(tasks)
        finally:
            writer.transport.abort()
            back.transport.abort()

    relayed: set[asyncio.Task[None]] = set()
    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    async with server:
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            for task in relayed:
                task.cancel()
            await asyncio.gather(*relayed, return_exceptions=True)
