"""Floods of items and requests that nobody consumes stay within the limits of the ledger. THREATS 84, 85"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

import penstock
from penstock import Payload, Peer, PenstockError, Service
from tests.builds import Build
from tests.floods.flooding import BESIDES, LIMITS, MIB, quiet, victim

ITEM = b'"' + bytes(MIB - 2).replace(b"\0", b"x") + b'"'
"""Also valid as the body of a River message."""
ITEMS = 96
"""Together, three times what the process may hold."""
PLACES = [
    f"{protocol}+{transport}"
    for protocol in ("rsocket", "reactivesocket-0.2", "reactivesocket-0.0", "river")
    for transport in ("tcp", "ws", "h2c")
]


# ReactiveSocket 0.0 has no uploads.
UPLOADING = [place for place in PLACES if "0.0" not in place]


def place(name: str) -> str:
    return f"{name}://127.0.0.1:0{'' if name.endswith('tcp') else '/feed'}"


async def items() -> AsyncIterator[bytes]:
    for _ in range(ITEMS):
        yield ITEM


@pytest.mark.parametrize("where", UPLOADING)
async def test_upload_that_is_not_read(build: Build, where: str) -> None:
    async with victim(build, "server", place(where), unread_timeout=0.5) as flooded:
        async with penstock.connect(flooded.url, settings=quiet(flooded.url, close_grace=0.0)) as peer:
            with pytest.raises(PenstockError):
                await peer.upload("flood.unread", ITEM, items())
            assert (await peer.call("flood.echo", b"1")).data == b"1"
        said = await flooded.report()
        assert said["payments"] == 1
        assert LIMITS["max_connection_bytes"] < said["booked"] <= LIMITS["max_connection_bytes"] + 2 * MIB
        assert said["grown"] <= LIMITS["max_connection_bytes"] + BESIDES
        # River keeps a few small messages until they are acknowledged.
        assert said["held"] < 4096


async def ask(build: Build, where: str, make: Callable[[Peer], Awaitable[object]]) -> None:
    """Make requests whose handlers wait; the largest pay, and a client that comes later is served."""
    async with victim(build, "server", place(where), unread_timeout=0.2) as flooded:
        async with penstock.connect(flooded.url, settings=quiet(flooded.url, close_grace=0.0)) as peer:
            requests = [asyncio.ensure_future(make(peer)) for _ in range(ITEMS // 2)]
            done, pending = await asyncio.wait(requests, return_when=asyncio.FIRST_COMPLETED)
            assert all(isinstance(each.exception(), PenstockError) for each in done)
            async with penstock.connect(flooded.url) as innocent:
                assert (await innocent.call("flood.echo", ITEM)).data == ITEM
            for request in pending:
                request.cancel()
            await asyncio.gather(*requests, return_exceptions=True)
        said = await flooded.report()
        assert said["booked"] <= LIMITS["max_connection_bytes"] + 2 * MIB
        assert said["grown"] <= LIMITS["max_connection_bytes"] + BESIDES


@pytest.mark.parametrize("where", PLACES)
async def test_requests_of_handlers_that_wait(build: Build, where: str) -> None:
    await ask(build, where, lambda peer: peer.call("flood.waits", ITEM))


@pytest.mark.parametrize("where", PLACES)
async def test_requests_of_streams_that_wait(build: Build, where: str) -> None:
    async def stream(peer: Peer) -> None:
        async for _ in peer.stream("flood.sleeps", ITEM):
            pass

    await ask(build, where, stream)


@pytest.mark.parametrize("where", ["rsocket+tcp", "river+tcp", "river+ws"])
async def test_requests_that_are_decoded(build: Build, where: str) -> None:
    # Decoded, it takes little more than its bytes.
    await ask(build, where, lambda peer: peer.call("flood.typed", b"[" + ITEM + b"]"))


@pytest.mark.parametrize("where", ["reactive-streams+tcp", *PLACES])
async def test_stream_whose_consumer_sleeps(build: Build, where: str) -> None:
    service = Service()
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @service.stream("flood.items")
    async def flood(request: Payload) -> AsyncIterator[bytes]:
        try:
            async for item in items():
                yield item
        finally:
            ended.set_result(None)

    url = place(where)
    async with penstock.serve(service, url, settings=quiet(url, serving=True, close_grace=0.0)) as server:
        async with victim(build, "client", server.urls[0], unread_timeout=0.5) as flooded:
            await ended
            said = await flooded.report()
            assert said["booked"] <= LIMITS["max_connection_bytes"] + 2 * MIB
            assert said["grown"] <= LIMITS["max_connection_bytes"] + BESIDES
