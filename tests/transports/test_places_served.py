"""Silent connections that hold all places of an address: a newer client is served, and the oldest of them is told why.

What is silent: a socket, a socket after its TLS handshake, or a QUIC connection without a stream.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from aioquic.asyncio import connect as quic_connect
from aioquic.quic import events as quic_events
from aioquic.quic.configuration import QuicConfiguration
from h2 import events

import weirpool
from tests.aio.serving import make_service
from tests.aio.taps import Notes
from tests.transports import raw_http2, raw_quic
from tests.transports.certificates import Certificates
from tests.waiting import until
from weirpool import Settings
from weirpool.aio import server as servers
from weirpool.protocols import client_session
from weirpool.tap import Refusal, RefusalCause
from weirpool.transports.http2 import Http2Listener
from weirpool.transports.tcp import SocketListener
from weirpool.transports.websocket import WebSocketListener
from weirpool.urls import parse_url

pytestmark = pytest.mark.usefixtures("silence_punished")

HELD = Settings(max_connections_per_address=2, first_frame_timeout=60.0, connect_timeout=60.0)
REASON = b"max_connections_per_address (2) links have not sent their first message, this one for the longest time"
TOLD = {"ws": b"HTTP/1.1 503 Service Unavailable", "wss": b"HTTP/1.1 503 Service Unavailable", "h2c": b"", "h2": b""}
"""What a transport sends before the reason."""

Socket = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def served(transport: str, certificates: Certificates) -> AsyncIterator[tuple[weirpool.Server, str, Notes]]:
    """Yield a server, and the URL for its clients."""
    url = f"rsocket+{transport}://127.0.0.1:0"
    encrypted = transport in ("tls", "wss", "h2", "quic")
    url += f"?{certificates.server_options}" if encrypted else ""
    notes = Notes()
    async with weirpool.serve(make_service([], asyncio.Event()), url, settings=HELD, taps=[notes]) as server:
        yield server, certificates.to_client(server.urls[0]) if encrypted else server.urls[0], notes


def sockets_of(server: weirpool.Server) -> SocketListener:
    listener = server._listeners[0]
    if isinstance(listener, WebSocketListener):
        listener = listener._listener
    elif isinstance(listener, Http2Listener) and listener._sockets is not None:
        listener = listener._sockets
    assert isinstance(listener, SocketListener)
    return listener


async def opened(
    stack: AsyncExitStack, url: str, server: weirpool.Server, context: ssl.SSLContext | None = None
) -> Socket:
    """Open a socket that sends nothing, but its TLS handshake if there is a context; wait until it is accepted."""
    if context is not None and "h2" in url:
        context.set_alpn_protocols(["h2"])
    before = len(server._arrivals)
    reader, writer = await asyncio.open_connection("127.0.0.1", parse_url(url).port, ssl=context)
    stack.callback(writer.transport.abort)
    await until(lambda: len(server._arrivals) == before + 1)
    return reader, writer


async def everything(reader: asyncio.StreamReader) -> bytes:
    """Return what is read until the end."""
    try:
        return await reader.read()
    except ConnectionError:
        return b""


async def check_served(url: str) -> None:
    async with weirpool.connect(url, reconnect=False) as peer:
        assert (await peer.call("echo", b"x")).data == b"x"


def evictions(notes: Notes) -> list[str]:
    reasons: list[Refusal] = [reason for _, _, reason in notes.of("refused")]
    return [str(reason) for reason in reasons if reason.cause is RefusalCause.CLIENT_LIMIT]


@pytest.mark.parametrize("transport", ["tls", "wss", "h2"])
async def test_oldest_socket_without_a_tls_handshake_gives_its_place_up(
    certificates: Certificates, transport: str
) -> None:
    # THREATS 95
    async with served(transport, certificates) as (server, url, notes), AsyncExitStack() as stack:
        first, second = [await opened(stack, url, server) for _ in range(2)]
        told, _ = await asyncio.gather(everything(first[0]), check_served(url))
        assert told == b"" and evictions(notes) == [REASON.decode()]
        assert not second[0].at_eof()


@pytest.mark.parametrize("transport", ["ws", "h2c", "wss", "h2"])
async def test_oldest_socket_without_a_request_gives_its_place_up(certificates: Certificates, transport: str) -> None:
    # THREATS 95
    context = certificates.client if transport in ("wss", "h2") else None
    async with served(transport, certificates) as (server, url, notes), AsyncExitStack() as stack:
        first, second = [await opened(stack, url, server, context) for _ in range(2)]
        await until(lambda: not sockets_of(server)._handshakes)
        told, _ = await asyncio.gather(everything(first[0]), check_served(url))
        assert told.startswith(TOLD[transport]) and REASON in told
        assert evictions(notes) == [REASON.decode()]
        assert not second[0].at_eof()


async def test_oldest_link_is_told_why_when_its_first_message_arrives(certificates: Certificates) -> None:
    # THREATS 95
    async with served("tcp", certificates) as (server, url, notes), AsyncExitStack() as stack:
        links = [await opened(stack, url, server) for _ in range(2)]
        await until(lambda: all(arrival.linked for arrival in server._arrivals))
        # The place that the first one has given up suffices for both.
        for _ in range(2):
            await check_served(url)
        assert evictions(notes) == [REASON.decode()]
        client = client_session("rsocket", Settings())
        client.link_up(0.0)
        reader, writer = links[0]
        writer.writelines(client.take_output())
        assert REASON in await everything(reader)
        assert not links[1][0].at_eof()


async def test_oldest_quic_connection_without_a_stream_gives_its_place_up(certificates: Certificates) -> None:
    # THREATS 95
    async with served("quic", certificates) as (_, url, notes), AsyncExitStack() as stack:
        silent = []
        for _ in range(2):
            configuration = QuicConfiguration(alpn_protocols=["rsocket"], server_name="localhost")
            configuration.load_verify_locations(str(certificates.folder / "ca.pem"))
            connecting = quic_connect(
                "127.0.0.1", parse_url(url).port or 0, configuration=configuration, create_protocol=raw_quic.Raw
            )
            silent.append(await stack.enter_async_context(connecting))
        await check_served(url)
        first, second = silent
        assert isinstance(first, raw_quic.Raw) and isinstance(second, raw_quic.Raw)
        assert (await first.next(quic_events.ConnectionTerminated)).reason_phrase == REASON.decode()
        assert not any(isinstance(event, quic_events.ConnectionTerminated) for event in second.told)
        assert evictions(notes) == [REASON.decode()]


async def test_http2_connection_whose_streams_have_ended_gives_its_place_up(certificates: Certificates) -> None:
    # THREATS 95
    async with served("h2c", certificates) as (server, url, notes), AsyncExitStack() as stack:
        port = parse_url(url).port or 0
        idle = await stack.enter_async_context(raw_http2.raw_client(port))
        idle.request("/other")
        assert await idle.status() == 404
        newer, _ = await opened(stack, url, server)
        await check_served(url)
        ended = await idle.next(events.ConnectionTerminated)
        assert ended.additional_data == REASON and not newer.at_eof()
        assert evictions(notes) == [REASON.decode()]


async def test_refused_link_gives_its_place_up_too(certificates: Certificates, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "MAX_REFUSED_LINKS", 1)
    async with served("tcp", certificates) as (server, url, notes), AsyncExitStack() as stack:
        # The third takes the place of the first, and the fourth that of the second.
        links = [await opened(stack, url, server) for _ in range(3)]
        await until(lambda: all(arrival.linked for arrival in server._arrivals))
        reader, writer = await asyncio.open_connection("127.0.0.1", parse_url(url).port)
        stack.callback(writer.transport.abort)
        # Only one refused link is kept, the latest.
        assert await everything(links[0][0]) == b""
        assert len(evictions(notes)) == 2 and len(server._arrivals) == 3
        assert not any(each.at_eof() for each in (reader, links[1][0], links[2][0]))
