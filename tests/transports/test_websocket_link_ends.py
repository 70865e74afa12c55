"""How WebSocket links end: what still arrives, and which peers are waited for."""

from __future__ import annotations

import asyncio

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.server import ServerConnection
from websockets.frames import Frame, Opcode

from tests.transports.recording import Recorder, connected, joined, listening
from tests.transports.their_websockets import WS, close_code, prefixed, send_raw, their_client, their_server
from tests.waiting import turns, until
from weirpool import LinkLost
from weirpool.transports import lingering, tcp, websocket_link
from weirpool.transports.websocket_frames import message_frames


async def test_output_before_close_arrives() -> None:
    for closes in ("client", "server"):
        async with joined(WS) as (client, server):
            this, other = (client, server) if closes == "client" else (server, client)
            data = prefixed(*[bytes(100_000)] * 30)
            this.link.write(data)
            this.link.close()
            this.link.close()
            this.link.write(prefixed(b"too late"))
            await other.has(data)
            assert (await other.lost(), await this.lost()) == (None, None)


async def test_link_reads_on_after_close_until_peer_closes() -> None:
    async with listening(WS) as place, their_client(place) as client:
        server = await place.linked()
        server.link.close()
        await send_raw(client, *(Frame(Opcode.BINARY, bytes(50_000)) for _ in range(20)))
        assert await close_code(client) == 1000
        assert await server.lost() is None


@pytest.mark.parametrize("ours", ["client", "server"])
async def test_link_that_closes_holds_no_input(ours: str) -> None:
    # Nobody counts it after the session has ended, and the peer may not close for a long time.
    async with joined(WS) as (client, server):
        this, other = (client, server) if ours == "client" else (server, client)
        half = b"".join(message_frames([bytes(200_000)], ours == "server"))[:150_000]
        other.link._link.write(half)
        await this.until(lambda: this.link.unfinished >= len(half))
        this.link.close()
        assert this.link.unfinished == 0
        other.link._link.write(half)
        assert (await other.lost(), await this.lost()) == (None, None)
        assert this.link.unfinished == 0


async def test_a_peer_that_does_not_answer_a_close_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp, "LINGER", 0.0)
    async with listening(WS) as place, their_client(place) as client:
        server = await place.linked()
        client.transport.pause_reading()
        server.link.close()
        assert await server.lost() is None
        client.transport.abort()


@pytest.mark.parametrize("ours", ["client", "server"])
async def test_a_message_under_way_arrives_when_the_peer_closes(monkeypatch: pytest.MonkeyPatch, ours: str) -> None:
    # THREATS 91: River's own implementation closes a link over which it hears nothing whole for two seconds, and takes
    # what still comes. Nothing but its size keeps this message from having left before.
    monkeypatch.setattr(websocket_link, "LINGER", 0.0)
    monkeypatch.setattr(tcp, "LINGER", 0.0)
    message = bytes(16_000_000)

    async def closes_in_the_middle(recorder: Recorder, peer: ClientConnection | ServerConnection) -> None:
        peer.transport.pause_reading()
        recorder.link.write(prefixed(message))
        await send_raw(peer, Frame(Opcode.CLOSE, b"\x03\xe8"))
        await until(lambda: recorder.link._closing)
        await turns(10)
        peer.transport.resume_reading()
        assert await peer.recv() == message
        assert await close_code(peer) == 1000

    if ours == "server":
        async with listening(WS) as place, their_client(place, max_size=None) as client:
            await closes_in_the_middle(await place.linked(), client)
        return
    peers: asyncio.Queue[ServerConnection] = asyncio.Queue()

    async def handler(connection: ServerConnection) -> None:
        peers.put_nowait(connection)
        await connection.wait_closed()

    async with their_server(handler, max_size=None) as url:
        recorder = await connected(url)
        await closes_in_the_middle(recorder, await peers.get())


@pytest.mark.parametrize("size", [100, websocket_link.LARGE])
async def test_link_waits_longer_when_a_large_message_is_in_transit(size: int) -> None:
    # THREATS 91: its system has handed all of it on, and it is the network that is slow.
    closed = asyncio.Event()

    async def handler(connection: ServerConnection) -> None:
        await connection.recv()
        await send_raw(connection, Frame(Opcode.CLOSE, b"\x03\xe8"))
        await closed.wait()
        connection.transport.abort()

    async with their_server(handler) as url:
        recorder = await connected(url)
        link = recorder.link
        link.write(prefixed(bytes(size)))
        await until(lambda: link._closing)
        looks = [link.progress() for _ in range(2)]
        seconds = link._ending._timer.when() - asyncio.get_running_loop().time()
        closed.set()
        await recorder.lost()
    if size < websocket_link.LARGE:
        assert looks[0][0] < websocket_link.LARGE
        assert seconds <= lingering.LINGER
    else:
        assert looks[0][0] == websocket_link.LARGE
        assert looks[0][1] < looks[1][1]
        assert lingering.LINGER < seconds <= lingering.MAX_LINGER


async def test_a_connection_that_ends_without_a_close_is_broken() -> None:
    async with listening(WS) as place, their_client(place) as client:
        server = await place.linked()
        client.transport.abort()
        error = await server.lost()
        assert isinstance(error, LinkLost)
        assert "without a WebSocket closing handshake" in str(error) or "reset" in str(error)


@pytest.mark.parametrize(
    ("code", "message"), [(1000, None), (1001, None), (1011, r"closed the WebSocket with 1011: 'a\\x1bb'")]
)
async def test_close_of_the_peer_is_answered_and_reported(
    monkeypatch: pytest.MonkeyPatch, code: int, message: str | None
) -> None:
    # RFC 6455, 7.1.1: it is the server who closes the connection, at once.
    monkeypatch.setattr(websocket_link, "LINGER", 1_000.0)
    async with listening(WS) as place, their_client(place, close_timeout=1_000) as client:
        server = await place.linked()
        await client.close(code, "a\x1bb")
        assert await close_code(client) == code
        error = await server.lost()
        if message is None:
            assert error is None
        else:
            assert isinstance(error, LinkLost)
            with pytest.raises(LinkLost, match=message):
                raise error


async def test_a_close_without_a_code_is_answered_in_kind() -> None:
    async with listening(WS) as place, their_client(place) as client:
        server = await place.linked()
        await send_raw(client, Frame(Opcode.CLOSE, b""))
        assert await close_code(client) == 1005
        assert await server.lost() is None
