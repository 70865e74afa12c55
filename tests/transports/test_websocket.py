from __future__ import annotations

import asyncio
import logging
import ssl
import tracemalloc
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trustme
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as their_connect
from websockets.asyncio.server import ServerConnection
from websockets.asyncio.server import serve as their_serve
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.extensions.permessage_deflate import ClientPerMessageDeflateFactory
from websockets.frames import Frame, Opcode
from websockets.typing import Origin, Subprotocol

import penstock
from penstock import ConnectError, LimitExceeded, LinkLost, LocalError, ProtocolError, Settings, UrlError
from penstock.transports import lingering, tcp, websocket
from penstock.transports.base import REFUSING
from penstock.transports.websocket_frames import message_frames
from tests.aio.serving import make_service
from tests.transports.recording import Place, Recorder, connected, joined, listening
from tests.waiting import turns, until

WS = "rsocket+ws://127.0.0.1:0"
SHORT = Settings(connect_timeout=0.05)
"""For what never comes."""


def prefixed(*messages: bytes) -> bytes:
    return b"".join(len(message).to_bytes(3, "big") + message for message in messages)


async def made(place: Place) -> Recorder:
    """The receiver of the link that comes in next, with its link."""
    server = await place.next()
    await server.until(lambda: server.link is not None)
    return server


@asynccontextmanager
async def their_client(place: Place, path: str = "/", **options: Any) -> AsyncIterator[ClientConnection]:
    """A client by the library."""
    options.setdefault("subprotocols", [Subprotocol("rsocket")])
    options.setdefault("compression", None)
    async with their_connect(f"ws://127.0.0.1:{place.port}{path}", proxy=None, **options) as client:
        yield client


@asynccontextmanager
async def their_server(handler: Callable[[ServerConnection], Any], **options: Any) -> AsyncIterator[str]:
    """A server by the library."""
    options.setdefault("subprotocols", [Subprotocol("rsocket")])
    async with their_serve(handler, "127.0.0.1", 0, **options) as server:
        yield f"rsocket+ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def close_code(peer: ClientConnection | ServerConnection) -> int | None:
    """Wait until `peer` is closed, and return what closed it."""
    await peer.wait_closed()
    return None if peer.protocol.close_rcvd is None else peer.protocol.close_rcvd.code


async def raw(peer: ClientConnection | ServerConnection, *frames: Frame) -> None:
    """Send frames that the library would not send by itself."""
    masked = isinstance(peer, ClientConnection)
    peer.transport.write(b"".join(frame.serialize(mask=masked) for frame in frames))


# Bytes.


async def test_what_is_written_arrives_in_order_both_ways() -> None:
    async with joined(WS) as (client, server):
        for number in range(10):
            client.link.write(prefixed(b"%d" % number))
            server.link.write(prefixed(b"", b"%d" % number)[:4])
            server.link.write(prefixed(b"", b"%d" % number)[4:])
        await server.has(prefixed(*(b"%d" % number for number in range(10))))
        await client.has(prefixed(*(part for number in range(10) for part in (b"", b"%d" % number))))
        assert (client.told, server.told) == (["made"], ["made"])


async def test_many_messages_are_one_write_and_few_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    async with joined(WS) as (client, server):
        writes: list[int] = []
        socket_link = client.link._link
        write = socket_link.write
        socket_link.write = lambda data: (writes.append(len(data)), write(data))
        many = prefixed(*(b"%04d" % number for number in range(10_000)))
        client.link.write(many)
        await server.has(many)
        assert len(writes) == 1
        assert server.reads < 20


async def test_what_begins_a_message_counts_as_waiting() -> None:
    async with joined(WS) as (client, server):
        client.link.write(b"\0\0\5ab")
        assert client.link.get_write_buffer_size() == 5
        client.link.write(b"cde")
        assert client.link.get_write_buffer_size() == 0
        await server.has(b"\0\0\5abcde")


async def test_a_part_of_a_message_is_told_of() -> None:
    # THREATS 91: who receives it learns that the peer lives, and gets the message when it is whole.
    async with joined(WS) as (client, server):
        frame = b"".join(message_frames([bytes(50_000)], True))
        reads = server.reads
        client.link._link.write(frame[:20_000])
        await server.until(lambda: server.reads > reads)
        assert server.data == b""
        client.link._link.write(frame[20_000:])
        await server.has(prefixed(bytes(50_000)))


@pytest.mark.parametrize("slow", ["server", "client"])
async def test_a_reader_that_is_slow_slows_its_writer(slow: str) -> None:
    async with joined(WS, Settings(output_high_bytes=1_000_000)) as (client, server):
        reader, writer = (server, client) if slow == "server" else (client, server)
        reader.link.pause_reading()
        written = b""
        while "paused" not in writer.told:
            writer.link.write(prefixed(bytes(50_000)))
            written += prefixed(bytes(50_000))
        assert writer.link.get_write_buffer_size() > 1_000_000
        await turns(50)
        assert writer.told == ["made", "paused"]
        reader.link.resume_reading()
        await writer.until(lambda: "resumed" in writer.told)
        await reader.has(written)


# Peers of another make.


async def test_a_client_of_another_make_is_served() -> None:
    async with listening(f"{WS}/feed") as place, their_client(place, "/feed") as client:
        server = await made(place)
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
        server = await made(place)
        assert client.protocol.extensions == []
        await raw(client, Frame(Opcode.BINARY, b"x"))
        client.transport.write(b"\xc2\x80\0\0\0\0")
        assert await close_code(client) == 1002
        error = await server.lost()
        assert isinstance(error, ProtocolError) and "reserved bits" in str(error)


async def test_two_frames_in_one_message_are_never_two() -> None:
    # THREATS 8: what stands behind the first belongs to it.
    seen: list[object] = []
    reached = asyncio.Event()
    async with penstock.serve(make_service(seen, reached), WS) as server:
        async with their_connect(server.urls[0].removeprefix("rsocket+"), proxy=None, compression=None) as client:
            setup = bytes.fromhex("00000000 0400 0001 0000 00004e20 00015f90")
            mime = b"message/x.rsocket.routing.v0"
            await client.send(setup + bytes((len(mime),)) + mime + b"\x18application/octet-stream")
            fire = (0x1500).to_bytes(2, "big") + (4).to_bytes(3, "big") + b"\x03log"
            frames = [number.to_bytes(4, "big") + fire + b"data" for number in (1, 3)]
            await client.send(b"".join(frames))
            await reached.wait()
            assert seen == [b"data" + frames[1]]


# What a peer must not do.


async def test_a_text_message_closes_the_connection() -> None:
    async with listening(WS) as place, their_client(place) as client:
        server = await made(place)
        await client.send(b"good")
        await client.send("text")
        assert await close_code(client) == 1003
        error = await server.lost()
        assert isinstance(error, ProtocolError) and "messages are binary" in str(error)
        assert server.data == prefixed(b"good")


async def test_a_message_that_is_too_long_is_not_taken() -> None:
    settings = Settings(max_frame_bytes=5_000, fragment_bytes=1_000, max_setup_frame_bytes=2_000)
    async with listening(WS, settings) as place:
        async with their_client(place) as client:
            server = await made(place)
            await client.send(bytes(2_000))
            await client.send(bytes(5_000))
            await server.has(prefixed(bytes(2_000), bytes(5_000)))
            client.transport.write(b"\x82\xfe\x13\x89")
            assert await close_code(client) == 1009
            assert isinstance(await server.lost(), LimitExceeded)
        async with their_client(place) as client:
            # Nobody has said yet who they are.
            await client.send(bytes(2_001))
            assert await close_code(client) == 1009


async def test_a_server_breaks_the_rules_no_more_than_a_client() -> None:
    async def talk(peer: ServerConnection) -> None:
        await peer.send("text")
        codes.append(await close_code(peer))

    codes: list[int | None] = []
    async with their_server(talk) as url:
        client = await connected(url)
        assert isinstance(await client.lost(), ProtocolError)
        await until(lambda: bool(codes))
    assert codes == [1003]


async def test_a_ping_is_answered() -> None:
    async with listening(WS) as place, their_client(place) as client:
        await (await client.ping(b"there?"))
        await made(place)


async def test_a_flood_of_pings_by_a_peer_that_does_not_read_costs_no_memory() -> None:
    # THREATS 8
    async with listening(WS, Settings(output_high_bytes=10_000)) as place, their_client(place) as client:
        server = await made(place)
        client.transport.pause_reading()
        flood = Frame(Opcode.PING, bytes(125)).serialize(mask=True) * 1_000
        tracemalloc.start()
        try:
            for _ in range(40):
                client.transport.write(flood)
                await until(lambda: client.transport.get_write_buffer_size() == 0)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert server.link.get_write_buffer_size() < 20_000
        assert peak < 3_000_000
        client.transport.resume_reading()
        await (await client.ping(b"last"))


async def test_the_last_ping_is_answered_once_the_peer_reads_again() -> None:
    async with joined(WS, Settings(output_high_bytes=100_000)) as (client, server):
        client.link.pause_reading()
        while "paused" not in server.told:
            server.link.write(prefixed(bytes(50_000)))
        before = server.link.get_write_buffer_size()
        client.link._link.write(Frame(Opcode.PING, b"there?").serialize(mask=True))
        await until(lambda: server.link._reader.ping is not None)
        assert server.link.get_write_buffer_size() == before
        client.link.resume_reading()
        await server.until(lambda: "resumed" in server.told)
        assert server.link._reader.ping is None


# Ends.


async def test_what_was_written_before_a_link_is_closed_arrives() -> None:
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


async def test_what_comes_in_after_a_close_is_read_until_the_peer_closes() -> None:
    async with listening(WS) as place, their_client(place) as client:
        server = await made(place)
        server.link.close()
        await raw(client, *(Frame(Opcode.BINARY, bytes(50_000)) for _ in range(20)))
        assert await close_code(client) == 1000
        assert await server.lost() is None


async def test_a_peer_that_does_not_answer_a_close_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket, "LINGER", 0.0)
    async with listening(WS) as place, their_client(place) as client:
        server = await made(place)
        client.transport.pause_reading()
        server.link.close()
        assert await server.lost() is None
        client.transport.abort()


@pytest.mark.parametrize("ours", ["client", "server"])
async def test_a_message_under_way_arrives_when_the_peer_closes(monkeypatch: pytest.MonkeyPatch, ours: str) -> None:
    # THREATS 91: River's own implementation closes a link over which it hears nothing whole for two seconds, and takes
    # what still comes. Nothing but its size keeps this message from having left before.
    monkeypatch.setattr(websocket, "LINGER", 0.0)
    monkeypatch.setattr(tcp, "LINGER", 0.0)
    message = bytes(16_000_000)

    async def closes_in_the_middle(recorder: Recorder, peer: ClientConnection | ServerConnection) -> None:
        peer.transport.pause_reading()
        recorder.link.write(prefixed(message))
        await raw(peer, Frame(Opcode.CLOSE, b"\x03\xe8"))
        await until(lambda: recorder.link._closing)
        await turns(10)
        peer.transport.resume_reading()
        assert await peer.recv() == message
        assert await close_code(peer) == 1000

    if ours == "server":
        async with listening(WS) as place, their_client(place, max_size=None) as client:
            await closes_in_the_middle(await made(place), client)
        return
    peers: asyncio.Queue[ServerConnection] = asyncio.Queue()

    async def handler(connection: ServerConnection) -> None:
        peers.put_nowait(connection)
        await connection.wait_closed()

    async with their_server(handler, max_size=None) as url:
        recorder = await connected(url)
        await closes_in_the_middle(recorder, await peers.get())


@pytest.mark.parametrize("size", [100, websocket.LARGE])
async def test_a_link_lives_while_a_large_message_may_be_on_its_way(size: int) -> None:
    # THREATS 91: its system has handed all of it on, and it is the network that is slow.
    closed = asyncio.Event()

    async def handler(connection: ServerConnection) -> None:
        await connection.recv()
        await raw(connection, Frame(Opcode.CLOSE, b"\x03\xe8"))
        await closed.wait()
        connection.transport.abort()

    async with their_server(handler) as url:
        recorder = await connected(url)
        link = recorder.link
        link.write(prefixed(bytes(size)))
        await until(lambda: link._closing)
        looks = [link.progress() for _ in range(2)]
        seconds = link._ending.when() - asyncio.get_running_loop().time()
        closed.set()
        await recorder.lost()
    if size < websocket.LARGE:
        assert looks[0][0] < websocket.LARGE
        assert seconds <= websocket.LINGER
    else:
        assert looks[0][0] == websocket.LARGE
        assert looks[0][1] < looks[1][1]
        assert websocket.LINGER < seconds <= lingering.LONGEST


async def test_a_connection_that_ends_without_a_close_is_broken() -> None:
    async with listening(WS) as place, their_client(place) as client:
        server = await made(place)
        client.transport.abort()
        error = await server.lost()
        assert isinstance(error, LinkLost)
        assert "without the closing handshake" in str(error) or "reset" in str(error)


@pytest.mark.parametrize(
    ("code", "message"), [(1000, None), (1001, None), (1011, r"closed the WebSocket with 1011: 'a\\x1bb'")]
)
async def test_a_close_of_the_peer_is_answered_and_says_why(
    monkeypatch: pytest.MonkeyPatch, code: int, message: str | None
) -> None:
    # RFC 6455, 7.1.1: it is the server who closes the connection, at once.
    monkeypatch.setattr(websocket, "LINGER", 1_000.0)
    async with listening(WS) as place, their_client(place, close_timeout=1_000) as client:
        server = await made(place)
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
        server = await made(place)
        await raw(client, Frame(Opcode.CLOSE, b""))
        assert await close_code(client) == 1005
        assert await server.lost() is None


# Handshakes.


@asynccontextmanager
async def stranger(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection by somebody who is not of ours."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


@pytest.mark.parametrize(("origin", "status"), [("https://app.example", 101), ("https://evil.example", 403)])
async def test_only_pages_that_are_listed_may_connect(origin: str, status: int) -> None:
    # THREATS 76
    async with listening(WS, Settings(origins=("https://app.example",))) as place:
        try:
            async with their_client(place, origin=Origin(origin)) as client:
                assert client.response is not None
                found = client.response.status_code
        except InvalidStatus as error:
            found = error.response.status_code
            server = place.accepted[0]
            refused = await server.lost()
            assert isinstance(refused, ProtocolError) and "403 Forbidden" in str(refused)
            assert server.told == ["lost"]
        assert found == status


async def test_another_path_is_one_clear_error_on_both_sides(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "penstock")
    async with listening(f"{WS}/feed") as place:
        other = place.url.replace("/feed", "/food")
        with pytest.raises(ConnectError, match=r"/food: the server answered 404 Not Found; is the path"):
            await connected(other)
        await place.accepted[0].lost()
    assert "a peer is refused: its opening request was answered with 404 Not Found" in caplog.text


async def test_a_plain_request_is_told_to_upgrade() -> None:
    async with listening(WS) as place, stranger(place.port) as (reader, writer):
        writer.write(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 426 Upgrade Required\r\n") and b"WebSocket client" in answer


async def test_a_request_that_does_not_come_is_given_up() -> None:
    async with listening(WS, SHORT) as place, stranger(place.port) as (reader, writer):
        writer.write(b"GET / HTTP/1.1\r\n")
        server = await place.next()
        error = await server.lost()
        assert isinstance(error, LinkLost) and "no WebSocket handshake" in str(error)
        assert server.told == ["lost"]
        assert await reader.read() == b""


async def test_a_server_that_does_not_answer_is_given_up() -> None:
    async with listening() as place:
        with pytest.raises(ConnectError, match=r"no answer within 0\.05 s"):
            await connected(place.url.replace("+tcp", "+ws"), SHORT)
        server = place.accepted[0]
        await server.lost()
        assert server.data.startswith(b"GET / HTTP/1.1\r\n")


async def test_a_server_that_hangs_up_is_one_clear_error() -> None:
    async with listening() as place:
        place.refusing = True
        with pytest.raises(ConnectError, match="the server closed the connection; does it speak that there"):
            await connected(place.url.replace("+tcp", "+ws"))


async def test_frames_that_come_with_the_handshake_are_read() -> None:
    async with listening() as place:
        connecting = asyncio.create_task(connected(place.url.replace("+tcp", "+ws")))
        server = await place.next()
        await server.until(lambda: server.data.endswith(b"\r\n\r\n"))
        handshake = websocket.ServerHandshake(place.listener.url, Settings())
        handshake.feed(server.data)
        server.link.write(handshake.answer + b"\x82\x02hi")
        client = await connecting
        await client.has(prefixed(b"hi"))
        client.link.abort()
        assert await client.lost() is None


async def test_a_listener_that_is_closed_gives_up_handshakes_and_leaves_links_alone() -> None:
    async with listening(WS, Settings(connect_timeout=1_000)) as place:
        client = await connected(place.url)
        server = await made(place)
        async with stranger(place.port) as (reader, _):
            late = await place.next()
            await until(lambda: bool(place.listener._handshakes))  # type: ignore[attr-defined]
            await place.listener.close()
            assert (await reader.read()).startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
            error = await late.lost()
            assert isinstance(error, LinkLost) and "the server is closing" in str(error)
        client.link.write(prefixed(b"still here"))
        await server.has(prefixed(b"still here"))
        with pytest.raises(ConnectError, match="refused"):
            await connected(place.url)
        client.link.abort()
        await server.lost()


async def test_who_is_refused_is_told_the_limit() -> None:
    # THREATS 94
    async with listening(WS) as place:
        place.refusing = True
        with pytest.raises(ConnectError, match="503 Service Unavailable: the server is full"):
            await connected(place.url)
        assert place.addresses == ["127.0.0.1"]


async def test_only_some_refused_peers_are_waited_for() -> None:
    # THREATS 94
    async with listening(WS) as place:
        place.refusing = True
        silent = [await asyncio.open_connection("127.0.0.1", place.port) for _ in range(REFUSING + 1)]
        assert await silent[-1][0].read() == b""
        for _, writer in silent:
            writer.close()
            await writer.wait_closed()


async def test_a_connection_that_is_given_up_is_dropped() -> None:
    async with listening() as place:
        connecting = asyncio.create_task(connected(place.url.replace("+tcp", "+ws")))
        server = await place.next()
        await server.until(lambda: server.data != b"")
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting
        await server.lost()


async def test_headers_of_the_handshake_are_refused_before_anything_is_sent() -> None:
    with pytest.raises(LocalError, match=r"Settings\.headers has Host"):
        await connected("rsocket+ws://127.0.0.1:1", Settings(headers=(("Host", "x"),)))


# TLS.


async def test_wss_is_encrypted_and_trusts_whom_it_is_told_to() -> None:
    # THREATS 75
    ca = trustme.CA()
    server_context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    ca.issue_cert("localhost").configure_cert(server_context)
    client_context = ssl.create_default_context()
    ca.configure_trust(client_context)
    async with listening("rsocket+wss://localhost:0/feed", ssl=server_context) as place:
        client = await connected(place.url, ssl=client_context)
        server = await made(place)
        data = prefixed(bytes(1_000_000))
        client.link.write(data)
        client.link.close()
        await server.has(data)
        assert (await server.lost(), await client.lost()) == (None, None)
        async with their_connect(place.url.removeprefix("rsocket+"), ssl=client_context, proxy=None) as theirs:
            await theirs.send(b"hi")
            await (await made(place)).has(prefixed(b"hi"))
        with pytest.raises(ConnectError, match="not trusted"):
            await connected(place.url)
        with pytest.raises(UrlError, match=r"is not encrypted; write rsocket\+wss://"):
            await connected(place.url.replace("+wss", "+ws"), ssl=client_context)


async def test_a_place_without_a_certificate_is_wrong_use() -> None:
    with pytest.raises(UrlError, match="needs a certificate"):
        async with listening("rsocket+wss://localhost:0"):
            pass


async def test_their_client_hears_that_a_link_was_aborted() -> None:
    async with listening(WS) as place, their_client(place) as client:
        server = await made(place)
        server.link.abort()
        assert await server.lost() is None
        with pytest.raises(ConnectionClosed):
            await client.recv()
