from __future__ import annotations

import asyncio
import logging
import ssl

import pytest
from h2 import events
from h2.errors import ErrorCodes
from h2.settings import SettingCodes

import penstock
from penstock import ConnectError, Kind, LinkLost, LocalError, Payload, Service, Settings, UrlError
from penstock.protocols import PROTOCOLS
from penstock.rsocket.dialect import DIALECTS
from penstock.rsocket.session import RSocketSession
from penstock.transports import streams
from penstock.urls import parse_url
from tests.transports import interactions
from tests.transports.certificates import Certificates
from tests.transports.interactions import serving
from tests.transports.raw_http2 import TYPE, Raw, raw_client, raw_server
from tests.transports.recording import Place, Recorder, connected, joined, listening
from tests.waiting import turns, until

H2C = "rsocket+h2c://127.0.0.1:0"
H2 = "rsocket+h2://localhost:0"
SHORT = Settings(connect_timeout=0.05)
"""For what never comes."""


async def met(server: Recorder) -> Recorder:
    """Return a receiver once it has its link."""
    await server.until(lambda: server.link is not None)
    return server


async def opened(raw: Raw, place: Place) -> Recorder:
    """Open a stream, and return the receiver of its link."""
    raw.request()
    assert await raw.status() == 200
    return await met(await place.next())


# Sessions.


async def test_every_kind_of_interaction_travels_plain() -> None:
    async with serving(H2C) as world:
        await interactions.check_every_kind(world)


async def test_every_kind_of_interaction_travels_encrypted(certificates: Certificates) -> None:
    async with serving(f"{H2}/feed?{certificates.server_options}", certificates.to_client) as world:
        await interactions.check_every_kind(world)


async def test_a_large_channel_and_a_large_payload_travel() -> None:
    async with serving(H2C) as world:
        await interactions.check_a_large_channel(world)
        await interactions.check_a_large_payload(world)


async def test_what_nobody_wants_any_more_is_canceled() -> None:
    async with serving(H2C) as world:
        await interactions.check_a_cancel(world)


async def test_a_slow_consumer_is_not_sent_what_it_does_not_ask_for() -> None:
    async with serving(H2C) as world:
        await interactions.check_a_slow_consumer(world)


async def test_a_server_that_goes_away_ends_its_sessions() -> None:
    async with serving(H2C) as world:
        call = asyncio.create_task(world.peer.call("never"))
        await world.reached.wait()
        await world.server.close(0)
        with pytest.raises(penstock.PenstockError):
            await call
        with pytest.raises(ConnectError, match="refused"):
            await penstock.connect(world.server.urls[0] if world.server.urls else H2C)


async def test_a_session_goes_on_over_another_connection() -> None:
    settings = Settings(resume=True)
    async with serving(H2C, settings=settings) as world:
        await interactions.check_another_link(world)


# Bytes.


async def test_bytes_arrive_in_order_both_ways() -> None:
    async with joined(H2C) as (client, server):
        for number in range(10):
            client.link.write(b"%d" % number)
            server.link.write(b"%d" % (9 - number))
        await server.has(b"0123456789")
        await client.has(b"9876543210")
        assert (client.told, server.told) == (["made"], ["made"])


async def test_a_reader_that_is_slow_slows_its_writer() -> None:
    async with joined(H2C, Settings(output_high_bytes=100_000)) as (client, server):
        server.link.pause_reading()
        written = 0
        while "paused" not in client.told:
            client.link.write(bytes(50_000))
            written += 50_000
            await turns(3)
        # The reader holds no more than its window, and the writer knows of the rest.
        assert written <= streams.WINDOW_BYTES + 1_000_000
        assert client.link.get_write_buffer_size() > 100_000
        await turns(50)
        assert (client.told, server.data) == (["made", "paused"], b"")
        server.link.resume_reading()
        await client.until(lambda: "resumed" in client.told)
        await server.has(bytes(written))
        assert client.link.get_write_buffer_size() == 0


async def test_one_paused_link_holds_up_no_other_of_its_connection() -> None:
    async with listening(H2C) as place, raw_client(place.port) as raw:
        first = await opened(raw, place)
        first.link.pause_reading()
        window = 1_048_576
        assert raw.h2.local_flow_control_window(1) == min(window, raw.h2.outbound_flow_control_window)
        for _ in range(window // 16_384):
            raw.h2.send_data(1, bytes(16_384))
        raw.flush()
        second = raw.request()
        other = await met(await place.next())
        for _ in range(3 * window // 16_384):
            while raw.h2.local_flow_control_window(second) < 16_384:
                await raw.read()
            raw.h2.send_data(second, bytes(16_384))
            raw.flush()
        await other.has(bytes(3 * window))
        assert (first.data, raw.h2.local_flow_control_window(1)) == (b"", 0)
        first.link.resume_reading()
        await first.has(bytes(window))
        await raw.until(lambda: raw.h2.local_flow_control_window(1) > 0)


# Ends.


async def test_what_was_written_before_a_link_is_closed_arrives() -> None:
    async with joined(H2C) as (client, server):
        await interactions.check_last_words(client, server)


async def test_a_link_that_the_server_closes_ends_in_order_for_both() -> None:
    async with joined(H2C) as (client, server):
        server.link.write(b"farewell")
        server.link.close()
        await client.has(b"farewell")
        assert (await client.lost(), await server.lost()) == (None, None)


async def test_a_peer_that_ends_its_half_ends_the_link_in_order() -> None:
    async with listening(H2C) as place, raw_client(place.port) as raw:
        server = await opened(raw, place)
        server.link.write(b"the answer")
        raw.h2.send_data(1, b"last words", end_stream=True)
        raw.flush()
        await server.has(b"last words")
        assert await server.lost() is None
        await raw.next(events.StreamEnded)
        assert raw.data[1] == b"the answer"


async def test_the_end_waits_for_what_a_paused_reader_has_not_taken() -> None:
    async with listening(H2C) as place, raw_client(place.port) as raw:
        server = await opened(raw, place)
        server.link.pause_reading()
        raw.h2.send_data(1, b"last words", end_stream=True)
        raw.flush()
        await turns(20)
        assert server.told == ["made"]
        server.link.resume_reading()
        await server.has(b"last words")
        assert await server.lost() is None


async def test_a_peer_that_never_ends_its_half_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "LINGER", 0.0)
    async with listening(H2C) as place, raw_client(place.port) as raw:
        server = await opened(raw, place)
        server.link.close()
        assert await server.lost() is None
        reset = await raw.next(events.StreamReset)
        assert reset.error_code == ErrorCodes.CANCEL


@pytest.mark.parametrize("who", ["client", "server"])
async def test_a_link_that_one_side_aborts_is_lost_for_the_other(who: str) -> None:
    async with joined(H2C) as (client, server):
        one, other = (client, server) if who == "client" else (server, client)
        one.link.abort()
        assert await one.lost() is None
        assert isinstance(await other.lost(), LinkLost)


async def test_a_connection_that_breaks_loses_its_links() -> None:
    async with listening(H2C) as place, raw_client(place.port) as raw:
        server = await opened(raw, place)
        raw.abort()
        error = await server.lost()
        assert isinstance(error, LinkLost) and "in the middle of a stream" in str(error)


async def test_a_goaway_behind_the_end_leaves_the_link_in_order() -> None:
    async with raw_server() as place:
        connecting = asyncio.create_task(connected(f"rsocket+h2c://127.0.0.1:{place.port}"))
        raw = await place.came.get()
        await raw.next(events.RequestReceived)
        raw.h2.send_headers(1, [(":status", "200")])
        raw.h2.send_data(1, b"all", end_stream=True)
        raw.h2.close_connection()
        raw.flush()
        client = await connecting
        await client.has(b"all")
        assert await client.lost() is None


async def test_a_goaway_in_the_middle_loses_the_link_and_says_why() -> None:
    async with raw_server() as place:
        connecting = asyncio.create_task(connected(f"rsocket+h2c://127.0.0.1:{place.port}"))
        raw = await place.came.get()
        await raw.next(events.RequestReceived)
        raw.h2.send_headers(1, [(":status", "200")])
        raw.h2.close_connection(ErrorCodes.INTERNAL_ERROR, b"on fire")
        raw.flush()
        client = await connecting
        error = await client.lost()
        assert isinstance(error, LinkLost)
        assert "INTERNAL_ERROR, 'on fire'" in str(error)


# Clients and other servers.


async def test_a_client_asks_as_http_2_wants_it() -> None:
    async with raw_server() as place:
        connecting = asyncio.create_task(connected(f"rsocket+h2c://127.0.0.1:{place.port}/a%20b"))
        raw = await place.came.get()
        request = await raw.next(events.RequestReceived)
        assert dict(request.headers) == {
            b":method": b"POST",
            b":scheme": b"http",
            b":authority": b"127.0.0.1:%d" % place.port,
            b":path": b"/a%20b",
            b"content-type": b"application/rsocket",
        }
        raw.h2.send_headers(1, [(":status", "200")])
        raw.flush()
        client = await connecting
        client.link.write(b"there")
        raw.h2.send_data(1, b"back")
        raw.flush()
        await client.has(b"back")
        await raw.until(lambda: raw.data.get(1) == b"there")
        client.link.abort()
        await client.lost()


async def test_headers_of_the_settings_reach_the_server_and_no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    settings = Settings(headers=(("Authorization", "Bearer secret"), ("X-Id", "a"), ("X-Id", "b")))
    async with raw_server() as place:
        connecting = asyncio.create_task(connected(f"rsocket+h2c://127.0.0.1:{place.port}", settings))
        raw = await place.came.get()
        request = await raw.next(events.RequestReceived)
        assert [pair for pair in request.headers if pair[0] in (b"authorization", b"x-id")] == [
            (b"authorization", b"Bearer secret"),
            (b"x-id", b"a"),
            (b"x-id", b"b"),
        ]
        raw.h2.send_headers(1, [(":status", "500")])
        raw.flush()
        with pytest.raises(ConnectError, match="500"):
            await connecting
    assert "secret" not in caplog.text


@pytest.mark.parametrize("name", ["Content-Type", "host", "Connection", "Transfer-Encoding", "TE", "Upgrade"])
async def test_headers_that_the_request_cannot_have_are_refused(name: str) -> None:
    with pytest.raises(LocalError, match=f"Settings.headers has {name}, "):
        await connected("rsocket+h2c://127.0.0.1:1", Settings(headers=((name, "x"),)))


TYPES = [
    ("rsocket", "application/rsocket"),
    ("reactivesocket-0.2", "application/rsocket"),
    ("reactivesocket-0.0", "application/rsocket"),
    ("reactive-streams", "application/reactive-streams"),
    ("river", "application/river"),
]


@pytest.mark.parametrize(("protocol", "type"), TYPES)
async def test_both_sides_name_the_type_of_the_protocol(protocol: str, type: str) -> None:
    async with raw_server() as place:
        connecting = asyncio.create_task(connected(f"{protocol}+h2c://127.0.0.1:{place.port}"))
        raw = await place.came.get()
        request = await raw.next(events.RequestReceived)
        assert dict(request.headers)[b"content-type"] == type.encode()
        raw.h2.send_headers(1, [(":status", "500")])
        raw.flush()
        with pytest.raises(ConnectError, match="500"):
            await connecting
    async with listening(f"{protocol}+h2c://127.0.0.1:0") as place, raw_client(place.port) as raw:
        raw.request(headers=[("content-type", type)])
        answer = await raw.next(events.ResponseReceived)
        assert dict(answer.headers) == {b":status": b"200", b"content-type": type.encode()}


@pytest.mark.parametrize(("protocol", "type"), TYPES[3:])
async def test_client_of_another_type_learns_which_one_is_spoken(protocol: str, type: str) -> None:
    async with listening(f"{protocol}+h2c://127.0.0.1:0") as place:
        with pytest.raises(ConnectError, match=f"this server speaks {protocol}, whose content-type is {type}; .*415"):
            await connected(f"rsocket+h2c://127.0.0.1:{place.port}")


@pytest.mark.parametrize(
    ("status", "message"),
    [
        ("404", "nothing at that path"),
        ("405", "takes no POST"),
        ("403", "origin"),
        ("415", "application/rsocket"),
        ("503", "no more connections"),
        ("500", "status 500"),
    ],
)
async def test_an_answer_that_is_no_yes_is_one_clear_error(status: str, message: str) -> None:
    async with raw_server() as place:
        connecting = asyncio.create_task(connected(f"rsocket+h2c://127.0.0.1:{place.port}"))
        raw = await place.came.get()
        await raw.next(events.RequestReceived)
        raw.h2.send_headers(1, [(":status", status)])
        raw.flush()
        with pytest.raises(ConnectError, match=message):
            await connecting


async def test_a_stream_that_is_refused_is_one_clear_error() -> None:
    async with raw_server() as place:
        connecting = asyncio.create_task(connected(f"rsocket+h2c://127.0.0.1:{place.port}"))
        raw = await place.came.get()
        await raw.next(events.RequestReceived)
        raw.h2.reset_stream(1, ErrorCodes.REFUSED_STREAM)
        raw.flush()
        with pytest.raises(ConnectError, match=r"refused the stream \(REFUSED_STREAM\)"):
            await connecting


async def test_a_server_that_speaks_something_else_is_one_clear_error() -> None:
    async with listening("rsocket+tcp://127.0.0.1:0") as place:
        connecting = asyncio.create_task(connected(f"rsocket+h2c://127.0.0.1:{place.port}"))
        server = await place.next()
        await server.until(lambda: server.reads > 0)
        server.link.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        with pytest.raises(ConnectError, match="does it speak HTTP/2 there"):
            await connecting
        await server.lost()


async def test_a_server_that_never_answers_is_given_up() -> None:
    async with raw_server() as place:
        with pytest.raises(ConnectError, match=r"no answer within 0\.05 s"):
            await connected(f"rsocket+h2c://127.0.0.1:{place.port}", SHORT)


async def test_a_client_that_gives_up_leaves_nothing() -> None:
    async with raw_server() as place:
        connecting = asyncio.create_task(connected(f"rsocket+h2c://127.0.0.1:{place.port}"))
        raw = await place.came.get()
        await raw.next(events.RequestReceived)
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting
        await raw.closed()


# Servers and other clients.


async def test_each_stream_of_a_connection_is_a_link() -> None:
    async with listening(H2C) as place, raw_client(place.port) as raw:
        servers = []
        for number in range(3):
            stream_id = raw.request()
            servers.append(await met(await place.next()))
            raw.h2.send_data(stream_id, b"%d" % number)
        raw.flush()
        for number, server in enumerate(servers):
            await server.has(b"%d" % number)
            server.link.write(b"answer %d" % number)
        await raw.until(lambda: raw.data == {1: b"answer 0", 3: b"answer 1", 5: b"answer 2"})
        servers[1].link.abort()
        await raw.next(events.StreamReset)
        assert [server.told for server in servers] == [["made"], ["made", "lost"], ["made"]]
        assert place.addresses == ["127.0.0.1"] * 3


@pytest.mark.parametrize(
    ("path", "method", "status"), [("/wrong", "POST", 404), ("/right", "GET", 405), ("/right?a=b", "POST", 200)]
)
async def test_what_is_not_asked_for_rightly_is_declined(path: str, method: str, status: int) -> None:
    async with listening(f"{H2C}/right") as place, raw_client(place.port) as raw:
        raw.request(path, method)
        assert await raw.status() == status
        if status != 200:
            reset = await raw.next(events.StreamReset)
            assert reset.error_code == ErrorCodes.NO_ERROR
            # The connection is as good as before.
            raw.told.clear()
            raw.request("/right")
            assert await raw.status() == 200


EVIL = ("origin", "https://evil.example")
APP = ("origin", "https://app.example")
LISTED = ("https://app.example",)


def fire() -> bytes:
    """Return what a client says that fires at once."""
    session = RSocketSession.client(Settings(), Payload(), DIALECTS["rsocket-1.0"])
    session.link_up(0.0)
    session.open(Kind.FIRE, "log", Payload(b"fired"))
    return b"".join(session.take_output())


@pytest.mark.parametrize("transport", ["h2c", "h2"])
@pytest.mark.parametrize(
    ("origins", "authority", "headers", "status"),
    [
        # THREATS 83: a page's fetch with a binary body, which needs no leave of the server's.
        ((), "localhost", [EVIL, ("content-type", "text/plain")], 403),
        ((), "localhost", [EVIL, TYPE], 403),
        ((), "localhost", [APP, TYPE], 403),
        (LISTED, "localhost", [EVIL, TYPE], 403),
        (LISTED, "localhost", [APP, TYPE], 200),
        (LISTED, "localhost", [TYPE], 200),
        (("*",), "localhost", [EVIL, TYPE], 200),
        # Pages in sandboxes, files, and pages that send no referrer.
        (LISTED, "localhost", [("origin", "null"), TYPE], 403),
        (("null",), "localhost", [("origin", "null"), TYPE], 200),
        # One good origin hides no other, in whatever order.
        (LISTED, "localhost", [APP, EVIL, TYPE], 403),
        (LISTED, "localhost", [EVIL, APP, TYPE], 403),
        (LISTED, "localhost", [("origin", "https://app.example https://evil.example"), TYPE], 403),
        # The server's own address, and DNS rebinding.
        ((), "127.0.0.1:7878", [("origin", "http://127.0.0.1:7878"), TYPE], 200),
        ((), "127.0.0.1:7878", [("origin", "http://127.0.0.1:80"), TYPE], 403),
        ((), "evil.example:7878", [("origin", "http://evil.example:7878"), TYPE], 403),
        # THREATS 83: pages may send these types to anybody, others only where the server allows it.
        ((), "localhost", [], 415),
        ((), "localhost", [("content-type", "")], 415),
        ((), "localhost", [("content-type", "text/plain")], 415),
        (("*",), "localhost", [EVIL, ("content-type", "text/plain;application/rsocket")], 415),
        ((), "localhost", [("content-type", "text/plain"), TYPE], 415),
        ((), "localhost", [("content-type", "text/plain, application/rsocket")], 415),
        ((), "localhost", [("content-type", "application/rsocket+x")], 415),
        ((), "localhost", [("content-type", "Application/RSocket ; v=1")], 200),
    ],
)
async def test_pages_of_others_open_no_stream(
    certificates: Certificates,
    transport: str,
    origins: tuple[str, ...],
    authority: str,
    headers: list[tuple[str, str]],
    status: int,
) -> None:
    url, context = H2C, None
    if transport == "h2":
        url, context = f"{H2}?{certificates.server_options}", certificates.client
        context.set_alpn_protocols(["h2"])
    async with listening(url, Settings(origins=origins)) as place, raw_client(place.port, context) as raw:
        server = await place.next()
        raw.request(authority=authority, headers=headers)
        assert await raw.status() == status
        assert server.told == (["made"] if status == 200 else [])


@pytest.mark.parametrize("origins", [(), LISTED])
@pytest.mark.parametrize(
    ("headers", "status"), [([EVIL, TYPE], 403), ([("content-type", "text/plain")], 415), ([TYPE], 200)]
)
async def test_no_handler_runs_for_pages_of_others(
    origins: tuple[str, ...], headers: list[tuple[str, str]], status: int
) -> None:
    # THREATS 83
    settings = Settings(origins=origins)
    async with serving(H2C, settings=settings) as world, raw_client(parse_url(world.server.urls[0]).port) as raw:
        stream_id = raw.request(headers=headers)
        raw.h2.send_data(stream_id, fire())
        raw.flush()
        assert await raw.status() == status
        if status == 200:
            await until(lambda: b"fired" in world.seen)
        else:
            await raw.next(events.StreamReset)
            # This server's clients are served all the while.
            assert (await world.peer.call("echo", b"hello")).data == b"hello"
            assert world.seen == []


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_pages_of_others_open_no_stream_of_any_protocol(protocol: str) -> None:
    # THREATS 83
    async with listening(f"{protocol}+h2c://127.0.0.1:0") as place, raw_client(place.port) as raw:
        server = await place.next()
        raw.request(headers=[EVIL, TYPE])
        assert await raw.status() == 403
        await raw.next(events.StreamReset)
        assert server.told == []


async def test_who_is_refused_for_its_origin_or_type_is_noted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "penstock")
    async with listening(H2C) as place, raw_client(place.port) as raw:
        for _ in range(3):
            raw.request(headers=[EVIL, TYPE])
        await raw.until(lambda: sum(isinstance(event, events.StreamReset) for event in raw.told) == 3)
    # One line, however many streams.
    assert caplog.text.count("a peer is refused: its request was answered with 403") == 1


async def test_the_path_of_a_client_must_be_that_of_the_server() -> None:
    async with listening(f"{H2C}/right") as place:
        with pytest.raises(ConnectError, match=rf"h2c://127.0.0.1:{place.port}/wrong: .*nothing at that path \(404\)"):
            await connected(f"rsocket+h2c://127.0.0.1:{place.port}/wrong")


async def test_who_is_refused_is_told_so() -> None:
    async with listening(H2C) as place, raw_client(place.port) as raw:
        await opened(raw, place)
        place.refusing = True
        raw.told.clear()
        raw.request()
        assert await raw.status() == 503


async def test_who_is_refused_as_a_whole_is_told_the_limit() -> None:
    # THREATS 94
    async with listening(H2C, SHORT) as place:
        place.refusing = True
        with pytest.raises(ConnectError, match="the server is full"):
            await connected(place.url)


async def test_a_connection_without_streams_is_given_up() -> None:
    async with listening(H2C, SHORT) as place, raw_client(place.port) as raw:
        server = await place.next()
        await raw.closed()
        assert raw.find(events.ConnectionTerminated) is not None
        raw.abort()
        await server.lost()
        assert server.told == ["lost"]


async def test_a_connection_whose_last_stream_has_ended_holds_one_place_and_is_given_up() -> None:
    async with listening(H2C, SHORT) as place, raw_client(place.port) as raw:
        server = await opened(raw, place)
        server.link.abort()
        await raw.closed()
        raw.abort()
        assert len(place.accepted) == 2
        assert (await server.lost(), await place.accepted[1].lost()) == (None, None)


async def test_a_listener_that_is_closed_takes_no_links_and_leaves_those_it_took() -> None:
    async with listening(H2C) as place:
        client = await connected(place.url)
        server = await met(await place.next())
        await place.listener.close()
        with pytest.raises(ConnectError, match="refused"):
            await connected(place.url)
        client.link.write(b"still here")
        await server.has(b"still here")
        client.link.close()
        assert (await server.lost(), await client.lost()) == (None, None)


async def test_a_listener_that_is_closed_takes_no_streams_of_connections_that_go_on() -> None:
    async with listening(H2C) as place, raw_client(place.port) as raw:
        server = await opened(raw, place)
        async with raw_client(place.port) as idle:
            await place.next()
            await place.listener.close()
            await idle.closed()
        raw.told.clear()
        places = len(place.addresses)
        raw.request()
        assert await raw.status() == 503
        # Nobody holds a place for it.
        assert len(place.addresses) == places
        server.link.close()
        raw.h2.end_stream(1)
        raw.flush()
        await raw.closed()
        raw.abort()
        assert await server.lost() is None


async def test_no_more_streams_than_places_are_open_at_once() -> None:
    async with listening(H2C, Settings(max_connections_per_address=2)) as place, raw_client(place.port) as raw:
        await raw.next(events.RemoteSettingsChanged)
        assert raw.h2.remote_settings.max_concurrent_streams == 2
        # This peer does not keep to it.
        raw.h2.remote_settings.update({SettingCodes.MAX_CONCURRENT_STREAMS: 100})
        raw.h2.remote_settings.acknowledge()
        for _ in range(3):
            raw.request()
        await raw.closed()
        raw.abort()
        assert [(await server.lost()) is not None for server in place.accepted] == [True] * len(place.accepted)


# TLS.


async def test_certificates_may_be_contexts_which_learn_of_http_2(certificates: Certificates) -> None:
    async with listening(H2, ssl=certificates.server) as place:
        client = await connected(place.url, ssl=certificates.client)
        server = await met(await place.next())
        client.link.write(b"hi")
        await server.has(b"hi")
        client.link.close()
        assert (await server.lost(), await client.lost()) == (None, None)


async def test_a_server_that_does_not_agree_on_http_2_is_one_clear_error(certificates: Certificates) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificates.folder / "cert.pem", certificates.folder / "key.pem")
    async with listening("rsocket+tls://localhost:0", ssl=context) as place:
        url = f"rsocket+h2://localhost:{place.port}?{certificates.client_options}"
        with pytest.raises(ConnectError, match=r"does not speak HTTP/2 there \(TLS did not agree on ALPN 'h2'\)"):
            await connected(url)
        await (await place.next()).lost()


async def test_a_client_that_does_not_agree_on_http_2_is_refused(
    certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    context = ssl.create_default_context(cafile=str(certificates.folder / "ca.pem"))
    async with listening(f"{H2}?{certificates.server_options}") as place:
        async with raw_client(place.port, context) as raw:
            server = await place.next()
            await raw.closed()
            await server.lost()
            assert server.told == ["lost"]
    assert "127.0.0.1 refused: TLS did not agree on ALPN 'h2'" in caplog.text


async def test_encryption_that_the_url_does_not_ask_for_is_wrong_use(certificates: Certificates) -> None:
    with pytest.raises(UrlError, match=r"is not encrypted; write rsocket\+h2://"):
        await connected("rsocket+h2c://localhost:1", ssl=certificates.client)
    with pytest.raises(UrlError, match="needs a certificate"):
        await penstock.serve(Service(), H2)
