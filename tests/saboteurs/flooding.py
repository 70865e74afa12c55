"""The laboratory of the ledger: a server that is flooded in this process, by clients whose memory does not grow."""

from __future__ import annotations

import asyncio
import ctypes
import gc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import weirpool
from tests.floods.attackers import SETUP, call, links, read, request, resumable, stream
from tests.floods.victim import PROCESS, make_service, resident
from tests.waiting import until
from weirpool import Peer, Settings, WeirpoolError
from weirpool.ledger import LEDGER

__all__ = ["floods", "greed"]

MIB = 1 << 20
LIMIT = 8 * MIB
BESIDES = 20 * MIB
"""Memory in addition to the limit: reads and writes of both sides, and what the allocator keeps."""
PATIENCE = 8.0
"""Seconds for a flood, which takes less than one."""
LIMITS = {
    "max_stream_bytes": MIB,
    "max_connection_bytes": 4 * MIB,
    "max_identity_bytes": 6 * MIB,
    "max_process_bytes": LIMIT,
    "unread_timeout": 0.2,
    "frame_timeout": 0.2,
    "close_grace": 0.0,
}
ITEM = bytes(MIB)
PART = MIB - 4096
"""A fragment of each stranger, so that all of them hold almost as much as the process may hold."""
MMAP_THRESHOLD = -3
"""The parameter of `mallopt`."""
COUNT = 64

Flood = Callable[[Any, Peer], Awaitable[None]]


async def items() -> AsyncIterator[bytes]:
    for _ in range(COUNT):
        yield ITEM


async def uploads(server: Any, peer: Peer) -> None:
    with suppress(WeirpoolError):
        await peer.upload("flood.unread", ITEM, items())


async def requests(server: Any, peer: Peer) -> None:
    loop = asyncio.get_running_loop()
    async with links(server, SETUP) as (sock,):
        with suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(1.0):
                for number in range(COUNT):
                    await loop.sock_sendall(sock, call("flood.waits", MIB, 2 * number + 1))


async def halves(server: Any, peer: Peer) -> None:
    """Send halves of frames, and wait until all links are closed."""
    half = request(4 * MIB)[: -MIB // 2]
    loop = asyncio.get_running_loop()
    async with links(server, *[SETUP] * 20) as opened:
        for sock in opened:
            with suppress(TimeoutError, ConnectionError):
                async with asyncio.timeout(0.1):
                    await loop.sock_sendall(sock, half)
        await asyncio.gather(*(read(sock, MIB) for sock in opened))


async def unconfirmed(server: Any, peer: Peer) -> None:
    """Read much of many sessions, confirm nothing, and leave."""
    hellos = [resumable(b"token %04d" % number) + stream("flood.items") for number in range(10)]
    async with links(server, *hellos) as opened:
        for sock in opened:
            await read(sock, 6 * MIB)
            sock.close()


async def consumed(server: Any, peer: Peer) -> None:
    """Consume much more than a stream may hold."""
    async with peer.stream("flood.items") as found:
        count = 0
        async for _ in found:
            count += 1
            if count == COUNT:
                break


def _base() -> int:
    """Return the memory in use, and let the maximum begin there. Large items are allocated separately from now on."""
    libc = ctypes.CDLL(None)
    libc.mallopt(MMAP_THRESHOLD, 65_536)
    gc.collect()
    libc.malloc_trim(0)
    (PROCESS / "clear_refs").write_text("5")
    return resident("VmRSS")


async def _flooded(flood: Flood) -> str:
    """Return what is wrong with a server that is flooded; empty if nothing is."""
    async with weirpool.serve(make_service(), "rsocket+tcp://127.0.0.1:0", settings=Settings(**LIMITS)) as server:
        async with weirpool.connect(server.urls[0], settings=Settings(close_grace=0.0)) as peer:
            await peer.call("flood.echo", ITEM)
            base = _base()
            try:
                async with asyncio.timeout(PATIENCE):
                    await flood(SimpleNamespace(url=server.urls[0]), peer)
                    async with weirpool.connect(server.urls[0], settings=Settings(close_grace=0.0)) as innocent:
                        await innocent.call("flood.echo", ITEM)
            except TimeoutError:
                return f"{flood.__name__}: no end after {PATIENCE:g} s"
            except WeirpoolError as error:
                return f"{flood.__name__}: an honest call fails: {error}"
            grown = resident("VmHWM") - base
            return f"{flood.__name__}: {grown} bytes more" if grown > LIMIT + BESIDES else ""


def floods(folder: Path) -> Iterator[str]:
    """Flood a server; its memory stays within its limit, and an honest client is served (SF2 to SF5)."""
    for flood in (uploads, requests, halves, unconfirmed, consumed):
        wrong = asyncio.run(_flooded(flood))
        if wrong:
            yield wrong


async def _greedy() -> str:
    limits: dict[str, Any] = {**LIMITS, "max_identity_bytes": 32 * MIB, "max_connection_bytes": 32 * MIB}
    limits.update(max_process_bytes=64 * MIB, max_process_reassembly_bytes=LIMIT)
    limits.update(unread_timeout=30.0, frame_timeout=30.0)
    held = 8 * PART
    async with weirpool.serve(make_service(), "rsocket+tcp://127.0.0.1:0", settings=Settings(**limits)) as server:
        loop = asyncio.get_running_loop()
        async with links(SimpleNamespace(url=server.urls[0]), *[SETUP] * 8) as opened:
            for sock in opened:
                await loop.sock_sendall(sock, request(PART, follows=True))
            # Input waits for its turn.
            try:
                async with asyncio.timeout(PATIENCE):
                    await until(lambda: LEDGER.snapshot().incomplete_bytes >= held)
            except TimeoutError:
                return f"of the strangers' {held} bytes, {LEDGER.snapshot().incomplete_bytes} are held"
            honest = Settings(close_grace=0.0, fragment_bytes=16 << 10)
            async with weirpool.connect(server.urls[0], settings=honest) as innocent:
                try:
                    async with asyncio.timeout(PATIENCE):
                        await innocent.call("flood.echo", bytes(2 * MIB))
                except (TimeoutError, WeirpoolError) as error:
                    return f"an honest call fails: {error!r}"
    return ""


def greed(folder: Path) -> Iterator[str]:
    """Let strangers hold as many fragments as the process may hold; an honest client that holds few is served (SF3)."""
    wrong = asyncio.run(_greedy())
    if wrong:
        yield wrong
