from __future__ import annotations

import asyncio
import logging

import pytest
from h2 import events
from h2.errors import ErrorCodes

import weirpool
from tests.transports import interactions
from tests.transports.certificates import Certificates
from tests.transports.interactions import serving
from tests.transports.raw_http2 import H2, H2C, asked_by_client, open_link, raw_client, raw_server
from tests.transports.recording import SHORT_TIMEOUT, connected, joined, listening
from tests.waiting import turns
from weirpool import ConnectError, LinkLost, LocalError, Settings
from weirpool.transports import streams

# Sessions.


async def test_every_kind_of_interaction_travels_plain() -> None:
    async with serving(H2C) as world:
        await interactions.check_every_kind(world)


async def test_every_kind_of_interaction_travels_encrypted(certificates: Certificates) -> None:
    async with serving(f"{H2}/feed?{certificates.server_options}", certificates.to_client) as world:
        await interactions.check_every_kind(world)


@pytest.mark.slow
async def test_a_large_channel_and_a_large_payload_travel() -> None:
    async with serving(H2C) as world:
        await interactions.check_a_large_channel(world)
        await interactions.check_a_large_payload(world)


async def test_unneeded_stream_is_canceled() -> None:
    async with serving(H2C) as world:
        await interactions.check_a_cancel(world)


async def test_slow_consumer_gets_only_requested_items() -> None:
    async with serving(H2C) as world:
        await interactions.check_a_slow_consumer(world)


async def test_server_close_ends_its_sessions() -> None:
    async with serving(H2C) as world:
        call = asyncio.create_task(world.peer.call("never"))
        await world.reached.wait()
        await world.server.close(0)
        with pytest.raises(weirpool.WeirpoolError):
            await call
        with pytest.raises(ConnectError, match="refused"):
            await weirpool.connect(world.server.urls[0] if world.server.urls else H2C)


async def test_session_resumes_over_another_connection() -> None:
    settings = Settings(resume=True)
    async with serving(H2C, settings=settings) as world:
        await interactions.check_another_link(world)


# Bytes.


async def test_bytes_arrive_in_order_both_ways() -> None:
    async with joined(H2C) as (client, server):
        await interactions.check_bytes_both_ways(client, server)


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


async def test_paused_link_does_not_block_others() -> None:
    async with listening(H2C) as place, raw_client(place.port) as raw:
        first = await open_link(raw, place)
        first.link.pause_reading()
        window = 1_048_576
        assert raw.h2.local_flow_control_window(1) == min(window, raw.h2.outbound_flow_control_window)
        for _ in range(window // 16_384):
            raw.h2.send_data(1, bytes(16_384))
        raw.flush()
        second = raw.request()
        other = await place.linked()
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


async def test_output_before_close_arrives() -> None:
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
        server = await open_link(raw, place)
        server.link.write(b"the answer")
        raw.h2.send_data(1, b"last words", end_stream=True)
        raw.flush()
        await server.has(b"last words")
        assert await server.lost() is None
        await raw.next(events.StreamEnded)
        assert raw.data[1] == b"the answer"


async def test_end_waits_for_undelivered_data() -> None:
    async with listening(H2C) as place, raw_client(place.port) as raw:
        server = await open_link(raw, place)
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
        server = await open_link(raw, place)
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
        server = await open_link(raw, place)
        raw.abort()
        error = await server.lost()
        assert isinstance(error, LinkLost) and "in the middle of a stream" in str(error)


async def test_goaway_after_the_end_closes_the_link_in_order() -> None:
    async with asked_by_client() as (raw, connecting):
        raw.h2.send_headers(1, [(":status", "200")])
        raw.h2.send_data(1, b"all", end_stream=True)
        raw.h2.close_connection()
        raw.flush()
        client = await connecting
        await client.has(b"all")
        assert await client.lost() is None


async def test_goaway_before_the_end_loses_the_link() -> None:
    async with asked_by_client() as (raw, connecting):
        raw.h2.send_headers(1, [(":status", "200")])
        raw.h2.close_connection(ErrorCodes.INTERNAL_ERROR, b"on fire")
        raw.flush()
        client = await connecting
        error = await client.lost()
        assert isinstance(error, LinkLost)
        assert "INTERNAL_ERROR, 'on fire'" in str(error)


# Clients and other servers.


async def test_client_sends_a_valid_http2_request() -> None:
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
async def test_wrong_content_type_is_answered_with_the_right_one(protocol: str, type: str) -> None:
    async with listening(f"{protocol}+h2c://127.0.0.1:0") as place:
        with pytest.raises(ConnectError, match=f"this server serves {protocol}, whose content-type is {type}; .*415"):
            await connected(f"rsocket+h2c://127.0.0.1:{place.port}")


@pytest.mark.parametrize(
    ("status", "message"),
    [
        ("302", "redirects are not followed, connect to the new address"),
        ("401", "pass them with Settings.headers"),
        ("404", "nothing at that path"),
        ("405", "accepts no POST"),
        ("403", "origin"),
        ("415", "application/rsocket"),
        ("503", "no more connections"),
        ("500", "status 500"),
    ],
)
async def test_error_status_raises_connect_error(status: str, message: str) -> None:
    async with asked_by_client() as (raw, connecting):
        raw.h2.send_headers(1, [(":status", status)])
        raw.flush()
        with pytest.raises(ConnectError, match=message):
            await connecting


async def test_page_instead_of_a_session_raises_connect_error() -> None:
    # TP5: the client waited until KeepaliveTimeout.
    async with asked_by_client() as (raw, connecting):
        raw.h2.send_headers(1, [(":status", "200"), ("content-type", "text/html; charset=utf-8")])
        raw.flush()
        with pytest.raises(ConnectError, match="answered with text/html, not application/rsocket; check the path"):
            await connecting


async def test_a_stream_that_is_refused_is_one_clear_error() -> None:
    async with asked_by_client() as (raw, connecting):
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
        with pytest.raises(ConnectError, match="check that it uses HTTP/2"):
            await connecting
        await server.lost()


async def test_a_server_that_never_answers_is_given_up() -> None:
    async with raw_server() as place:
        with pytest.raises(ConnectError, match=r"no answer within 0\.05 s"):
            await connected(f"rsocket+h2c://127.0.0.1:{place.port}", SHORT_TIMEOUT)


async def test_canceled_connect_closes_the_socket() -> None:
    async with asked_by_client() as (raw, connecting):
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting
        await raw.closed()
