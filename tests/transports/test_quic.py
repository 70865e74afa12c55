from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aioquic.asyncio import QuicConnectionProtocol
from aioquic.asyncio import connect as quic_connect
from aioquic.asyncio import serve as quic_serve
from aioquic.quic import events
from aioquic.quic.configuration import QuicConfiguration

import penstock
from penstock import ConnectError, LinkLost, Settings, UrlError
from penstock.transports import streams
from tests.transports import interactions
from tests.transports.certificates import Certificates
from tests.transports.interactions import serving
from tests.transports.recording import Place, Recorder, connected, listening
from tests.waiting import turns, until


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def url(certificates: Certificates) -> str:
    return f"rsocket+quic://127.0.0.1:0?{certificates.server_options}"


async def met(server: Recorder) -> Recorder:
    """Return a receiver once it has its link."""
    await server.until(lambda: server.link is not None)
    return server


@asynccontextmanager
async def quic_link(
    certificates: Certificates, settings: Settings | None = None
) -> AsyncIterator[tuple[Recorder, Recorder, Place]]:
    """Give both ends of a link, over which the client has said hello."""
    settings = settings or Settings()
    async with listening(f"rsocket+quic://127.0.0.1:0?{certificates.server_options}", settings) as place:
        client = await connected(certificates.to_client(place.url), settings)
        client.link.write(b"hello")
        server = await met(await place.next())
        await server.has(b"hello")
        server.data = b""
        try:
            yield client, server, place
        finally:
            for end in (client, server):
                end.link.abort()
                await end.lost()


class Raw(QuicConnectionProtocol):
    """A peer that is not of ours: aioquic, with nothing in between."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.told: list[events.QuicEvent] = []
        self.data: dict[int, bytes] = {}
        self._changed = asyncio.Event()

    def quic_event_received(self, event: events.QuicEvent) -> None:
        self.told.append(event)
        if isinstance(event, events.StreamDataReceived):
            self.data[event.stream_id] = self.data.get(event.stream_id, b"") + event.data
        self._changed.set()

    def say(self, stream_id: int, data: bytes, end: bool = False) -> None:
        self._quic.send_stream_data(stream_id, data, end)
        self.transmit()

    async def next(self, kind: type[events.QuicEvent]) -> Any:
        """Wait for the first event of a kind."""
        while True:
            for event in self.told:
                if isinstance(event, kind):
                    return event
            self._changed.clear()
            await self._changed.wait()


@asynccontextmanager
async def raw_client(place: Place, certificates: Certificates, alpn: str | None = "rsocket") -> AsyncIterator[Raw]:
    configuration = QuicConfiguration(alpn_protocols=[alpn] if alpn else None, server_name="localhost")
    configuration.load_verify_locations(str(certificates.folder / "ca.pem"))
    async with quic_connect("127.0.0.1", place.port, configuration=configuration, create_protocol=Raw) as raw:
        assert isinstance(raw, Raw)
        yield raw
    # The server learns of the end a little later.
    for server in place.accepted:
        await server.lost()


# Sessions.


async def test_every_kind_of_interaction_travels(url: str, certificates: Certificates) -> None:
    async with serving(url, certificates.to_client) as world:
        await interactions.check_every_kind(world)


async def test_a_large_channel_travels(url: str, certificates: Certificates) -> None:
    async with serving(url, certificates.to_client) as world:
        await interactions.check_a_large_channel(world)


@pytest.mark.slow
async def test_a_large_payload_travels(url: str, certificates: Certificates) -> None:
    async with serving(url, certificates.to_client) as world:
        await interactions.check_a_large_payload(world)


async def test_what_nobody_wants_any_more_is_canceled(url: str, certificates: Certificates) -> None:
    async with serving(url, certificates.to_client) as world:
        await interactions.check_a_cancel(world)


async def test_a_slow_consumer_is_not_sent_what_it_does_not_ask_for(url: str, certificates: Certificates) -> None:
    async with serving(url, certificates.to_client) as world:
        await interactions.check_a_slow_consumer(world)


async def test_a_server_that_goes_away_ends_its_sessions(url: str, certificates: Certificates) -> None:
    async with serving(url, certificates.to_client) as world:
        call = asyncio.create_task(world.peer.call("never"))
        await world.reached.wait()
        await world.server.close(0)
        with pytest.raises(penstock.PenstockError):
            await call


async def test_a_session_goes_on_over_another_connection(url: str, certificates: Certificates) -> None:
    async with serving(url, certificates.to_client, Settings(resume=True)) as world:
        assert (await world.peer.call("echo", b"once")).data == b"once"
        (driver,) = world.server._drivers.values()
        first = driver.link
        assert first is not None
        first.abort()
        await until(lambda: driver.link not in (None, first))
        assert (await world.peer.call("echo", b"again")).data == b"again"


# Bytes and windows.


async def test_a_reader_that_is_slow_slows_its_writer(certificates: Certificates) -> None:
    async with quic_link(certificates, Settings(output_high_bytes=100_000)) as (client, server, _):
        server.link.pause_reading()
        data = bytes(range(256)) * 16_384
        client.link.write(data)
        assert client.told == ["made", "paused"]
        # The server has got the five bytes of its greeting, too.
        held = server.link._held
        await until(lambda: sum(len(piece) for piece, _ in held) >= streams.WINDOW_BYTES - 5)
        await turns(200)
        # The window is full and stays so: aioquic alone would have opened it twice as far.
        assert sum(len(piece) for piece, _ in held) + 5 == streams.WINDOW_BYTES
        assert client.link.get_write_buffer_size() > len(data) - streams.WINDOW_BYTES - 200_000
        assert (server.data, client.told) == (b"", ["made", "paused"])
        server.link.resume_reading()
        await server.has(data)
        await client.until(lambda: "resumed" in client.told)
        assert client.link.get_write_buffer_size() == 0


async def test_what_quic_has_not_sent_waits_in_the_link(certificates: Certificates) -> None:
    async with quic_link(certificates) as (client, server, _):
        data = bytes(3_000_000)
        client.link.write(data)
        sender = client.link._carrier._quic._streams[0].sender
        assert sender._buffer_stop - sender.highest_offset <= 65_536
        assert client.link.get_write_buffer_size() >= len(data) - 65_536
        await server.has(data)


# Ends.


async def test_what_was_written_before_a_link_is_closed_arrives(certificates: Certificates) -> None:
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


# Servers and other clients.


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
        assert "one direction" in ended.reason_phrase


async def test_streams_that_end_as_soon_as_they_are_opened_are_counted(url: str, certificates: Certificates) -> None:
    async with listening(url, Settings(max_rapid_resets=10)) as place, raw_client(place, certificates) as raw:
        for number in range(11):
            raw.say(4 * number, b"x")
            raw._quic.reset_stream(4 * number, 0)
            raw.transmit()
            await until(lambda count=number: len(place.accepted) > count)  # type: ignore[misc]
            server = place.accepted[number]
            if number < 10:
                await server.lost()
        ended = await raw.next(events.ConnectionTerminated)
        assert "more than max_rapid_resets (10)" in ended.reason_phrase


async def test_who_is_refused_is_told_so(url: str, certificates: Certificates) -> None:
    async with listening(url) as place:
        place.refusing = True
        with pytest.raises(ConnectError, match="takes no more connections"):
            await connected(certificates.to_client(place.url))


async def test_a_connection_without_streams_is_given_up(url: str, certificates: Certificates) -> None:
    async with listening(url, Settings(connect_timeout=0.5)) as place, raw_client(place, certificates) as raw:
        server = await place.next()
        await raw.next(events.ConnectionTerminated)
        await server.lost()
        assert server.told == ["lost"]


async def test_a_listener_that_is_closed_takes_no_links_and_leaves_those_it_took(certificates: Certificates) -> None:
    async with quic_link(certificates) as (client, server, place):
        await place.listener.close()
        with pytest.raises(ConnectError, match="takes no more connections"):
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


# Clients and other servers.


async def test_nobody_there_is_one_clear_error(certificates: Certificates) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    with pytest.raises(ConnectError, match=rf"quic://127.0.0.1:{port}: connection refused; is the server running"):
        await connected(f"rsocket+quic://127.0.0.1:{port}?{certificates.client_options}")


async def test_a_server_that_never_answers_is_given_up(certificates: Certificates) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        with pytest.raises(ConnectError, match=r"no answer within 0\.2 s"):
            url = f"rsocket+quic://127.0.0.1:{silent.getsockname()[1]}?{certificates.client_options}"
            await connected(url, Settings(connect_timeout=0.2))


async def test_a_port_in_use_is_one_clear_error(url: str) -> None:
    async with listening(url) as place:
        with pytest.raises(ConnectError, match="it is in use; stop what listens there"):
            async with listening(place.url):
                pass


async def test_a_client_gets_on_with_a_server_that_is_not_of_ours(certificates: Certificates) -> None:
    configuration = QuicConfiguration(is_client=False, alpn_protocols=["rsocket"])
    configuration.load_cert_chain(certificates.folder / "cert.pem", certificates.folder / "key.pem")
    came: list[Raw] = []

    def accept(*args: Any, **kwargs: Any) -> Raw:
        came.append(Raw(*args, **kwargs))
        return came[-1]

    server: Any = await quic_serve("127.0.0.1", 0, configuration=configuration, create_protocol=accept)
    port = server._transport.get_extra_info("sockname")[1]
    client = await connected(f"rsocket+quic://127.0.0.1:{port}?{certificates.client_options}")
    client.link.write(b"there")
    await came[0].next(events.StreamDataReceived)
    came[0].say(0, b"back", end=True)
    await client.has(b"back")
    assert await client.lost() is None
    assert came[0].data[0] == b"there"
    server.close()


async def test_a_server_of_something_else_is_one_clear_error(certificates: Certificates) -> None:
    configuration = QuicConfiguration(is_client=False, alpn_protocols=["h3"])
    configuration.load_cert_chain(certificates.folder / "cert.pem", certificates.folder / "key.pem")
    server: Any = await quic_serve("127.0.0.1", 0, configuration=configuration)
    port = server._transport.get_extra_info("sockname")[1]
    with pytest.raises(ConnectError, match="does not speak 'rsocket' there"):
        await connected(f"rsocket+quic://127.0.0.1:{port}?{certificates.client_options}")
    server.close()


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


async def test_a_certificate_that_is_not_trusted_is_refused(url: str, certificates: Certificates) -> None:
    # THREATS 75
    async with listening(url) as place:
        with pytest.raises(ConnectError, match=r"not trusted .*; name its CA with \?ca=FILE"):
            await connected(place.url.partition("?")[0])


async def test_an_ssl_context_is_wrong_use(url: str, certificates: Certificates) -> None:
    with pytest.raises(UrlError, match=r"takes no ssl=\.\.\.; name whom to trust with \?ca=FILE"):
        await connected("rsocket+quic://localhost:1", ssl=certificates.client)
    with pytest.raises(UrlError, match=r"takes no ssl=\.\.\.; add \?cert=FILE&key=FILE"):
        async with listening("rsocket+quic://localhost:0", ssl=certificates.server):
            pass
    # It may be there for other places of the same server.
    async with listening(url, ssl=certificates.server):
        pass
