"""A peer that takes rows, on a thread of its own: what sends them runs an event loop itself."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

from penstock import ApplicationError, Payload, Service
from penstock.aio.server import serve

WAIT = 20.0


class Receiver:
    """What arrived, by route: requests and items of channels, and what was fired. It can count, too."""

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[Payload] = []
        self.items: list[Payload] = []
        self.fired: list[Payload] = []
        self.service = Service()
        self.service.channel("rows")(self._rows)
        self.service.channel("silent")(self._silent)
        self.service.channel("refuse")(self._refuse)
        self.service.channel("break")(self._break)
        self.service.fire("fired")(self._fired)
        self.service.stream("count")(self._count)

    async def _rows(self, request: Payload, items: AsyncIterator[Payload]) -> AsyncIterator[bytes]:
        self.requests.append(request)
        async for item in items:
            self.items.append(item)
        yield b"done"

    async def _silent(self, request: Payload, items: AsyncIterator[Payload]) -> AsyncIterator[bytes]:
        async for item in items:
            self.items.append(item)
        if not request:
            yield b""

    async def _refuse(self, request: Payload, items: AsyncIterator[Payload]) -> AsyncIterator[bytes]:
        async for _ in items:
            raise ApplicationError(0x301, "no room")
        yield b""

    async def _break(self, request: Payload, items: AsyncIterator[Payload]) -> AsyncIterator[bytes]:
        async for _ in items:
            break
        yield b"enough"

    def _count(self, request: Payload) -> Iterator[bytes]:
        return (b"item %d" % number for number in range(int(request.data)))

    def _fired(self, request: Payload) -> None:
        self.fired.append(request)


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Serve a receiver over TCP while the block runs."""
    receiver = Receiver()
    ready = threading.Event()
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    async def main() -> None:
        async with serve(receiver.service, "rsocket+tcp://127.0.0.1:0") as server:
            (receiver.url,) = server.urls
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=[main()])
    thread.start()
    try:
        assert ready.wait(WAIT)
        yield receiver
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(WAIT)
        loop.close()
