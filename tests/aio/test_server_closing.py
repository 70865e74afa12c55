"""Links that reach a server while it closes."""

from __future__ import annotations

import asyncio
import socket
import time
from pathlib import Path

import pytest

import weirpool
from tests.waiting import turns, until
from weirpool import Payload, Reconnect, Service, Settings, SetupRejected
from weirpool.kinds import Kind
from weirpool.rsocket.session import RSocketSession

pytestmark = pytest.mark.usefixtures("tidy")

REJECTED = b"\x00\x00\x00\x03the server closes the connection"


def service_of(name: bytes, seen: list[bytes]) -> Service:
    service = Service()

    @service.call("name")
    def tell(request: Payload) -> bytes:
        seen.append(name)
        return name

    return service


def opening() -> bytes:
    """Return a client's first bytes: SETUP and a call."""
    session = RSocketSession.client(Settings(), Payload())
    session.link_up(0.0)
    session.open(Kind.CALL, "name", Payload())
    return b"".join(session.take_output())


def place_of(scheme: str, tmp_path: Path) -> str:
    return f"rsocket+unix://{tmp_path}/s" if scheme == "unix" else "rsocket+tcp://127.0.0.1:0"


def connected(url: str) -> socket.socket:
    """Return a socket that the system has connected, though the server has not accepted it."""
    if "unix" in url:
        client = socket.socket(socket.AF_UNIX)
        client.connect(url.partition("://")[2])
        return client
    return socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])))


async def read_all(client: socket.socket) -> bytes:
    client.setblocking(False)
    reader, writer = await asyncio.open_connection(sock=client)
    try:
        return await reader.read()
    finally:
        writer.close()
        await writer.wait_closed()


@pytest.mark.parametrize("scheme", ["tcp", "unix"])
async def test_queued_client_is_rejected_by_a_closing_server(scheme: str, tmp_path: Path) -> None:
    seen: list[bytes] = []
    server = await weirpool.serve(service_of(b"old", seen), place_of(scheme, tmp_path))
    client = connected(server.urls[0])
    client.sendall(opening())
    await server.close()
    assert (await read_all(client)).endswith(REJECTED)
    assert seen == []


async def test_client_that_is_late_with_its_set_up_is_rejected(tmp_path: Path) -> None:
    seen: list[bytes] = []
    server = await weirpool.serve(service_of(b"old", seen), place_of("tcp", tmp_path))
    client = connected(server.urls[0])
    await until(lambda: any(arrival._link is not None for arrival in server._arrivals))
    closing = asyncio.create_task(server.close())
    await until(lambda: not server._listeners[0]._sockets[0].fileno() >= 0)  # type: ignore[attr-defined]
    client.sendall(opening())
    await closing
    assert (await read_all(client)).endswith(REJECTED)
    assert seen == []


async def test_silent_client_does_not_delay_a_close_without_grace(tmp_path: Path) -> None:
    server = await weirpool.serve(service_of(b"old", []), place_of("tcp", tmp_path))
    with connected(server.urls[0]):
        await until(lambda: any(arrival._link is not None for arrival in server._arrivals))
        await server.close(0)


async def test_call_that_a_closing_server_did_not_accept_reaches_its_successor(tmp_path: Path) -> None:
    seen: list[bytes] = []
    url = place_of("unix", tmp_path)
    server = await weirpool.serve(service_of(b"old", seen), url)
    policy = Reconnect(first_delay=0.0, longest_delay=0.0)
    closing = asyncio.create_task(server.close())
    peer = await weirpool.connect(url, reconnect=policy)
    try:
        call = asyncio.create_task(peer.call("name"))
        await closing
        async with weirpool.serve(service_of(b"new", seen), url):
            assert (await call).data == b"new"
            assert seen == [b"new"]
    finally:
        await peer.close()


async def test_call_of_a_plain_peer_gets_the_rejection(tmp_path: Path) -> None:
    server = await weirpool.serve(service_of(b"old", []), place_of("unix", tmp_path))
    peer_task = asyncio.create_task(_connect(server.urls[0]))
    closing = asyncio.create_task(server.close())
    peer = await peer_task
    with pytest.raises(SetupRejected) as caught:
        await peer.call("name")
    assert caught.value.temporary and caught.value.closing
    await closing
    await peer.close()


async def _connect(url: str) -> weirpool.Peer:
    return await weirpool.connect(url)


async def test_closing_server_serves_fires_and_waits_for_their_handlers() -> None:
    # Nobody would learn that a fire was rejected.
    ended: list[bytes] = []
    held, release, fired = asyncio.Event(), asyncio.Event(), asyncio.Event()
    service = Service()

    @service.call("hold")
    async def hold(request: Payload) -> bytes:
        held.set()
        await release.wait()
        return b""

    @service.fire("note")
    async def note(request: Payload) -> None:
        fired.set()
        await release.wait()
        await turns(5)
        ended.append(request.data)

    server = await weirpool.serve(service, "rsocket+memory://fires")
    async with weirpool.connect("rsocket+memory://fires") as peer:
        call = asyncio.ensure_future(peer.call("hold"))
        await held.wait()
        closing = asyncio.ensure_future(server.close())
        await until(lambda: server._closing)
        await peer.fire("note", b"late")
        await fired.wait()
        release.set()
        await call
        await closing
    assert ended == [b"late"]


@pytest.mark.parametrize("leaves", [True, False])
async def test_requests_that_have_arrived_are_begun_before_a_server_closes(leaves: bool) -> None:
    service, seen = Service(), []

    @service.fire("log")
    def log(request: Payload) -> None:
        # As slow as it takes for the other requests to wait for later turns of the loop.
        time.sleep(0.005)
        seen.append(request.data)

    server = weirpool.serve(service, "rsocket+tcp://127.0.0.1:0")
    async with server:
        async with weirpool.connect(server.urls[0]) as peer:
            for number in range(100):
                await peer.fire("log", b"%d" % number)
            if not leaves:
                await until(lambda: bool(seen))
                await server.close()
    assert seen == [b"%d" % number for number in range(100)]


async def test_requests_that_are_not_decoded_in_time_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    service, seen = Service(), []

    @service.fire("log")
    def log(request: Payload) -> None:
        time.sleep(0.005)
        seen.append(request)

    async with weirpool.serve(service, "rsocket+tcp://127.0.0.1:0", settings=Settings(close_grace=0.05)) as server:
        async with weirpool.connect(server.urls[0]) as peer:
            for _ in range(200):
                await peer.fire("log")
            await until(lambda: bool(seen))
            await server.close()
    assert len(seen) < 200
    assert any("requests were received and not decoded" in record.getMessage() for record in caplog.records)
