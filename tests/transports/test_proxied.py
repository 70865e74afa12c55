from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.transports.certificates import Certificates
from tests.transports.recording import Place, connected, listening, raw_connection
from tests.transports.test_proxy_header import V1, VALID, inet
from tests.waiting import turns
from weirpool import LinkLost, LocalError, ProtocolError, Settings
from weirpool.transports.base import Refused
from weirpool.transports.proxied import ProxiedConnections

TRUSTED = Settings(trusted_proxies=("127.0.0.0/8",), proxy_protocol=True)


@pytest.mark.parametrize("pause", [False, True])
@pytest.mark.parametrize("header", list(VALID), ids=lambda header: header[:40].decode("latin-1"))
async def test_proxy_names_the_client(header: bytes, pause: bool) -> None:
    # THREATS 95
    async with listening(settings=TRUSTED) as place, raw_connection(place.port) as (_, writer):
        for part in (header, b"data") if pause else (header + b"data",):
            writer.write(part)
            await writer.drain()
            await turns(5)
        server = await place.linked()
        await server.has(b"data")
        assert place.addresses == [VALID[header] or "127.0.0.1"]


async def test_header_may_arrive_bytewise() -> None:
    async with listening(settings=TRUSTED) as place, raw_connection(place.port) as (_, writer):
        for byte in inet("192.0.2.1") + b"data":
            writer.write(bytes((byte,)))
            await writer.drain()
            await turns(2)
        await (await place.linked()).has(b"data")
        assert place.addresses == ["192.0.2.1"]


async def test_header_of_an_untrusted_address_is_data() -> None:
    # THREATS 95
    settings = Settings(trusted_proxies=("192.0.2.0/24",), proxy_protocol=True)
    async with listening(settings=settings) as place, raw_connection(place.port) as (_, writer):
        writer.write(V1)
        await (await place.linked()).has(V1)
        assert place.addresses == ["127.0.0.1"]


async def test_header_is_data_without_the_setting() -> None:
    # THREATS 95
    async with listening(settings=Settings(trusted_proxies=("127.0.0.0/8",))) as place:
        async with raw_connection(place.port) as (_, writer):
            writer.write(V1)
            await (await place.linked()).has(V1)
            assert place.addresses == ["127.0.0.1"]


@asynccontextmanager
async def refused(place: Place, data: bytes, end: bool = False) -> AsyncIterator[Exception | None]:
    """Yield the error with which a connection was refused that began with `data`."""
    async with raw_connection(place.port) as (reader, writer):
        writer.write(data)
        if end:
            writer.write_eof()
        receiver = await place.next()
        error = await receiver.lost()
        assert receiver.link is None and place.addresses == ["127.0.0.1"]
        try:
            assert await reader.read() == b""
        except ConnectionError:
            # The rest was not read.
            pass
        yield error


async def test_missing_header_is_refused_at_once(caplog: pytest.LogCaptureFixture) -> None:
    # THREATS 95
    async with listening(settings=TRUSTED) as place, refused(place, b"\0\0\x27") as error:
        assert isinstance(error, ProtocolError)
    assert "the proxy 127.0.0.1 was refused: the first bytes are 000027, not a PROXY header" in caplog.text


async def test_incomplete_header_is_refused() -> None:
    async with listening(settings=TRUSTED) as place, refused(place, V1[:20], end=True) as error:
        assert isinstance(error, LinkLost) and "before its PROXY header" in str(error)


async def test_slow_header_is_refused() -> None:
    # THREATS 95
    settings = Settings(trusted_proxies=("127.0.0.1",), proxy_protocol=True, connect_timeout=0.05)
    async with listening(settings=settings) as place, refused(place, V1[:20]) as error:
        assert str(error) == "no complete PROXY header within 0.05 s"


@pytest.mark.usefixtures("silence_spared")
async def test_unfinished_headers_have_a_limit_and_end_with_the_listener() -> None:
    settings = Settings(trusted_proxies=("127.0.0.1",), proxy_protocol=True, max_connections=2)
    async with listening(settings=settings) as place, raw_connection(place.port) as (first, _):
        async with raw_connection(place.port), raw_connection(place.port) as (third, _):
            assert await third.read() == b""
            await place.listener.close()
            assert await first.read() == b""
            assert not place.addresses


@pytest.mark.usefixtures("silence_punished")
async def test_oldest_unfinished_header_gives_its_place_up() -> None:
    # THREATS 95
    settings = Settings(trusted_proxies=("127.0.0.1",), proxy_protocol=True, max_connections=2)
    async with listening(settings=settings) as place, raw_connection(place.port) as (first, _):
        async with raw_connection(place.port) as (second, _), raw_connection(place.port) as (_, third):
            assert await first.read() == b""
            third.write(V1)
            await place.linked()
            assert place.addresses == ["192.0.2.1"] and not second.at_eof()


async def test_header_that_is_refused_costs_no_other_client_its_place() -> None:
    # THREATS 95: the refusal is only reported.
    async with listening(settings=TRUSTED) as place, raw_connection(place.port) as (reader, writer):
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        try:
            assert await reader.read() == b""
        except ConnectionError:
            pass
        await place.next()
        assert place.hang_ups == [None]


async def test_connection_that_was_just_taken_closes_with_the_listener() -> None:
    here, there = socket.socketpair()
    with there:
        here.setblocking(False)
        proxied = ProxiedConnections(
            TRUSTED, lambda connection, address: None, lambda address, hang_up: Refused("closed")
        )
        assert proxied.take(here, "127.0.0.1")
        # The task that reads its header is canceled before its first step.
        await proxied.close()
        assert here.fileno() == -1


async def test_tls_follows_the_header(certificates: Certificates) -> None:
    # THREATS 95: no byte of the TLS handshake is lost.
    url = f"rsocket+tls://127.0.0.1:0?{certificates.server_options}"
    async with listening(url, TRUSTED) as place:
        for header in (V1, inet("192.0.2.1", bytes(9_000))):
            raw = socket.create_connection(("127.0.0.1", place.port))
            raw.sendall(header)
            raw.setblocking(False)
            _, writer = await asyncio.open_connection(sock=raw, ssl=certificates.client, server_hostname="localhost")
            writer.write(b"data")
            await (await place.linked()).has(b"data")
            writer.transport.abort()
        assert place.addresses == ["192.0.2.1"] * 2


async def test_tls_without_its_header_is_refused(certificates: Certificates) -> None:
    # THREATS 95
    url = f"rsocket+tls://127.0.0.1:0?{certificates.server_options}"
    async with listening(url, TRUSTED) as place, refused(place, b"\x16\x03\x01\x02\x00") as error:
        assert isinstance(error, ProtocolError)


async def test_unix_sockets_are_trusted_by_name(tmp_path: Path) -> None:
    # THREATS 95
    for trusted, address in (("unix", "192.0.2.1"), ("0.0.0.0/0", f"uid {os.getuid()}")):
        settings = Settings(trusted_proxies=(trusted,), proxy_protocol=True)
        async with listening(f"rsocket+unix://{tmp_path}/s", settings) as place:
            _, writer = await asyncio.open_unix_connection(f"{tmp_path}/s")
            writer.write(V1)
            await place.linked()
            assert place.addresses == [address]
            writer.transport.abort()


@pytest.mark.parametrize("url", ["rsocket+memory://x", "rsocket+quic://127.0.0.1:0"])
async def test_transports_without_the_protocol_refuse_it(url: str) -> None:
    with pytest.raises(LocalError, match=r"Settings.proxy_protocol cannot be used with"):
        async with listening(url, TRUSTED):
            pass


async def test_client_sends_no_header() -> None:
    async with listening() as place:
        client = await connected(place.url, TRUSTED)
        server = await place.linked()
        client.link.write(b"data")
        await server.has(b"data")
        client.link.abort()
