"""A peer that sends arbitrary data over a real socket, and the server under attack."""

from __future__ import annotations

import asyncio
import fcntl
import socket
import sys
import termios
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import weirpool
from tests.waiting import until
from weirpool import Payload, Service, Settings
from weirpool.rsocket.dialect import DIALECTS, Dialect
from weirpool.rsocket.handshake import setup_frame

MIB = 1024 * 1024
STALLED = 200
"""Turns of the loop after which a server is considered to have stopped reading."""

RECEIVE_BYTES = 65_536
"""The buffer of a peer's system for what it does not read."""

V1 = "rsocket-1.0"
V02 = "reactivesocket-0.2"
V00 = "reactivesocket-0.0"


@dataclass
class Flood:
    """The result of a flood.

    Attributes:
        sent: Bytes that the server, and the network's buffers, have taken.
        peak: Bytes that were allocated at once at most since it began.
        ended: "closed", by the server; "stalled", because it has stopped reading; or "taken", all of it.

    """

    sent: int = 0
    peak: int = 0
    ended: str = "taken"


@dataclass
class Attack:
    """A server, and a raw connection to it.

    Attributes:
        server: The server.
        sock: The attacker's end of the connection, which it does not read.
        seen: What handlers saw.

    """

    server: weirpool.Server
    sock: socket.socket
    seen: list[object] = field(default_factory=list)

    @property
    def driver(self) -> Any:
        """The server's side of the connection; None after its end."""
        return next(iter(self.server._drivers.values()), None)

    @property
    def closed(self) -> bool:
        """True if the server has ended the session."""
        return self.driver is None or self.driver.closed

    @property
    def stopped(self) -> bool:
        """True if the server has stopped reading."""
        link = None if self.closed else self.driver.link
        return link is not None and not link._transport.is_reading()

    async def say(self, data: bytes) -> None:
        """Send `data`, and wait until the server has read it."""
        await asyncio.get_running_loop().sock_sendall(self.sock, data)

    async def heard(self) -> bytes:
        """Return all that the server sends until it closes."""
        loop = asyncio.get_running_loop()
        found: list[bytes] = []
        try:
            while data := await loop.sock_recv(self.sock, 65_536):
                found.append(data)
        except ConnectionError:
            # The server closed the socket with unread input.
            pass
        return b"".join(found)

    async def flood(self, chunk: bytes, most: int) -> Flood:
        """Send `chunk` repeatedly, up to `most` bytes, and read nothing."""
        flood = Flood()
        tracemalloc.start()
        try:
            await self._pour(memoryview(chunk), most, flood)
            await self._settle()
            flood.ended = "closed" if self.closed else flood.ended
            _, flood.peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        return flood

    async def _pour(self, chunk: memoryview, most: int, flood: Flood) -> None:
        idle = at = 0
        while flood.sent < most and idle <= STALLED and not self.closed:
            try:
                count = self.sock.send(chunk[at:])
            except BlockingIOError:
                idle = idle + 1 if self.stopped else 0
            except ConnectionError:
                break
            else:
                idle = 0
                flood.sent += count
                at = (at + count) % len(chunk)
            await asyncio.sleep(0)
        if idle > STALLED:
            flood.ended = "stalled"

    async def _settle(self) -> None:
        """Wait until the server reads no more."""
        await until(lambda: self.closed or self.stopped or self._unread() == 0)
        for _ in range(STALLED):
            await asyncio.sleep(0)

    def _unread(self) -> int:
        """Return the number of bytes that the server's socket has not received."""
        return int.from_bytes(fcntl.ioctl(self.sock, termios.TIOCOUTQ, bytes(4)), sys.byteorder)


def make_service(seen: list[object]) -> Service:
    service = Service()

    @service.call("echo")
    def echo(request: Payload) -> Payload:
        return request

    @service.call("bug")
    def bug(request: Payload) -> bytes:
        raise KeyError("a secret")

    @service.call("never")
    async def never(request: Payload) -> bytes:
        seen.append("begun")
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            seen.append("ended")
        return b""

    @service.call("large")
    def large(request: Payload) -> bytes:
        return bytes(MIB)

    @service.fire("log")
    async def log(request: Payload) -> None:
        await asyncio.sleep(0)

    @service.stream("count")
    def count(request: Payload) -> Iterator[bytes]:
        while True:
            yield bytes(1_000)

    return service


def opening(dialect: Dialect, lifetime: float = 90.0) -> bytes:
    """Return the SETUP of a client of `dialect`, whose routes are plain text."""
    settings = Settings(metadata_mime="text/plain", keepalive_lifetime=lifetime)
    return dialect.codec().frame(setup_frame(dialect, settings, Payload(), None))


@asynccontextmanager
async def attack(
    dialect: str = V1, set_up: bool = True, lifetime: float = 90.0, **limits: Any
) -> AsyncIterator[Attack]:
    """Serve with `limits`, connect, and finally check that the server still answers another client.

    Args:
        dialect: What the attacker speaks.
        set_up: Whether it begins with a sound SETUP.
        lifetime: Seconds of silence after which it says that it is dead.
        limits: The server's settings.

    """
    seen: list[object] = []
    settings = Settings(close_grace=0.0, **limits)
    async with weirpool.serve(make_service(seen), "rsocket+tcp://127.0.0.1:0", settings=settings) as server:
        port = int(server.urls[0].rpartition(":")[2])
        with socket.socket() as sock:
            # Otherwise the system may keep tens of megabytes for a peer that reads nothing.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
            sock.connect(("127.0.0.1", port))
            sock.setblocking(False)
            made = Attack(server, sock, seen)
            if set_up:
                await made.say(opening(DIALECTS[dialect], lifetime))
                await until(lambda: made.driver is not None)
            yield made
            async with weirpool.connect(server.urls[0]) as other:
                assert (await other.call("echo", b"still here")).data == b"still here"
