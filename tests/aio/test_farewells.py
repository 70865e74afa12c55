"""What a peer receives when a server or a client closes in order, by protocol and by transport."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aioquic.asyncio import connect as connect_quic
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated as QuicTerminated
from h2.errors import ErrorCodes
from h2.events import ConnectionTerminated, SettingsAcknowledged
from websockets.asyncio.client import connect as connect_websocket
from websockets.asyncio.server import ServerConnection
from websockets.asyncio.server import serve as serve_websocket
from websockets.exceptions import ConnectionClosed

import weirpool
from tests.cli.conftest import INTEROP, SECONDS, serving
from tests.transports.certificates import Certificates
from tests.transports.raw_http2 import raw_client
from tests.transports.raw_quic import Raw as RawQuic
from tests.waiting import until
from weirpool import Kind, Payload, Service, SessionError, Settings
from weirpool.aio.server import Server
from weirpool.rsocket.dialect import DIALECTS
from weirpool.rsocket.session import RSocketSession
from weirpool.wire.reactivestreams.codec import Message, Type, encode

ENDED = b"the connection was closed; streams that were open after 0 s failed"
DONE = b"all streams are done"
NAMES = {
    "rsocket": "rsocket-1.0",
    "reactivesocket-0.2": "reactivesocket-0.2",
    "reactivesocket-0.0": "reactivesocket-0.0",
}
PROTOCOLS = pytest.mark.parametrize("protocol", [*NAMES, "reactive-streams"])


def error(protocol: str, code: int, text: bytes) -> bytes:
    """Return an ERROR of stream 0 as each protocol defines it; the first draft has it only for set-ups."""
    if protocol == "reactivesocket-0.0":
        body = bytes(2) + b"\x00\x02" + bytes(8) + code.to_bytes(4) + text
        return (len(body) + 4).to_bytes(4) + body
    body = bytes(4) + b"\x2c\x00" + code.to_bytes(4) + text
    return len(body).to_bytes(3) + body


def goodbye(text: bytes) -> bytes:
    return encode(Message(Type.GOODBYE, 0, 0, text))


IN_ORDER = {
    "rsocket": error("rsocket", 0x102, DONE),
    "reactivesocket-0.2": error("reactivesocket-0.2", 0x102, DONE),
    # The first draft has no frame that ends an established connection; see "A closing server" in deviations.md.
    "reactivesocket-0.0": error("reactivesocket-0.0", 0x100, b"the connection is closing"),
    "reactive-streams": goodbye(DONE),
}
TOO_LATE = {
    "rsocket": error("rsocket", 0x101, ENDED),
    "reactivesocket-0.2": error("reactivesocket-0.2", 0x101, ENDED),
    "reactivesocket-0.0": error("reactivesocket-0.0", 0x1, ENDED),
    "reactive-streams": goodbye(ENDED),
}


def opening(protocol: str, *, calls: bool) -> bytes:
    """Return a client's first bytes, and whether they include a call that is never answered."""
    if protocol == "reactive-streams":
        return b"\x01\x00\x00" + (b"\x03\x05never\x01\x01" if calls else b"")
    session = RSocketSession.client(Settings(), Payload(), DIALECTS[NAMES[protocol]])
    session.link_up(0.0)
    if calls:
        session.open(Kind.CALL, "never", Payload())
    return b"".join(session.take_output())


@asynccontextmanager
async def never(url: str) -> AsyncIterator[tuple[Server, asyncio.Event]]:
    """A server with a call that is never answered, and an event that is set when the call has arrived."""
    service = Service()
    begun = asyncio.Event()

    @service.call("never")
    async def wait(request: Payload) -> bytes:
        begun.set()
        await asyncio.Event().wait()
        return b""

    async with weirpool.serve(service, url) as server:
        yield server, begun


def port_of(url: str) -> int:
    return int(url.partition("?")[0].rpartition(":")[2].partition("/")[0])


# Protocols.


@PROTOCOLS
@pytest.mark.parametrize("calls", [False, True], ids=["idle", "in the middle of a call"])
async def test_server_announces_its_close(protocol: str, calls: bool) -> None:
    async with never(f"{protocol}+tcp://127.0.0.1:0") as (server, begun):
        reader, writer = await asyncio.open_connection("127.0.0.1", port_of(server.urls[0]))
        writer.write(opening(protocol, calls=calls))
        await (begun.wait() if calls else until(lambda: server.connections == 1 and not server._arrivals))
        closing = asyncio.create_task(server.close(0 if calls else 5))
        expected = (TOO_LATE if calls else IN_ORDER)[protocol]
        said = await reader.readexactly(len(expected))
        if protocol == "reactive-streams":
            # serverHello and subscribed precede it.
            said += await reader.readexactly(6 if calls else 3)
            writer.write(b"\x0d\x00")
        elif expected and not calls:
            # The server rejects requests until its client closes.
            assert not reader.at_eof()
            writer.write_eof()
        said += await reader.read()
        writer.transport.abort()
        await closing
        assert said.endswith(expected)


@PROTOCOLS
async def test_closing_server_refuses_a_silent_client(protocol: str) -> None:
    async with never(f"{protocol}+tcp://127.0.0.1:0") as (server, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port_of(server.urls[0]))
        await until(lambda: any(arrival._link is not None for arrival in server._arrivals))
        await server.close()
        said = await reader.read()
        writer.transport.abort()
        if protocol == "reactive-streams":
            # Goodbye instead of hello. For RSocket, the client's version is not known yet.
            assert said == goodbye(b"the server closes the connection: no clientHello was received")
        else:
            assert said == b""


async def test_client_rejected_before_hello_gets_the_reason() -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(goodbye(b"the server closes"))
        await reader.read()
        writer.transport.abort()

    listener = await asyncio.start_server(refuse, "127.0.0.1", 0)
    with pytest.raises(weirpool.SetupRejected, match="the server rejected the connection: the server closes"):
        await weirpool.connect(f"reactive-streams+tcp://127.0.0.1:{listener.sockets[0].getsockname()[1]}", confirm=True)
    listener.close()


@PROTOCOLS
@pytest.mark.parametrize("calls", [False, True], ids=["idle", "in the middle of a call"])
async def test_client_announces_its_close(protocol: str, calls: bool) -> None:
    heard: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    came = asyncio.Event()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        said = b""
        while data := await reader.read(65_536):
            said += data
            came.set()
            if protocol == "reactive-streams" and said.endswith((*IN_ORDER.values(), *TOO_LATE.values())[3::4]):
                writer.write(b"\x0d\x00")
        heard.set_result(said)
        writer.transport.abort()

    listener = await asyncio.start_server(listen, "127.0.0.1", 0)
    peer = await weirpool.connect(f"{protocol}+tcp://127.0.0.1:{listener.sockets[0].getsockname()[1]}")
    await came.wait()
    call = asyncio.create_task(peer.call("never")) if calls else None
    await until(lambda: call is None or peer.outstanding == 1)
    await peer.close(0 if calls else 5)
    # A client of the first draft has no frame for it.
    expected = b"" if protocol == "reactivesocket-0.0" and not calls else (TOO_LATE if calls else IN_ORDER)[protocol]
    assert (await heard).endswith(expected)
    if call is not None:
        with pytest.raises(SessionError, match="open after 0 s failed"):
            await call
    listener.close()


@pytest.mark.parametrize("protocol", ["rsocket", "reactivesocket-0.2", "reactive-streams"])
def test_weirpool_serve_closes_in_order_on_sigterm(protocol: str) -> None:
    with serving(f"{INTEROP}:service", f"{protocol}+tcp://127.0.0.1:0") as (process, urls):
        with socket.create_connection(("127.0.0.1", port_of(urls[0])), SECONDS) as client:
            # The answer shows that it was received.
            echo = opening(protocol, calls=True).replace(b"never", b"no.no")
            client.sendall(echo)
            said = client.recv(65_536)
            process.send_signal(signal.SIGTERM)
            while data := client.recv(65_536):
                said += data
                if protocol == "reactive-streams" and said.endswith(IN_ORDER[protocol]):
                    client.sendall(b"\x0d\x00")
                elif IN_ORDER[protocol] and said.endswith(IN_ORDER[protocol]):
                    client.shutdown(socket.SHUT_WR)
        assert process.wait(SECONDS) == 0
    assert said.endswith(IN_ORDER[protocol])


# Transports.


async def test_server_closes_a_websocket_with_1000() -> None:
    async with never("rsocket+ws://127.0.0.1:0") as (server, _):
        async with connect_websocket(f"ws://127.0.0.1:{port_of(server.urls[0])}", subprotocols=["rsocket"]) as client:  # type: ignore[list-item]
            await client.send(opening("rsocket", calls=False)[3:])
            await until(lambda: server.connections == 1 and not server._arrivals)
            closing = asyncio.create_task(server.close(0))
            assert await client.recv() == IN_ORDER["rsocket"][3:]
            with pytest.raises(ConnectionClosed):
                await client.recv()
            assert client.close_code == 1000
            await closing


async def test_client_closes_a_websocket_with_1000() -> None:
    codes: asyncio.Queue[int | None] = asyncio.Queue()

    async def listen(connection: ServerConnection) -> None:
        async for _ in connection:
            pass
        codes.put_nowait(connection.close_code)

    async with serve_websocket(listen, "127.0.0.1", 0, subprotocols=["rsocket"]) as listener:  # type: ignore[list-item]
        port = next(iter(listener.sockets)).getsockname()[1]
        peer = await weirpool.connect(f"rsocket+ws://127.0.0.1:{port}")
        await peer.close()
        assert await codes.get() == 1000


@pytest.mark.parametrize("streams", [0, 2])
async def test_server_says_goaway(streams: int) -> None:
    async with never("rsocket+h2c://127.0.0.1:0") as (server, _), raw_client(port_of(server.urls[0])) as raw:
        for _ in range(streams):
            raw.h2.send_data(raw.request(), opening("rsocket", calls=False))
        raw.flush()
        await raw.next(SettingsAcknowledged)
        await until(lambda: server.connections == streams)
        closing = asyncio.create_task(server.close())
        while not raw.at_end:
            await raw.read()
            for stream_id, data in raw.data.items():
                if data.endswith(IN_ORDER["rsocket"]) and raw.h2.streams[stream_id].open:
                    raw.h2.end_stream(stream_id)
            raw.flush()
        await closing
        told = raw.find(ConnectionTerminated)
        assert told is not None and told.error_code == ErrorCodes.NO_ERROR
        assert list(raw.data.values()) == [IN_ORDER["rsocket"]] * streams


async def test_server_closes_a_quic_connection_with_0(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    configuration = QuicConfiguration(alpn_protocols=["rsocket"], server_name="localhost")
    configuration.load_verify_locations(str(tmp_path / "ca.pem"))
    async with never(f"rsocket+quic://127.0.0.1:0?{certificates.server_options}") as (server, _):
        place = ("127.0.0.1", port_of(server.urls[0]))
        async with connect_quic(*place, configuration=configuration, create_protocol=RawQuic) as raw:
            assert isinstance(raw, RawQuic)
            raw.say(0, opening("rsocket", calls=False))
            await until(lambda: server.connections == 1 and not server._arrivals)
            closing = asyncio.create_task(server.close())
            await until(lambda: 0 in raw.data)
            raw.say(0, b"", end=True)
            assert (await raw.next(QuicTerminated)).error_code == 0
            assert raw.data == {0: IN_ORDER["rsocket"]}
            await closing


@pytest.mark.parametrize("protocol", ["rsocket", "reactivesocket-0.0"])
async def test_server_ends_tls_with_close_notify(protocol: str, tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)

    def read(port: int) -> bytes:
        with socket.create_connection(("127.0.0.1", port), SECONDS) as plain:
            # Without close_notify, the last read raises SSLEOFError.
            with certificates.client.wrap_socket(
                plain, server_hostname="localhost", suppress_ragged_eofs=False
            ) as client:
                client.sendall(opening(protocol, calls=False))
                said = b""
                while data := client.recv(65_536):
                    said += data
                return said

    async with never(f"{protocol}+tls://127.0.0.1:0?{certificates.server_options}") as (server, _):
        reading = asyncio.create_task(asyncio.to_thread(read, port_of(server.urls[0])))
        await until(lambda: server.connections == 1 and not server._arrivals)
        await server.close(5 if protocol == "reactive-streams" else 0)
        assert await reading == IN_ORDER[protocol]
