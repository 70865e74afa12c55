"""A relay that cuts every connection shortly after it is made. Sessions that resume continue anyway."""

from __future__ import annotations

import asyncio
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

__all__ = ["Cutter", "cutting"]

CONNECTION_SECONDS = 0.3
"""The lifetime of a connection: long enough for a JVM to resume and send some items."""
CHUNK_BYTES = 64 * 1024


class Cutter:
    """The relay.

    Attributes:
        port: The port on 127.0.0.1 on which it listens.
        cuts: The number of connections that it has cut.

    """

    def __init__(self, target: int) -> None:
        self.port = 0
        self.cuts = 0
        self._target = target
        self._tasks: set[asyncio.Task[None]] = set()

    async def _relay(self, reader: StreamReader, writer: StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._target)
        directions = [asyncio.create_task(_copy(reader, back)), asyncio.create_task(_copy(there, writer))]
        _, unfinished = await asyncio.wait(directions, timeout=CONNECTION_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        self.cuts += len(unfinished) == len(directions)
        for direction in directions:
            direction.cancel()
        for each in (writer, back):
            each.transport.abort()
        await asyncio.gather(*directions, return_exceptions=True)

    def accept(self, reader: StreamReader, writer: StreamWriter) -> None:
        """Relay a new connection."""
        task = asyncio.create_task(self._relay(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def end(self) -> None:
        """Cut the remaining connections."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _copy(source: StreamReader, sink: StreamWriter) -> None:
    while chunk := await source.read(CHUNK_BYTES):
        sink.write(chunk)
        await sink.drain()


@asynccontextmanager
async def cutting(target: int) -> AsyncIterator[Cutter]:
    """Relay to port `target` of 127.0.0.1 while the block lasts."""
    cutter = Cutter(target)
    server = await asyncio.start_server(cutter.accept, "127.0.0.1", 0)
    async with server:
        cutter.port = server.sockets[0].getsockname()[1]
        try:
            yield cutter
        finally:
            await cutter.end()
