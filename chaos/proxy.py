"""A proxy for the links of all sources: ``python -m chaos.proxy FOLDER NAME=PORT ...``, with 0 for any free port.

It prints the ports as a JSON object. Then it reads commands from standard input, one JSON object per line:
``{"link": NAME, "do": MODE}``, with one of `MODES`, or ``{"link": NAME, "cut": BYTES}``.
"""

from __future__ import annotations

import asyncio
import errno
import json
import random
import socket
import sys
from asyncio import StreamReader, StreamWriter
from contextlib import suppress
from pathlib import Path
from typing import Final

MODES: Final = ("pass", "trickle", "stall", "swallow there", "swallow back", "swallow both", "refuse")
"""What links do, in order of severity. Swallowed data is lost, and neither side notices that the link is dead."""
READ: Final = 64 * 1024
PORTS: Final = range(16_384, 32_768)
TRICKLE: Final = 256
"""Bytes that a trickling link forwards one by one before it pauses."""
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
        # Links that have lost data.
        self._holed: set[StreamWriter] = set()
        self._cut_after: int | None = None

    async def listen(self, port: int) -> None:
        """Listen on `port` of this machine, or on any free port if it is 0."""
        while not self.port:
            # The system does not assign ports in this range, so it stays free for the next proxy.
            self.port = port or random.choice(PORTS)
            try:
                await asyncio.start_server(self._serve, "127.0.0.1", self.port, limit=READ)
            except OSError as error:
                if port or error.errno != errno.EADDRINUSE:
                    raise
                self.port = 0

    def cut(self, after: int) -> None:
        """Break the links, after this many more bytes."""
        if after:
            self._cut_after = after
        else:
            self._abort()

    def obey(self, do: str) -> None:
        """Switch the links to another mode."""
        self._mode = do
        if do == "stall":
            self._flowing.clear()
        else:
            self._flowing.set()
        if do == "refuse":
            self._abort()
        elif not do.startswith("swallow"):
            # These links are dead, which a restored network reports.
            for writer in self._holed:
                writer.transport.abort()

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
                [
                    asyncio.ensure_future(self._pump(reader, back, "there")),
                    asyncio.ensure_future(self._pump(there, writer, "back")),
                ],
                return_when=asyncio.FIRST_COMPLETED,
            )
            # Nor does one side notice that the other has closed.
            while self._mode.startswith("swallow"):  # noqa: ASYNC110
                await asyncio.sleep(BREATH)
        finally:
            self._links.difference_update(both)
            self._holed.difference_update(both)
            for each in both:
                each.transport.abort()

    def _swallows(self, way: str) -> bool:
        return self._mode in (f"swallow {way}", "swallow both")

    async def _pump(self, reader: StreamReader, writer: StreamWriter, way: str) -> None:
        with suppress(OSError):
            while data := await reader.read(READ):
                await self._flowing.wait()
                if writer in self._holed or self._swallows(way):
                    self._holed.add(writer)
                    continue
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
                if writer.is_closing():
                    return
                writer.write(data[each : each + 1])
            at += TRICKLE
            await writer.drain()
            await asyncio.sleep(BREATH)


async def main(folder: str, *places: str) -> None:
    """Forward data until standard input ends."""
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
