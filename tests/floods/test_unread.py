"""Floods of items and requests that nobody consumes stay within the limits of the ledger. THREATS 84, 85"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

import weirpool
from tests.floods.flooding import BESIDES, LIMITS, MIB, quiet, victim
from tests.floods.victim import to_client
from tests.transports.certificates import Certificates
from weirpool import Payload, Peer, Service, WeirpoolError

ITEM = b'"' + bytes(MIB // 2 - 2).replace(b"\0", b"x") + b'"'
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
# Their links differ, not the protocols: two protocols are enough.
OTHERS = [f"{protocol}+{transport}" for protocol in ("rsocket", "river") for transport in ("tls", "unix", "quic")]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def url(request: pytest.FixtureRequest, where: str, certificates: Certificates, tmp_path: Path) -> str:
    """Where to listen."""
    transport = where.rpartition("+")[2]
    if transport == "unix":
        return f"{where}://{tmp_path}/socket"
    options = f"?{certificates.server_options}" if transport in ("tls", "quic") else ""
    return f"{where}://127.0.0.1:0{'/feed' if transport in ('ws', 'h2c') else ''}{options}"


async def items() -> AsyncIterator[bytes]:
    for _ in range(ITEMS):
        yield ITEM


@pytest.mark.parametrize("where", UPLOADING + OTHERS)
async def test_upload_that_is_not_read(build: str, url: str) -> None:
    async with victim(build, "server", url, unread_timeout=0.5) as flooded:
        address = to_client(flooded.url)
        async with weirpool.connect(address, settings=quiet(address, close_grace=0.0)) as peer:
            with pytest.raises(WeirpoolError):
                await peer.upload("flood.unread", ITEM, items())
            assert (await peer.call("flood.echo", b"1")).data == b"1"
        said = await flooded.report()
        assert said["payments"] == 1
        assert LIMITS["max_connection_bytes"] < said["booked"] <= LIMITS["max_connection_bytes"] + 2 * MIB
        assert said["grown"] <= LIMITS["max_connection_bytes"] + BESIDES
        # River keeps a few small messages until they are acknowledged.
        assert said["held"] < 4096


async def ask(build: str, url: str, make: Callable[[Peer], Awaitable[object]], besides: int = 2 * MIB) -> None:
    """Make requests whose handlers wait; the largest pay, and a client that comes later is served."""
    async with victim(build, "server", url, unread_timeout=0.2) as flooded:
        address = to_client(flooded.url)
        async with weirpool.connect(address, settings=quiet(address, close_grace=0.0)) as peer:
            requests = [asyncio.ensure_future(make(peer)) for _ in range(ITEMS // 2)]
            done, pending = await asyncio.wait(requests, return_when=asyncio.FIRST_COMPLETED)
            assert all(isinstance(each.exception(), WeirpoolError) for each in done)
            async with weirpool.connect(address) as innocent:
                assert (await innocent.call("flood.echo", ITEM)).data == ITEM
            for request in pending:
                request.cancel()
            await asyncio.gather(*requests, return_exceptions=True)
        said = await flooded.report()
        assert said["booked"] <= LIMITS["max_connection_bytes"] + besides
        assert said["grown"] <= LIMITS["max_connection_bytes"] + BESIDES


@pytest.mark.parametrize("where", PLACES + OTHERS)
async def test_requests_of_handlers_that_wait(build: str, url: str) -> None:
    await ask(build, url, lambda peer: peer.call("flood.waits", ITEM))


@pytest.mark.parametrize("where", PLACES)
async def test_requests_of_streams_that_wait(build: str, url: str) -> None:
    async def stream(peer: Peer) -> None:
        async for _ in peer.stream("flood.sleeps", ITEM):
            pass

    await ask(build, url, stream)


@pytest.mark.parametrize("where", ["rsocket+tcp", "river+tcp", "river+ws"])
async def test_requests_that_are_decoded(build: str, url: str) -> None:
    # Decoded, it takes little more than its bytes.
    await ask(build, url, lambda peer: peer.call("flood.typed", b"[" + ITEM + b"]"))


@pytest.mark.parametrize("where", ["rsocket+tcp", "rsocket+ws"])
async def test_requests_that_grow_when_they_are_decoded(build: str, url: str) -> None:
    # Decoded, each takes thirty times as much as its bytes.
    small = b"[" + b"[]," * (MIB // 64) + b"[]]"
    # One read has several of them.
    await ask(build, url, lambda peer: peer.call("flood.lists", small), 8 * MIB)


@pytest.mark.parametrize("where", ["reactive-streams+tcp", *PLACES, *OTHERS])
async def test_stream_whose_consumer_sleeps(build: str, url: str) -> None:
    service = Service()
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @service.stream("flood.items")
    async def flood(request: Payload) -> AsyncIterator[bytes]:
        try:
            async for item in items():
                yield item
        finally:
            ended.set_result(None)

    async with weirpool.serve(service, url, settings=quiet(url, serving=True, close_grace=0.0)) as server:
        async with victim(build, "client", to_client(server.urls[0]), unread_timeout=0.2) as flooded:
            await ended
            said = await flooded.report()
            assert said["booked"] <= LIMITS["max_connection_bytes"] + 2 * MIB
            assert said["grown"] <= LIMITS["max_connection_bytes"] + BESIDES


@pytest.mark.parametrize("where", ["rsocket+tls"])
async def test_read_responses_leave_nothing_in_buffers_of_tls(build: str, url: str) -> None:
    async with victim(build, "server", url) as flooded, AsyncExitStack() as stack:
        address = to_client(flooded.url)
        for _ in range(8):
            connecting = weirpool.connect(address, settings=quiet(address, close_grace=0.0))
            peer = await stack.enter_async_context(connecting)
            large = bytes(4 * MIB)
            assert (await peer.call("flood.echo", large)).data == large
        said = await flooded.report()
        assert said["resident"] <= said["held"] + BESIDES
