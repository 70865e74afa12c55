from __future__ import annotations

import asyncio

import pytest

import weirpool
from tests.transports import interactions
from tests.transports.certificates import Certificates
from tests.transports.interactions import serving
from tests.transports.raw_quic import met, quic_link, raw_client
from tests.transports.recording import connected, listening
from tests.waiting import turns, until
from weirpool import ConnectError, LinkLost, Settings, UrlError
from weirpool.transports import streams


@pytest.fixture
def url(certificates: Certificates) -> str:
    return f"rsocket+quic://127.0.0.1:0?{certificates.server_options}"


# Sessions.


async def test_every_kind_of_interaction_travels(url: str, certificates: Certificates) -> None:
    async with serving(url, certificates.to_client) as world:
        await interactions.check_every_kind(world)


@pytest.mark.slow
async def test_a_large_channel_travels(url: str, certificates: Certificates) -> None:
    async with serving(url, certificates.to_client) as world:
        await interactions.check_a_large_channel(world)


@pytest.mark.slow
async def test_a_large_payload_travels(url: str, certificates: Certificates) -> None:
    async with serving(url, certificates.to_client) as world:
        await interactions.check_a_large_payload(world)


async def test_unneeded_stream_is_canceled(url: str, certificates: Certificates) -> None:
    async with serving(url, certificates.to_client) as world:
        await interactions.check_a_cancel(world)


async def test_slow_consumer_gets_only_requested_items(url: str, certificates: Certificates) -> None:
    async with serving(url, certificates.to_client) as world:
        await interactions.check_a_slow_consumer(world)


async def test_server_close_ends_its_sessions(url: str, certificates: Certificates) -> None:
    async with serving(url, certificates.to_client) as world:
        call = asyncio.create_task(world.peer.call("never"))
        await world.reached.wait()
        await world.server.close(0)
        with pytest.raises(weirpool.WeirpoolError):
            await call


async def test_session_resumes_over_another_connection(url: str, certificates: Certificates) -> None:
    async with serving(url, certificates.to_client, Settings(resume=True)) as world:
        await interactions.check_another_link(world)


# Bytes and windows.


async def test_a_reader_that_is_slow_slows_its_writer(certificates: Certificates) -> None:
    async with quic_link(certificates, Settings(output_high_bytes=100_000)) as (client, server, _):
        server.link.pause_reading()
        data = bytes(range(256)) * 16_384
        client.link.write(data)
        assert client.told == ["made", "paused"]
        # The server has got the five bytes of its greeting, too.
        await until(lambda: server.link.unread >= streams.WINDOW_BYTES - 5)
        await turns(200)
        # The window is full and stays so: aioquic alone would have opened it twice as far.
        assert server.link.unread + 5 == streams.WINDOW_BYTES
        assert client.link.get_write_buffer_size() > len(data) - streams.WINDOW_BYTES - 200_000
        assert (server.data, client.told) == (b"", ["made", "paused"])
        server.link.resume_reading()
        await server.has(data)
        await client.until(lambda: "resumed" in client.told)
        # What the peer has not acknowledged counts, too.
        await until(lambda: client.link.get_write_buffer_size() == 0)


async def test_unsent_quic_output_waits_in_the_link(certificates: Certificates) -> None:
    async with quic_link(certificates) as (client, server, _):
        data = bytes(3_000_000)
        client.link.write(data)
        sender = client.link._carrier._quic._streams[0].sender
        assert sender._buffer_stop - sender.highest_offset <= 65_536
        assert client.link.get_write_buffer_size() >= len(data) - 65_536
        await server.has(data)


# Ends.


async def test_output_before_close_arrives(certificates: Certificates) -> None:
    async with quic_link(certificates) as (client, server, _):
        client.link.write(b"last words" * 1_000)
        client.link.close()
        client.link.close()
        await server.has(b"last words" * 1_000)
        assert (await client.lost(), await server.lost()) == (None, None)


async def test_a_link_that_the_server_closes_ends_in_order_for_both(certificates: Certificates) -> None:
    async with quic_link(certificates) as (client, server, _):
        server.link.write(b"farewell")
        server.link.close()
        await client.has(b"farewell")
        assert (await client.lost(), await server.lost()) == (None, None)


async def test_a_peer_that_ends_its_half_ends_the_link_in_order(url: str, certificates: Certificates) -> None:
    async with listening(url) as place, raw_client(place, certificates) as raw:
        raw.say(0, b"last ")
        server = await met(await place.next())
        server.link.write(b"the answer")
        raw.say(0, b"words", end=True)
        await server.has(b"last words")
        assert await server.lost() is None
        assert raw.data[0] == b"the answer"


@pytest.mark.parametrize("who", ["client", "server"])
async def test_a_link_that_one_side_aborts_is_lost_for_the_other(certificates: Certificates, who: str) -> None:
    async with quic_link(certificates) as (client, server, _):
        one, other = (client, server) if who == "client" else (server, client)
        one.link.abort()
        assert await one.lost() is None
        assert isinstance(await other.lost(), LinkLost)


async def test_silence_ends_a_connection(certificates: Certificates) -> None:
    async with quic_link(certificates, Settings(keepalive_lifetime=0.2)) as (client, server, _):
        error = await server.lost()
        assert isinstance(error, LinkLost) and "Idle timeout" in str(error)
        await client.lost()


# Places.


async def test_a_port_in_use_is_one_clear_error(url: str) -> None:
    async with listening(url) as place:
        with pytest.raises(ConnectError, match="the address is in use; stop the other server"):
            async with listening(place.url):
                pass


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
async def test_every_address_of_a_name_is_served(host: str, certificates: Certificates) -> None:
    async with listening(f"rsocket+quic://{host}:0?{certificates.server_options}") as place:
        client = await connected(certificates.to_client(place.url))
        client.link.write(b"hi")
        server = await met(await place.next())
        await server.has(b"hi")
        client.link.abort()
        await server.lost()


# TLS.


async def test_an_ssl_context_is_wrong_use(url: str, certificates: Certificates) -> None:
    with pytest.raises(UrlError, match=r"does not use ssl=\.\.\.; pass the CA with \?ca=FILE"):
        await connected("rsocket+quic://localhost:1", ssl=certificates.client)
    with pytest.raises(UrlError, match=r"does not use ssl=\.\.\.; add \?cert=FILE&key=FILE"):
        async with listening("rsocket+quic://localhost:0", ssl=certificates.server):
            pass
    # It may be there for other places of the same server.
    async with listening(url, ssl=certificates.server):
        pass
