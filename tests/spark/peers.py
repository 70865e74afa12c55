"""A peer that takes rows, on a thread of its own: what sends them runs an event loop itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, asynccontextmanager

from weirpool import ApplicationError, Payload, Rejected, Service
from weirpool.aio.server import serve
from weirpool.aio.setup import Acceptor

from .threads import on_a_thread


class Receiver:
    """What arrived, by route: requests and items of channels, and what was fired. It can count, too."""

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[Payload] = []
        self.items: list[Payload] = []
        self.fired: list[Payload] = []
        self.busy = 0
        self.service = Service()
        self.service.channel("rows")(self._rows)
        self.service.channel("silent")(self._silent)
        self.service.channel("refuse")(self._refuse)
        self.service.channel("break")(self._break)
        self.service.channel("stalled")(self._stalled)
        self.service.channel("picky")(self._picky)
        self.service.upload("uploaded")(self._uploaded)
        self.service.call("asked")(self._asked)
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

    async def _stalled(self, request: Payload, items: AsyncIterator[Payload]) -> AsyncIterator[bytes]:
        await asyncio.Event().wait()
        yield b"never"

    async def _picky(self, request: Payload, items: AsyncIterator[Payload]) -> AsyncIterator[bytes]:
        """Reject every third row."""
        index = 0
        async for item in items:
            if index % 3:
                self.items.append(item)
            else:
                yield b'{"index": %d, "code": "ODD", "message": "not today"}' % index
            index += 1

    async def _uploaded(self, request: Payload, items: AsyncIterator[Payload]) -> bytes:
        self.requests.append(request)
        async for item in items:
            self.items.append(item)
        return b"%d" % len(self.items)

    async def _asked(self, request: Payload) -> bytes:
        """Reject what is not a number, and be busy once."""
        if not request.data.isdigit():
            raise ApplicationError(0x301, "not a number")
        if self.busy:
            self.busy -= 1
            raise Rejected(message="busy")
        self.items.append(request)
        return b""

    def _count(self, request: Payload) -> Iterator[bytes]:
        return (b"item %d" % number for number in range(int(request.data)))

    def _fired(self, request: Payload) -> None:
        self.fired.append(request)


def receiving(acceptor: Acceptor | None = None) -> AbstractContextManager[Receiver]:
    """Serve a receiver over TCP while the block runs."""
    return on_a_thread(_serving(Receiver(), acceptor))


@asynccontextmanager
async def _serving(receiver: Receiver, acceptor: Acceptor | None) -> AsyncIterator[Receiver]:
    async with serve(receiver.service, "rsocket+tcp://127.0.0.1:0", acceptor=acceptor) as server:
        (receiver.url,) = server.urls
        yield receiver
