"""Floods of items and requests that nobody consumes stay within the limits of the ledger. THREATS 84, 85"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

import penstock
from penstock import Payload, PenstockError, Service
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
        assert said["held"] == 0


@pytest.mark.parametrize("where", PLACES)
async def test_requests_of_handlers_that_wait(build: Build, where: str) -> None:
    async with victim(build, "server", place(where), unread_timeout=0.2) as flooded:
        async with penstock.connect(flooded.url, settings=quiet(flooded.url, close_grace=0.0)) as peer:
            calls = [asyncio.ensure_future(peer.call("flood.waits", ITEM)) for _ in range(ITEMS // 2)]
            done, pending = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
            assert all(isinstance(each.exception(), PenstockError) for each in done)
            async with penstock.connect(flooded.url) as innocent:
                assert (await innocent.call("flood.echo", ITEM)).data == ITEM
            for call in pending:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
        said = await flooded.report()
        assert said["booked"] <= LIMITS["max_connection_bytes"] + 2 * MIB
        assert said["grown"] <= LIMITS["max_connection_bytes"] + BESIDES


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
