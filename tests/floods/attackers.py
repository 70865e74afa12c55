"""Clients that flood a server with bytes of their own making, from an address of their own."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.floods.flooding import Victim
from weirpool import Payload, Settings
from weirpool.rsocket.dialect import DIALECTS
from weirpool.rsocket.handshake import setup_frame
from weirpool.urls import parse_url
from weirpool.wire.rsocket.frames import FOLLOWS, METADATA, NEXT, Frame, FrameType

ATTACKER = "127.0.0.2"
"""Another address of this machine, so that an honest client is another identity."""
V1 = DIALECTS["rsocket-1.0"]
CODEC = V1.codec()
# The client says that it is dead after 24 days of silence.
SETTINGS = Settings(keepalive_lifetime=2_147_483.0, metadata_mime="message/x.rsocket.routing.v0")
SETUP = CODEC.frame(setup_frame(V1, SETTINGS, Payload(), None))

needs_second_address = pytest.mark.skipif(
    not hasattr(socket, "SO_REUSEPORT"), reason="needs a second loopback address, as Linux has it"
)


def request(size: int, stream_id: int = 1, follows: bool = False) -> bytes:
    """Return a request with `size` bytes of data, or the first fragment of one."""
    frame = Frame(FrameType.REQUEST_RESPONSE, stream_id, FOLLOWS if follows else 0, 0, None, bytes(size))
    return CODEC.frame(frame)


def call(route: str, size: int, stream_id: int) -> bytes:
    """Return a request to a handler, with `size` bytes of data."""
    name = route.encode()
    frame = Frame(FrameType.REQUEST_RESPONSE, stream_id, METADATA, 0, bytes([len(name)]) + name, bytes(size))
    return CODEC.frame(frame)


def resumable(token: bytes) -> bytes:
    """Return the SETUP of a session that can be resumed."""
    return CODEC.frame(setup_frame(V1, SETTINGS, Payload(), token))


def stream(route: str, count: int = 0x7FFF_FFFF) -> bytes:
    """Return a request for `count` items of a stream."""
    name = route.encode()
    return CODEC.request_frame(FrameType.REQUEST_STREAM, 1, 0, count, bytes([len(name)]) + name, b"")


def channel(route: str, *sizes: int) -> bytes:
    """Return the beginning of a channel, and items of these sizes."""
    name = route.encode()
    begun = CODEC.request_frame(FrameType.REQUEST_CHANNEL, 1, 0, 1, bytes([len(name)]) + name, b"")
    return begun + b"".join(CODEC.frame(Frame(FrameType.PAYLOAD, 1, NEXT, 0, None, bytes(size))) for size in sizes)


def upgrade(path: str) -> bytes:
    """Return the request that opens a WebSocket."""
    lines = (
        f"GET {path} HTTP/1.1",
        "Host: 127.0.0.1",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version: 13",
    )
    return "\r\n".join((*lines, "", "")).encode()


@asynccontextmanager
async def links(flooded: Victim, *hellos: bytes) -> AsyncIterator[list[socket.socket]]:
    """Open a link of the attacker for each of `hellos`, with which it begins."""
    opened: list[socket.socket] = []
    try:
        for hello in hellos:
            opened.append(
                socket.create_connection(("127.0.0.1", parse_url(flooded.url).port), source_address=(ATTACKER, 0))
            )
            opened[-1].setblocking(False)
            await asyncio.get_running_loop().sock_sendall(opened[-1], hello)
        yield opened
    finally:
        for sock in opened:
            sock.close()


async def flood(sock: socket.socket, data: bytes) -> None:
    """Send `data`, and wait until the server closes the link."""
    loop = asyncio.get_running_loop()
    try:
        await loop.sock_sendall(sock, data)
        while await loop.sock_recv(sock, 65_536):
            pass
    except ConnectionError:
        pass


async def read(sock: socket.socket, count: int) -> None:
    """Read at least `count` bytes, unless the server closes the link."""
    loop = asyncio.get_running_loop()
    try:
        while count > 0 and (data := await loop.sock_recv(sock, 1 << 20)):
            count -= len(data)
    except ConnectionError:
        pass
