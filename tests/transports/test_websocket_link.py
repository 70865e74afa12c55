from __future__ import annotations

import asyncio
import tracemalloc

import pytest
from websockets.asyncio.client import connect as their_connect
from websockets.asyncio.server import ServerConnection
from websockets.frames import Frame, Opcode

import weirpool
from tests.aio.serving import make_service
from tests.transports.recording import connected, joined, listening
from tests.transports.their_websockets import WS, close_code, prefixed, their_client, their_server
from tests.waiting import turns, until
from weirpool import LimitExceeded, ProtocolError, Settings
from weirpool.transports.websocket_frames import message_frames

# Bytes.


async def test_output_arrives_in_order_in_both_directions() -> None:
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
        # In the plain build, a slice of the frames at a time.
        assert server.reads < 60


async def test_incomplete_message_counts_as_waiting() -> None:
    async with joined(WS) as (client, server):
        client.link.write(b"\0\0\5ab")
        assert client.link.get_write_buffer_size() == 5
        client.link.write(b"cde")
        assert client.link.get_write_buffer_size() == 0
        await server.has(b"\0\0\5abcde")


async def test_part_of_a_message_is_reported() -> None:
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


async def test_two_frames_in_one_message_are_never_two() -> None:
    # THREATS 8: what stands behind the first belongs to it.
    seen: list[object] = []
    reached = asyncio.Event()
    async with weirpool.serve(make_service(seen, reached), WS) as server:
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
        server = await place.linked()
        await client.send(b"good")
        await client.send("text")
        assert await close_code(client) == 1003
        error = await server.lost()
        assert isinstance(error, ProtocolError) and "messages must be binary" in str(error)
        assert server.data == prefixed(b"good")


async def test_a_message_that_is_too_long_is_not_taken() -> None:
    settings = Settings(max_frame_bytes=5_000, fragment_bytes=1_000, max_setup_frame_bytes=2_000)
    async with listening(WS, settings) as place:
        async with their_client(place) as client:
            server = await place.linked()
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


async def test_server_violations_are_detected() -> None:
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
        server = await place.linked()
        assert server.data == b""


async def test_ping_flood_costs_no_memory_when_peer_does_not_read() -> None:
    # THREATS 8
    settings = Settings(output_high_bytes=10_000)
    async with listening(WS, settings) as place, their_client(place) as client:
        server = await place.linked()
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


async def test_many_pings_are_ordinary() -> None:
    # THREATS 105
    async with listening(WS) as place, their_client(place) as client:
        client.transport.write(Frame(Opcode.PING, b"").serialize(mask=True) * 5_000)
        assert await (await client.ping(b"last")) > 0


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
