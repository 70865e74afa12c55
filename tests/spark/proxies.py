"""A TCP proxy that resets its first link, on a thread of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager, suppress

from .threads import on_a_thread


class Proxy:
    """Forwards links to a server, and resets the first one when this many bytes have passed to it."""

    def __init__(self, url: str, after: int) -> None:
        self._scheme, _, place = url.partition("://")
        self._host, _, port = place.rpartition(":")
        self._port = int(port)
        self._after = after
        self.url = ""
        self.links = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Proxy]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"{self._scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield self
        server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.links += 1
        left = self._after if self.links == 1 else None
        upstream = await asyncio.open_connection(self._host, self._port)
        back = asyncio.create_task(self._copy(upstream[0], writer, None))
        await self._copy(reader, upstream[1], left)
        if left is not None:
            writer.transport.abort()
            upstream[1].transport.abort()
        await asyncio.wait([back])
        for each in (writer, upstream[1]):
            each.close()
            with suppress(OSError):
                await each.wait_closed()

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, left: int | None) -> None:
        with suppress(OSError):
            while (left is None or left > 0) and (data := await reader.read(4096)):
                left = None if left is None else left - len(data)
                writer.write(data)
                await writer.drain()
            if left is None:
                writer.close()


def resetting(url: str, after: int) -> AbstractContextManager[Proxy]:
    """Run a proxy in front of a server while the block runs."""
    return on_a_thread(Proxy(url, after).running())
