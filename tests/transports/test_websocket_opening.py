"""WebSocket handshakes with real peers: which are declined, given up or refused, and TLS."""

from __future__ import annotations

import asyncio
import logging
import ssl

import pytest
import trustme
from websockets.asyncio.client import connect as their_connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Origin

from tests.transports.recording import SHORT_TIMEOUT, connected, listening, raw_connection
from tests.transports.their_websockets import WS, prefixed, their_client
from tests.waiting import until
from weirpool import ConnectError, LinkLost, LocalError, ProtocolError, Settings, UrlError
from weirpool.ledger import LEDGER
from weirpool.transports import websocket
from weirpool.transports.base import MAX_REFUSED_LINKS


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
            assert str(refused).endswith(
                f"pages of {origin} may not connect; allow them with Settings.origins or --origin"
            )
            assert server.told == ["lost"]
        assert found == status


async def test_another_path_is_one_clear_error_on_both_sides(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "weirpool")
    async with listening(f"{WS}/feed") as place:
        other = place.url.replace("/feed", "/food")
        with pytest.raises(ConnectError, match=r"/food: the server answered 404 Not Found; check the path"):
            await connected(other)
        await place.accepted[0].lost()
        port = place.port
    what = "refused a peer: the opening request was answered with 404 Not Found"
    # With the port that the system has chosen.
    assert f"ws://127.0.0.1:{port}/feed: {what}" in caplog.text


async def test_plain_request_is_answered_with_426() -> None:
    async with listening(WS) as place, raw_connection(place.port) as (reader, writer):
        writer.write(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 426 Upgrade Required\r\n") and b"WebSocket client" in answer


async def test_incomplete_request_is_counted_and_pays() -> None:
    # THREATS 86
    async with listening(WS, Settings(max_connection_bytes=2_000)) as place:
        async with raw_connection(place.port) as (_, writer):
            begun = b"GET / HTTP/1.1\r\nCookie: " + b"x" * 1_500
            writer.write(begun)
            await until(lambda: "127.0.0.1" in LEDGER.identities)
            assert LEDGER.identities["127.0.0.1"].held == len(begun)
            writer.write(b"x" * 1_000)
            await until(lambda: bool(place.accepted))
            assert "a limit of bytes is reached" in str(await place.accepted[0].lost())
            assert "127.0.0.1" not in LEDGER.identities


async def test_a_request_that_does_not_come_is_given_up() -> None:
    async with listening(WS, SHORT_TIMEOUT) as place, raw_connection(place.port) as (reader, writer):
        writer.write(b"GET / HTTP/1.1\r\n")
        server = await place.next()
        error = await server.lost()
        assert isinstance(error, LinkLost) and "no WebSocket handshake" in str(error)
        assert server.told == ["lost"]
        assert await reader.read() == b""


async def test_a_server_that_does_not_answer_is_given_up() -> None:
    async with listening() as place:
        with pytest.raises(ConnectError, match=r"no answer within 0\.05 s"):
            await connected(place.url.replace("+tcp", "+ws"), SHORT_TIMEOUT)
        server = place.accepted[0]
        await server.lost()
        assert server.data.startswith(b"GET / HTTP/1.1\r\n")


async def test_a_server_that_hangs_up_is_one_clear_error() -> None:
    async with listening() as place:
        place.refusing = True
        with pytest.raises(ConnectError, match="the server closed the connection; check that it uses this protocol"):
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


async def test_closed_listener_ends_handshakes_and_keeps_links() -> None:
    async with listening(WS, Settings(connect_timeout=1_000)) as place:
        client = await connected(place.url)
        server = await place.linked()
        async with raw_connection(place.port) as (reader, _):
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


async def test_refused_client_receives_the_limit() -> None:
    # THREATS 94
    async with listening(WS) as place:
        place.refusing = True
        with pytest.raises(ConnectError, match="503 Service Unavailable: the server is full"):
            await connected(place.url)
        assert place.addresses == ["127.0.0.1"]


@pytest.mark.usefixtures("silence_spared")
async def test_only_some_refused_peers_are_waited_for() -> None:
    # THREATS 94
    async with listening(WS) as place:
        place.refusing = True
        silent = [await asyncio.open_connection("127.0.0.1", place.port) for _ in range(MAX_REFUSED_LINKS + 1)]
        assert await silent[-1][0].read() == b""
        for _, writer in silent:
            writer.close()
            await writer.wait_closed()


@pytest.mark.usefixtures("silence_punished")
async def test_oldest_refused_peer_is_no_longer_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    # THREATS 94
    monkeypatch.setattr(websocket, "MAX_REFUSED_LINKS", 1)
    async with listening(WS) as place, raw_connection(place.port) as (accepted, _):
        await place.next()
        place.refusing = True
        async with raw_connection(place.port) as (first, _), raw_connection(place.port) as (second, _):
            answer = await first.read()
            assert answer.startswith(b"HTTP/1.1 503") and b"too many clients wait for an answer" in answer
            assert not accepted.at_eof() and not second.at_eof()


async def test_a_connection_that_is_given_up_is_dropped() -> None:
    async with listening() as place:
        connecting = asyncio.create_task(connected(place.url.replace("+tcp", "+ws")))
        server = await place.next()
        await server.until(lambda: server.data != b"")
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting
        await server.lost()


async def test_reserved_headers_are_rejected_before_connecting() -> None:
    with pytest.raises(LocalError, match=r"Settings\.headers has Host"):
        await connected("rsocket+ws://127.0.0.1:1", Settings(headers=(("Host", "x"),)))


# TLS.


async def test_wss_encrypts_and_checks_the_certificate() -> None:
    # THREATS 75
    ca = trustme.CA()
    server_context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    ca.issue_cert("localhost").configure_cert(server_context)
    client_context = ssl.create_default_context()
    ca.configure_trust(client_context)
    async with listening("rsocket+wss://localhost:0/feed", ssl=server_context) as place:
        client = await connected(place.url, ssl=client_context)
        server = await place.linked()
        data = prefixed(bytes(1_000_000))
        client.link.write(data)
        client.link.close()
        await server.has(data)
        assert (await server.lost(), await client.lost()) == (None, None)
        async with their_connect(place.url.removeprefix("rsocket+"), ssl=client_context, proxy=None) as theirs:
            await theirs.send(b"hi")
            await (await place.linked()).has(prefixed(b"hi"))
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
        server = await place.linked()
        server.link.abort()
        assert await server.lost() is None
        with pytest.raises(ConnectionClosed):
            await client.recv()
