"""All transports: addresses to listen on, and a client and a server connected by each."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import weirpool
from tests.aio.serving import make_service, noted_drivers
from tests.transports.certificates import Certificates
from weirpool import Items, Payload, Service, Settings

PLACES = {
    "tcp": "rsocket+tcp://localhost:0",
    "tls": "rsocket+tls://localhost:0",
    "unix": "rsocket+unix://{folder}/socket",
    "memory": "rsocket+memory://every",
    "ws": "rsocket+ws://localhost:0/feed",
    "wss": "rsocket+wss://localhost:0/feed",
    "h2c": "rsocket+h2c://localhost:0/feed",
    "h2": "rsocket+h2://localhost:0/feed",
    "quic": "rsocket+quic://localhost:0?cert={folder}/cert.pem&key={folder}/key.pem",
}
ENCRYPTED = {"tls", "wss", "h2"}

KIB = 1024
MIB = 1024 * KIB


@dataclass
class Place:
    """An address to listen on, and its certificates."""

    url: str
    server: ssl.SSLContext | None
    client: ssl.SSLContext | None
    ca: Path

    @property
    def large(self) -> int:
        """The bytes of a large payload. QUIC's packets are made in Python, some MiB of them a second."""
        return (4 if "+quic" in self.url else 16) * MIB

    def for_client(self, url: str) -> str:
        """Return the client's URL of a server."""
        return f"{url.partition('?')[0]}?ca={self.ca}" if "cert=" in url else url


@dataclass
class World:
    """A client and its driver, its server, and what the handlers saw."""

    peer: weirpool.Peer
    here: Any
    server: weirpool.Server
    seen: list[object]
    reached: asyncio.Event
    place: Place

    @property
    def there(self) -> Any:
        """The server's driver of its one session."""
        [driver] = self.server._drivers.values()
        return driver

    def connect(self, **options: Any) -> Any:
        """Another client."""
        return weirpool.connect(self.place.for_client(self.server.urls[0]), ssl=self.place.client, **options)


def make_place(name: str, protocol: str, tmp_path: Path) -> Place:
    """Return the address for a transport and protocol; certificates are written to `tmp_path`."""
    url = PLACES[name].format(folder=tmp_path).replace("rsocket", protocol, 1)
    if name not in ENCRYPTED | {"quic"}:
        return Place(url, None, None, tmp_path)
    certificates = Certificates(tmp_path, ("localhost",))
    ca = tmp_path / "ca.pem"
    if name == "quic":
        return Place(url, None, None, ca)
    return Place(url, certificates.server, certificates.client, ca)


def add_handlers(service: Service, seen: list[object], reached: asyncio.Event) -> None:
    """Add the handlers that only tests of every transport need."""

    @service.channel("mirror")
    async def mirror(request: Payload, items: Items) -> AsyncIterator[Payload]:
        async for item in items:
            yield item

    @service.channel("last")
    async def last(request: Payload, items: Items) -> AsyncIterator[bytes]:
        count = 0
        async for _ in items:
            count += 1
        seen.append("their half is closed")
        for number in range(count):
            yield b"%d" % number

    @service.channel("enough")
    async def enough(request: Payload, items: Items) -> AsyncIterator[Payload]:
        async for item in items:
            yield item
            return

    @service.stream("heavy")
    def heavy(request: Payload) -> Iterator[bytes]:
        for _ in range(int(request.data)):
            seen.append("item")
            yield bytes(10 * KIB)

    @service.call("large")
    def large(request: Payload) -> bytes:
        return bytes(range(256)) * (int(request.data) // 256)

    @service.push
    def pushed(metadata: bytes) -> None:
        seen.append(metadata)
        reached.set()


@asynccontextmanager
async def world(place: Place, settings: Settings | None = None, **options: Any) -> AsyncIterator[World]:
    """Serve at `place`, and connect to it."""
    seen: list[object] = []
    reached = asyncio.Event()
    service = make_service(seen, reached)
    add_handlers(service, seen, reached)
    async with weirpool.serve(service, place.url, settings=settings, ssl=place.server) as server:
        with noted_drivers() as drivers:
            peer = await weirpool.connect(
                place.for_client(server.urls[0]), settings=settings, ssl=place.client, **options
            )
        try:
            yield World(peer, drivers[0], server, seen, reached, place)
        finally:
            await peer.close()
