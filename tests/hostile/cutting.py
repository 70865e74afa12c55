"""A relay between clients and a server that a test can interrupt."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from types import TracebackType


class Relay:
    """Forwards bytes in both directions until a test interrupts it.

    Args:
        url: The server's.
        head: Bytes to send to the server first on each link.

    Attributes:
        url: Where the relay listens.
        refusing: Take nobody.

    """

    def __init__(self, url: str, head: bytes = b"") -> None:
        self._first = head
        head, _, rest = url.partition("://127.0.0.1:")
        digits = len(rest) - len(rest.lstrip("0123456789"))
        self._target = int(rest[:digits])
        self._around = f"{head}://127.0.0.1:", rest[digits:]
        self._links: list[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = []
        self._left: list[asyncio.StreamWriter] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self.refusing = False
        self.url = ""

    async def __aenter__(self) -> Relay:
        self._server = await asyncio.start_server(self._take, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"{self._around[0]}{port}{self._around[1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.close()
        self.cut()
        for writer in self._left:
            writer.transport.abort()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self, both: bool = True) -> None:
        """Cut all links; the server does not notice unless it is for `both`."""
        links, self._links = self._links, []
        for client, server in links:
            client.transport.abort()
            if both:
                server.transport.abort()
            else:
                self._left.append(server)

    async def _take(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        if self.refusing:
            client.transport.abort()
            return
        answers, server = await asyncio.open_connection("127.0.0.1", self._target)
        server.write(self._first)
        self._links.append((client, server))
        for source, sink in ((reader, server), (answers, client)):
            task = asyncio.ensure_future(self._pass((client, server), source, sink))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pass(
        self,
        link: tuple[asyncio.StreamWriter, asyncio.StreamWriter],
        source: asyncio.StreamReader,
        sink: asyncio.StreamWriter,
    ) -> None:
        with suppress(OSError):
            while data := await source.read(1 << 16):
                sink.write(data)
                await sink.drain()
        if link in self._links:
            sink.close()
