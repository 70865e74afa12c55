"""Large messages over real sockets and a slow proxy: like `test_slow_links`, with the buffers of a kernel."""

from __future__ import annotations

import asyncio
import json
import socket

import pytest

import weirpool
from weirpool import Payload, Service, Settings

pytestmark = pytest.mark.slow

RATE = 400_000
"""Bytes per second, in each direction."""
BUFFER = 32_768
SIZE = 3_200_000
"""Eight seconds of transfer, well above the timeouts. These are longer than a busy machine stops a process."""
HASTY = Settings(heartbeat_interval=0.5, heartbeats_until_dead=6, handshake_timeout=5.0)
HASTY_KEEPALIVE = Settings(keepalive_interval=0.5, keepalive_lifetime=3.0)


class Throttle:
    """A proxy that forwards bytes at `RATE`, with small buffers."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.links = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def listen(self) -> int:
        """Start accepting links; return the port."""
        listening = socket.create_server(("127.0.0.1", 0))
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
        listening.setblocking(False)
        self._tasks.add(asyncio.create_task(self._accept(listening)))
        return int(listening.getsockname()[1])

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        with listening:
            while True:
                left, _ = await loop.sock_accept(listening)
                self.links += 1
                right = socket.socket()
                right.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
                right.setblocking(False)
                await loop.sock_connect(right, ("127.0.0.1", self._port))
                for ends in ((left, right), (right, left)):
                    ends[1].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
                    self._tasks.add(asyncio.create_task(self._pass(*ends)))

    async def _pass(self, source: socket.socket, target: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        free = loop.time()
        with source, target:
            try:
                while data := await loop.sock_recv(source, 8_192):
                    free = max(free, loop.time()) + len(data) / RATE
                    await asyncio.sleep(free - loop.time())
                    await loop.sock_sendall(target, data)
            except OSError:
                return

    async def close(self) -> None:
        """Break all links."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@pytest.mark.parametrize("large", ["request", "answer"])
@pytest.mark.parametrize("place", ["river+tcp", "river+ws", "rsocket+tcp", "rsocket+ws"])
async def test_a_message_that_takes_longer_than_the_watchdog_arrives(place: str, large: str) -> None:
    # THREATS 91
    service = Service()

    @service.call("demo.large")
    def answer(request: Payload) -> bytes:
        return json.dumps("x" * (SIZE if large == "answer" else 1)).encode()

    settings = HASTY if place.startswith("river") else HASTY_KEEPALIVE
    async with weirpool.serve(service, f"{place}://127.0.0.1:0/", settings=settings) as server:
        throttle = Throttle(int(server.urls[0].rpartition(":")[2].strip("/")))
        try:
            url = f"{place}://127.0.0.1:{await throttle.listen()}/"
            async with weirpool.connect(url, settings=settings) as peer:
                asked = json.dumps("x" * (SIZE if large == "request" else 1)).encode()
                got = await peer.call("demo.large", asked)
        finally:
            await throttle.close()
    assert len(got.data) == (SIZE if large == "answer" else 1) + 2
    assert throttle.links == 1
