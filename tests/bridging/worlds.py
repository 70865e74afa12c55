"""A service behind a bridge, for the tests of bridges."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import weirpool
from weirpool import ApplicationError, Items, Payload, Service
from weirpool.aio.peer import Peer
from weirpool.aio.server import Server
from weirpool.bridging.bridge import bridge
from weirpool.bridging.counters import Counters
from weirpool.kinds import Kind
from weirpool.protocols import PROTOCOLS

PAIRS = [(source, target) for source in PROTOCOLS for target in PROTOCOLS]
KINDS = {
    "rsocket": set(Kind),
    "reactivesocket-0.2": set(Kind),
    "reactivesocket-0.0": {Kind.CALL, Kind.FIRE, Kind.STREAM},
    "reactive-streams": {Kind.CALL, Kind.STREAM},
    "river": set(Kind) - {Kind.FIRE},
}


@dataclass
class Upstream:
    """The service behind the bridge, and what it has seen."""

    pulled: int = 0
    canceled: int = 0
    seen: list[Payload] = field(default_factory=list)
    fired: asyncio.Event = field(default_factory=asyncio.Event)
    pushed: list[bytes] = field(default_factory=list)

    def service(self) -> Service:
        service = Service()
        service.call("t.echo")(self._echo)
        service.call("t.fail")(_fail)
        service.call("t.forever")(self._forever)
        service.fire("t.fire")(self._fire)
        service.stream("t.count")(_count)
        service.stream("t.fail-stream")(_fail_stream)
        service.stream("t.flood")(self._flood)
        service.upload("t.sum")(_sum)
        service.channel("t.double")(_double)
        service.push(self.pushed.append)
        return service

    def _echo(self, request: Payload) -> bytes:
        self.seen.append(request)
        return request.data

    def _fire(self, request: Payload) -> None:
        self.fired.set()

    async def _forever(self, request: Payload) -> bytes:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self.canceled += 1
        return b""

    def _flood(self, request: Payload) -> Iterator[bytes]:
        item = b'"%s"' % (b"x" * int(request.data))
        try:
            while True:
                self.pulled += 1
                yield item
        finally:
            self.canceled += 1


def _fail(request: Payload) -> bytes:
    raise ApplicationError(0x301, "boom")


def _count(request: Payload) -> Iterator[bytes]:
    return (b"%d" % number for number in range(int(request.data)))


def _fail_stream(request: Payload) -> Iterator[bytes]:
    yield b"1"
    raise ApplicationError(0x301, "boom")


async def _sum(request: Payload, items: Items) -> bytes:
    return b"%d" % (int(request.data) + sum([int(item.data) async for item in items]))


async def _double(request: Payload, items: Items) -> AsyncIterator[bytes]:
    async for item in items:
        yield b"%d" % (2 * int(item.data))


@dataclass
class World:
    """A client of a bridge, the bridge, and the upstream."""

    peer: Peer
    server: Server
    upstream: Upstream
    counters: Counters


@asynccontextmanager
async def bridged(
    source: str, target: str, client_settings: weirpool.Settings | None = None, **options: Any
) -> AsyncIterator[World]:
    """Serve an upstream with one protocol, and connect to it through a bridge with another."""
    upstream, counters = Upstream(), Counters()
    to, place = f"{target}+memory://upstream", f"{source}+memory://bridge"
    settings = weirpool.Settings(close_grace=0)
    async with (
        weirpool.serve(upstream.service(), to, settings=settings) as server,
        bridge(to, place, counters=counters, settings=settings, **options) as between,
        weirpool.connect(between.urls[0], settings=client_settings) as peer,
    ):
        yield World(peer, server, upstream, counters)
