from __future__ import annotations

import socket

import pytest
from aioquic.quic import events
from aioquic.tls import Epoch

from tests.transports.certificates import Certificates
from tests.transports.raw_quic import Raw, met, quic_link, raw_client
from tests.transports.recording import connected, listening
from tests.waiting import until
from weirpool import ConnectError, Settings
from weirpool.ledger import LEDGER
from weirpool.transports.quic_connection import RANGE_BYTES


@pytest.fixture
def url(certificates: Certificates) -> str:
    return f"rsocket+quic://127.0.0.1:0?{certificates.server_options}"


async def test_each_stream_of_a_connection_is_a_link(url: str, certificates: Certificates) -> None:
    async with listening(url) as place, raw_client(place, certificates) as raw:
        servers = []
        for number in range(3):
            raw.say(4 * number, b"%d" % number)
            servers.append(await met(await place.next()))
            await servers[-1].has(b"%d" % number)
            servers[-1].link.write(b"answer %d" % number)
        await until(lambda: raw.data == {0: b"answer 0", 4: b"answer 1", 8: b"answer 2"})
        servers[1].link.abort()
        assert (await raw.next(events.StreamReset)).stream_id == 4
        assert [server.told for server in servers] == [["made"], ["made", "lost"], ["made"]]
        assert len(place.addresses) == 3
        # What still comes in on a stream that was aborted makes no new link.
        raw.say(0, b"more")
        await servers[0].has(b"0more")
        assert len(place.accepted) == 3


async def test_a_stream_that_is_refused_is_reset(url: str, certificates: Certificates) -> None:
    async with listening(url) as place, raw_client(place, certificates) as raw:
        raw.say(0, b"first")
        await met(await place.next())
        place.refusing = True
        raw.say(4, b"second")
        assert (await raw.next(events.StreamReset)).stream_id == 4


async def test_streams_of_one_direction_are_refused(url: str, certificates: Certificates) -> None:
    async with listening(url) as place, raw_client(place, certificates) as raw:
        raw.say(2, b"pushed")
        ended = await raw.next(events.ConnectionTerminated)
        assert "unidirectional" in ended.reason_phrase


async def test_brief_streams_have_no_limit(url: str, certificates: Certificates) -> None:
    # THREATS 105
    async with listening(url) as place, raw_client(place, certificates) as raw:
        for number in range(300):
            raw.say(4 * number, b"x")
            raw._quic.reset_stream(4 * number, 0)
            raw.transmit()
            await until(lambda count=number: len(place.accepted) > count)  # type: ignore[misc]
            await place.accepted[number].lost()
        raw.say(1_200, b"y")
        await (await place.next()).has(b"y")


async def test_refused_client_gets_a_reason(url: str, certificates: Certificates) -> None:
    async with listening(url) as place:
        place.refusing = True
        with pytest.raises(ConnectError, match="the server is full"):
            await connected(certificates.to_client(place.url))


async def test_a_connection_without_streams_is_given_up(url: str, certificates: Certificates) -> None:
    async with listening(url, Settings(connect_timeout=0.5)) as place, raw_client(place, certificates) as raw:
        server = await place.next()
        await raw.next(events.ConnectionTerminated)
        await server.lost()
        assert server.told == ["lost"]


async def test_closed_listener_keeps_accepted_links(certificates: Certificates) -> None:
    async with quic_link(certificates) as (client, server, place):
        await place.listener.close()
        with pytest.raises(ConnectError, match="accepts no more connections"):
            await connected(certificates.to_client(place.url))
        client.link.write(b"still here")
        await server.has(b"still here")
        client.link.close()
        assert (await client.lost(), await server.lost()) == (None, None)


async def test_junk_is_dropped(url: str, certificates: Certificates) -> None:
    async with listening(url) as place:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            for junk in (b"", b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 1_200, b"\xc0\0\0\0\1\x08" + bytes(1_300)):
                stranger.sendto(junk, ("127.0.0.1", place.port))
        client = await connected(certificates.to_client(place.url))
        client.link.write(b"hi")
        server = await met(await place.next())
        await server.has(b"hi")
        assert len(place.accepted) == 1
        client.link.abort()
        await server.lost()


async def test_client_without_common_protocol_is_refused(certificates: Certificates) -> None:
    async with listening(f"river+quic://127.0.0.1:0?{certificates.server_options}") as place:
        with pytest.raises(ConnectError, match="the server does not offer 'rsocket'"):
            await connected(certificates.to_client(place.url.replace("river", "rsocket", 1)))
        assert "this server offers 'river'" in str(await (await place.next()).lost())


@pytest.mark.parametrize("alpn", ["h3", None])
async def test_a_client_of_something_else_is_refused(url: str, certificates: Certificates, alpn: str | None) -> None:
    async with listening(url) as place:
        with pytest.raises(ConnectionError):
            async with raw_client(place, certificates, alpn):
                pass
        server = await place.next()
        error = await server.lost()
        assert "No common ALPN protocols" in str(error)
        assert server.told == ["lost"]


async def test_bytes_out_of_order_are_counted_and_pay(certificates: Certificates) -> None:
    # THREATS 86: aioquic fills the gaps with zeros.
    settings = Settings(max_identity_bytes=5 << 20)
    async with listening(f"rsocket+quic://127.0.0.1:0?{certificates.server_options}", settings) as place:
        async with raw_client(place, certificates) as raw:
            for number in range(4):
                skip(raw, 4 * number)
            await until(lambda: held_by("127.0.0.1") > 4 << 20)
            assert held_by("127.0.0.1") == 4 * ((1 << 20) + RANGE_BYTES)
            for number in range(4, 6):
                skip(raw, 4 * number)
            terminated = await raw.next(events.ConnectionTerminated)
            assert "arrived out of order" in terminated.reason_phrase
            assert held_by("127.0.0.1") == 0


async def test_bytes_out_of_order_are_released_when_the_connection_closes(url: str, certificates: Certificates) -> None:
    # aioquic keeps a closed connection for several round trips, whose length the peer chooses.
    async with listening(url) as place, raw_client(place, certificates) as raw:
        skip(raw, 0)
        await until(lambda: held_by("127.0.0.1") > 1 << 20)
        [connection] = place.listener.connections
        connection.hang_up()
        assert held_by("127.0.0.1") == 0
        assert not any(stream.receiver._buffer for stream in connection._quic._streams.values())


async def test_handshake_messages_out_of_order_are_counted(url: str, certificates: Certificates) -> None:
    # THREATS 86: aioquic keeps 512 KiB of them for each of three keys.
    size = 500_000
    async with listening(url) as place, raw_client(place, certificates) as raw:
        sender = raw._quic._crypto_streams[Epoch.ONE_RTT].sender
        sender._buffer_start = sender._buffer_stop = size - 1
        sender.write(b"x")
        raw.transmit()
        await until(lambda: held_by("127.0.0.1") == size + RANGE_BYTES)
        [connection] = place.listener.connections
        connection.hang_up()
        assert not connection._quic._crypto_streams[Epoch.ONE_RTT].receiver._buffer


async def test_output_is_released_when_the_connection_closes(url: str, certificates: Certificates) -> None:
    async with listening(url) as place, raw_client(place, certificates) as raw:
        raw.say(0, b"hello")
        server = await place.linked()
        server.link.write(bytes(1 << 20))
        [connection] = place.listener.connections
        sender = connection._quic._streams[0].sender
        assert sender._buffer
        connection.hang_up()
        assert not sender._buffer


async def test_gaps_that_are_filled_are_not_counted(url: str, certificates: Certificates) -> None:
    async with listening(url) as place, raw_client(place, certificates) as raw:
        skip(raw, 0)
        await until(lambda: held_by("127.0.0.1") > 0)
        sender = raw._quic._streams[0].sender
        sender._buffer_start = sender._buffer_stop = 0
        raw.say(0, bytes((1 << 20) - 1))
        server = await place.linked()
        await until(lambda: len(server.data) == 1 << 20)
        assert held_by("127.0.0.1") == 0
        server.link.abort()


def skip(raw: Raw, stream_id: int) -> None:
    """Send only the last byte that the window of a stream allows."""
    sender = raw._quic._get_or_create_stream_for_send(stream_id).sender
    sender._buffer_start = sender._buffer_stop = (1 << 20) - 1
    raw.say(stream_id, b"x")


def held_by(identity: str) -> int:
    group = LEDGER.identities.get(identity)
    return 0 if group is None else group.held
