"""A service with one handler of each kind, and a server of it, for tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import weirpool
from tests.waiting import until
from weirpool import ApplicationError, Items, Payload, Service, Settings
from weirpool.aio.dialer import Dialer


@dataclass
class World:
    """A client, its server, and what the handlers saw."""

    peer: weirpool.Peer
    server: weirpool.Server
    seen: list[object] = field(default_factory=list)
    reached: asyncio.Event = field(default_factory=asyncio.Event)


def make_service(seen: list[object], reached: asyncio.Event) -> Service:
    service = Service()

    @service.call("echo")
    def echo(request: Payload) -> Payload:
        return request

    @service.call("later")
    async def later(request: Payload) -> bytes:
        await asyncio.sleep(0)
        return request.data

    @service.call("never")
    async def never(request: Payload) -> bytes:
        reached.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            seen.append("never ended")
        return b""

    @service.call("fail")
    def fail(request: Payload) -> bytes:
        raise ApplicationError(0x301, "boom")

    @service.call("bug")
    def bug(request: Payload) -> bytes:
        raise KeyError("a secret")

    @service.fire("log")
    def log(request: Payload) -> None:
        seen.append(request.data)
        reached.set()

    @service.stream("count")
    def count(request: Payload) -> Iterator[bytes]:
        for number in range(int(request.data)):
            seen.append(number)
            yield b"%d" % number

    @service.stream("acount")
    async def acount(request: Payload) -> AsyncIterator[bytes]:
        try:
            for number in range(int(request.data)):
                yield b"%d" % number
        finally:
            seen.append("closed")
            reached.set()

    @service.upload("sum")
    async def total(request: Payload, items: Items) -> bytes:
        result = 0
        async for item in items:
            result += int(item.data)
        return b"%d" % result

    @service.channel("double")
    async def double(request: Payload, items: Items) -> AsyncIterator[bytes]:
        async for item in items:
            yield b"%d" % (2 * int(item.data))

    return service


@asynccontextmanager
async def world(
    url: str = "rsocket+memory://test", server: Settings | None = None, client: Settings | None = None
) -> AsyncIterator[World]:
    seen: list[object] = []
    reached = asyncio.Event()
    service = make_service(seen, reached)
    async with weirpool.serve(service, url, settings=server) as serving:
        async with weirpool.connect(serving.urls[0], settings=client) as peer:
            yield World(peer, serving, seen, reached)


async def alone() -> None:
    """Check that only the test's own task is left, after canceled tasks have had turns to end."""
    await until(lambda: asyncio.all_tasks() == {asyncio.current_task()})


@contextmanager
def noted_drivers() -> Iterator[list[Any]]:
    """Yield a list to which the driver of each new session is added, because a peer's driver is private."""
    drivers: list[Any] = []
    make = Dialer.driver
    with patch.object(Dialer, "driver", lambda dialer: drivers.append(make(dialer)) or drivers[-1]):
        yield drivers
