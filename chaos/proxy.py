"""The links of all sources, in one process: ``python -m chaos.proxy FOLDER NAME=PORT ...``; port 0: any.

It prints the ports as one JSON object, then takes orders from standard input, a JSON object a line:
``{"link": NAME, "do": "pass" | "stall" | "trickle" | "refuse"}``, or ``{"link": NAME, "cut": BYTES}``.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from asyncio import StreamReader, StreamWriter
from contextlib import suppress
from pathlib import Path
from typing import Final

READ: Final = 64 * 1024
TRICKLE: Final = 256
"""Bytes that a trickling link carries one by one before it takes a breath."""
BREATH: Final = 0.01


class LinkProxy:
    """The links between one publisher and its collector.

    Args:
        target: The publisher's socket.

    """

    def __init__(self, target: Path) -> None:
        self.port = 0
        self._target = target
        self._mode = "pass"
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._links: set[StreamWriter] = set()
        self._cut_after: int | None = None

    async def listen(self, port: int) -> None:
        """Listen on `port` of this machine, or on any."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", port, limit=READ)
        self.port = server.sockets[0].getsockname()[1]

    def cut(self, after: int) -> None:
        """Break the links: at once, or after so many bytes of what comes next."""
        if after:
            self._cut_after = after
        else:
            self._abort()

    def obey(self, do: str) -> None:
        """Treat the links so from now on."""
        self._mode = do
        if do == "stall":
            self._flowing.clear()
        else:
            self._flowing.set()
        if do == "refuse":
            self._abort()

    def _abort(self) -> None:
        for writer in list(self._links):
            writer.transport.abort()

    async def _serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        if self._mode == "refuse":
            writer.transport.abort()
            return
        try:
            there, back = await asyncio.open_unix_connection(str(self._target), limit=READ)
        except OSError:
            writer.transport.abort()
            return
        both = (writer, back)
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._links.update(both)
        try:
            await asyncio.wait(
                [asyncio.ensure_future(self._pump(reader, back)), asyncio.ensure_future(self._pump(there, writer))],
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            self._links.difference_update(both)
            for each in both:
                each.transport.abort()

    async def _pump(self, reader: StreamReader, writer: StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(READ):
                await self._flowing.wait()
                if self._cut_after is not None:
                    writer.write(data[: self._cut_after])
                    self._cut_after = None
                    await writer.drain()
                    self._abort()
                    return
                await self._carry(data, writer)

    async def _carry(self, data: bytes, writer: StreamWriter) -> None:
        at = 0
        while at < len(data):
            if self._mode != "trickle":
                writer.write(data[at:])
                await writer.drain()
                return
            for each in range(at, min(at + TRICKLE, len(data))):
                writer.write(data[each : each + 1])
            at += TRICKLE
            await writer.drain()
            await asyncio.sleep(BREATH)


async def main(folder: str, *places: str) -> None:
    """Carry until standard input ends."""
    proxies: dict[str, LinkProxy] = {}
    for place in places:
        name, _, port = place.rpartition("=")
        proxies[name] = LinkProxy(Path(folder, f"{name}.sock"))
        await proxies[name].listen(int(port))
    print(json.dumps({name: proxy.port for name, proxy in proxies.items()}), flush=True)
    orders = StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    while line := await orders.readline():
        order = json.loads(line)
        proxy = proxies[order["link"]]
        if "cut" in order:
            proxy.cut(order["cut"])
        else:
            proxy.obey(order["do"])


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
