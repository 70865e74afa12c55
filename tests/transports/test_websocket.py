from __future__ import annotations

from typing import Any

from websockets.asyncio.server import ServerConnection
from websockets.extensions.permessage_deflate import ClientPerMessageDeflateFactory
from websockets.frames import Frame, Opcode

from tests.transports.recording import connected, listening
from tests.transports.their_websockets import WS, close_code, prefixed, send_raw, their_client, their_server
from weirpool import ProtocolError, Settings


async def test_a_client_of_another_make_is_served() -> None:
    async with listening(f"{WS}/feed") as place, their_client(place, "/feed") as client:
        server = await place.linked()
        assert client.subprotocol == "rsocket"
        await client.send(b"hello")
        await client.send([b"in ", b"", b"parts"])
        await server.has(prefixed(b"hello", b"in parts"))
        server.link.write(prefixed(b"a", b"x" * 200_000))
        assert [await client.recv(), await client.recv()] == [b"a", b"x" * 200_000]
        server.link.close()
        assert await close_code(client) == 1000
        assert await server.lost() is None


async def test_a_server_of_another_make_is_spoken_to() -> None:
    seen: list[Any] = []

    async def echo(peer: ServerConnection) -> None:
        seen.append(peer)
        async for message in peer:
            await peer.send(message)

    async with their_server(echo) as url:
        client = await connected(url)
        client.link.write(prefixed(b"a", b"", b"x" * 200_000))
        await client.has(prefixed(b"a", b"", b"x" * 200_000))
        [peer] = seen
        assert (peer.subprotocol, peer.protocol.extensions) == ("rsocket", [])
        client.link.close()
        assert await client.lost() is None
        assert await close_code(peer) == 1000


async def test_headers_of_the_settings_reach_the_server() -> None:
    seen: list[str] = []

    async def note(peer: ServerConnection) -> None:
        assert peer.request is not None
        seen.append(peer.request.headers["Authorization"])

    async with their_server(note) as url:
        client = await connected(url, Settings(headers=(("Authorization", "Bearer secret"),)))
        await client.lost()
        assert seen == ["Bearer secret"]


async def test_compression_is_not_agreed_on_and_not_accepted() -> None:
    # THREATS 8: a compressed bomb.
    async with (
        listening(WS) as place,
        their_client(place, compression=None, extensions=[ClientPerMessageDeflateFactory()]) as client,
    ):
        server = await place.linked()
        assert client.protocol.extensions == []
        await send_raw(client, Frame(Opcode.BINARY, b"x"))
        client.transport.write(b"\xc2\x80\0\0\0\0")
        assert await close_code(client) == 1002
        error = await server.lost()
        assert isinstance(error, ProtocolError) and "reserved bits" in str(error)
