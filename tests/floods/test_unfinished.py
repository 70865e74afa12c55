"""Floods of what is never complete stay within the limits of the ledger. THREATS 86, 87"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

import penstock
from penstock import Payload, Settings
from penstock.rsocket.dialect import DIALECTS
from penstock.rsocket.handshake import setup_frame
from penstock.wire.rsocket.frames import FOLLOWS, Frame, FrameType
from tests.builds import Build
from tests.floods.flooding import BESIDES, LIMITS, MIB, QUIET, Victim, victim

LINKS = 40
READ_BYTES = 256 << 10
ATTACKER = "127.0.0.2"
"""Another address of this machine, so that the honest client is another identity."""
V1 = DIALECTS["rsocket-1.0"]
# The client says that it is dead after 24 days of silence.
SETUP = V1.codec().frame(setup_frame(V1, Settings(keepalive_lifetime=2_147_483.0), Payload(), None))


@asynccontextmanager
async def links(flooded: Victim, count: int) -> AsyncIterator[list[socket.socket]]:
    """Open links of the attacker, each with a SETUP."""
    port = int(flooded.url.rpartition(":")[2])
    opened: list[socket.socket] = []
    try:
        for _ in range(count):
            opened.append(socket.create_connection(("127.0.0.1", port), source_address=(ATTACKER, 0)))
            opened[-1].setblocking(False)
            await asyncio.get_running_loop().sock_sendall(opened[-1], SETUP)
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


async def check(flooded: Victim) -> None:
    """Check that an honest client was served, and what the process held."""
    async with penstock.connect(flooded.url, settings=Settings(**QUIET)) as innocent:
        large = bytes(3 * MIB)
        assert (await innocent.call("flood.echo", large)).data == large
    said = await flooded.report()
    # All links may be read once before they wait.
    limit = LIMITS["max_identity_bytes"] + LINKS * READ_BYTES + len(large)
    assert said["booked"] <= limit
    # Each link has a buffer for the next read, too.
    assert said["grown"] <= limit + LINKS * READ_BYTES + BESIDES


@pytest.mark.skipif(not hasattr(socket, "SO_REUSEPORT"), reason="needs a second loopback address, as Linux has it")
async def test_half_a_frame_from_many_links(build: Build) -> None:
    half = V1.codec().frame(Frame(FrameType.REQUEST_RESPONSE, 1, 0, 0, None, bytes(2 * MIB)))[: -MIB // 2]
    async with victim(build, "server", "rsocket+tcp://127.0.0.1:0", frame_timeout=1.0) as flooded:
        async with links(flooded, LINKS) as opened:
            await asyncio.gather(*(flood(sock, half) for sock in opened))
            await check(flooded)


async def test_fragments_from_many_links(build: Build) -> None:
    codec = V1.codec()
    part = codec.frame(Frame(FrameType.REQUEST_RESPONSE, 1, FOLLOWS, 0, None, bytes(MIB)))
    async with victim(build, "server", "rsocket+tcp://127.0.0.1:0", unread_timeout=1.0) as flooded:
        async with links(flooded, LINKS) as opened:
            loop = asyncio.get_running_loop()
            # Some wait until others have been dropped.
            await asyncio.gather(*(loop.sock_sendall(sock, part) for sock in opened))
            await check(flooded)
