from __future__ import annotations

import asyncio
import errno
import os
import socket
import ssl
import stat
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trustme
import uvloop

from penstock import ConnectError, LinkLost, Settings, UrlError, transports
from penstock.settings import DEFAULT_SETTINGS
from penstock.transports import Link, tcp
from penstock.urls import parse_url
from tests.transports import interactions
from tests.transports.recording import TCP, Recorder, connected, joined, listening
from tests.waiting import turns

SHORT = Settings(connect_timeout=0.05)
"""For what never comes."""


@asynccontextmanager
async def stranger(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection by somebody who is not of ours."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


# Bytes.


async def test_bytes_arrive_in_order_both_ways() -> None:
    async with joined() as (client, server):
        for number in range(10):
            client.link.write(b"%d" % number)
            server.link.write(b"%d" % (9 - number))
        await server.has(b"0123456789")
        await client.has(b"9876543210")
        assert (client.told, server.told) == (["made"], ["made"])


async def test_what_came_together_is_read_at_once() -> None:
    async with joined() as (client, server):
        frames = [b"\0\0\x06%06d" % number for number in range(1_000)]
        server.link.pause_reading()
        for frame in frames:
            client.link.write(frame)
        server.link.resume_reading()
        await server.has(b"".join(frames))
        assert server.reads < 100


async def test_nothing_is_held_back_for_company() -> None:
    async with joined() as (client, server):
        for end in (client, server):
            connection = end.link._transport.get_extra_info("socket")
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


async def test_a_reader_that_is_slow_slows_its_writer() -> None:
    async with joined(settings=Settings(output_high_bytes=1_000_000)) as (client, server):
        server.link.pause_reading()
        written = 0
        while "paused" not in client.told:
            client.link.write(bytes(50_000))
            written += 50_000
        assert client.link.get_write_buffer_size() > 1_000_000
        # It stays so.
        await turns(50)
        assert client.told == ["made", "paused"]
        server.link.resume_reading()
        await client.until(lambda: "resumed" in client.told)
        await server.has(bytes(written))


# Ends.


async def test_what_was_written_before_a_link_is_closed_arrives() -> None:
    async with joined() as (client, server):
        await interactions.check_last_words(client, server)


async def test_a_link_that_is_closed_takes_what_the_peer_still_sends() -> None:
    # A socket that is closed with input unread is reset, and what the peer has not read is lost.
    async with listening() as place, stranger(place.port) as (reader, writer):
        server = await place.next()
        await server.until(lambda: server.link is not None)
        server.link.write(b"farewell")
        server.link.close()
        writer.write(bytes(1_000_000))
        await writer.drain()
        assert await reader.read() == b"farewell"
        writer.close()
        assert await server.lost() is None


async def test_a_peer_that_never_closes_its_half_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp, "LINGER", 0.0)
    async with listening() as place, stranger(place.port):
        server = await place.next()
        await server.until(lambda: server.link is not None)
        server.link.close()
        assert await server.lost() is None


async def test_a_peer_that_closes_its_half_ends_the_link_in_order() -> None:
    async with listening() as place, stranger(place.port) as (reader, writer):
        writer.write(b"last words")
        writer.write_eof()
        server = await place.next()
        await server.has(b"last words")
        assert await server.lost() is None
        assert await reader.read() == b""


async def test_a_link_that_is_reset_is_lost_with_the_reason() -> None:
    async with joined() as (client, server):
        connection = server.link._transport.get_extra_info("socket")
        # Closing without lingering sends a reset.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        server.link.abort()
        error = await client.lost()
        assert isinstance(error, LinkLost)
        assert "reset" in str(error)


class Shy(Recorder):
    """Wants no link at all."""

    def link_made(self, link: Link) -> None:
        super().link_made(link)
        link.abort()


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_link_that_is_lost_at_once_leaves_no_socket_that_closes_the_file_of_somebody_else(
    new_loop: Callable[[], asyncio.AbstractEventLoop], monkeypatch: pytest.MonkeyPatch
) -> None:
    connect, kept = tcp._connected, list[socket.socket]()

    async def keep(*place: Any) -> socket.socket:
        kept.append(await connect(*place))
        return kept[0]

    async def lose() -> int:
        async with listening() as place:
            shy = Shy()
            await transports.connect(parse_url(place.url), shy, DEFAULT_SETTINGS, None)
            await shy.lost()
        # A closed descriptor has a number that the next file gets.
        return kept[0].fileno()

    monkeypatch.setattr(tcp, "_connected", keep)
    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert runner.run(lose()) == -1


# Places.


async def test_a_port_in_use_is_one_clear_error() -> None:
    async with listening() as place:
        with pytest.raises(ConnectError, match=rf"tcp://127.0.0.1:{place.port}: it is in use; stop what listens there"):
            async with listening(place.url):
                pass


async def test_a_listener_that_is_closed_takes_no_links_and_leaves_those_it_took() -> None:
    async with listening() as place:
        client = await connected(place.url)
        server = await place.next()
        await server.until(lambda: server.link is not None)
        await place.listener.close()
        with pytest.raises(ConnectError, match="refused"):
            await connected(place.url)
        client.link.write(b"still here")
        await server.has(b"still here")
        client.link.abort()
        await server.lost()


async def test_who_is_refused_is_closed_before_anything_is_said() -> None:
    async with listening() as place:
        place.refusing = True
        client = await connected(place.url)
        await client.lost()
        assert (client.data, place.addresses) == (b"", ["127.0.0.1"])


@pytest.mark.parametrize("host", ["", "0.0.0.0", "localhost"])
async def test_every_interface_can_be_connected_to_by_the_same_url(host: str) -> None:
    async with listening(f"rsocket+tcp://{host}:0") as place:
        client = await connected(place.url)
        server = await place.next()
        client.link.write(b"hi")
        await server.has(b"hi")
        client.link.abort()
        await server.lost()


async def test_without_file_descriptors_links_wait_and_one_line_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # THREATS 74
    loop = asyncio.get_running_loop()
    accept = loop.sock_accept
    errors = [errno.EMFILE, errno.EMFILE, errno.ECONNABORTED]

    async def starved(listening: socket.socket) -> Any:
        if errors:
            number = errors.pop()
            raise OSError(number, os.strerror(number))
        return await accept(listening)

    monkeypatch.setattr(tcp, "ACCEPT_RETRY", 0.0)
    monkeypatch.setattr(loop, "sock_accept", starved)
    async with listening() as place:
        client = await connected(place.url)
        server = await place.next()
        client.link.abort()
        await server.lost()
    assert [record.message for record in caplog.records if "no connection can be accepted" in record.message] == [
        f"tcp://127.0.0.1:{place.port}: no connection can be accepted: {os.strerror(errno.EMFILE)}"
    ]


# Unix sockets.


async def test_a_unix_socket_goes_with_its_listener(tmp_path: Path) -> None:
    url = f"rsocket+unix://{tmp_path}/s"
    async with joined(url) as (client, server):
        assert stat.S_ISSOCK(os.stat(tmp_path / "s").st_mode)
        client.link.write(b"there")
        server.link.write(b"back")
        await server.has(b"there")
        await client.has(b"back")
    assert os.listdir(tmp_path) == []
    with pytest.raises(ConnectError, match="no such socket; is the server running"):
        await connected(url)


async def test_a_unix_socket_that_a_crash_left_is_replaced_and_one_in_use_is_not(tmp_path: Path) -> None:
    url = f"rsocket+unix://{tmp_path}/s"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "s"))
    async with joined(url) as (client, server):
        with pytest.raises(ConnectError, match="in use"):
            async with listening(url):
                pass
        # Whoever was there is still there.
        client.link.write(b"hi")
        await server.has(b"hi")


async def test_a_file_that_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("precious")
    with pytest.raises(ConnectError, match="in use"):
        async with listening(f"rsocket+unix://{tmp_path}/s"):
            pass
    assert (tmp_path / "s").read_text() == "precious"


# TLS.


@dataclass
class Certificates:
    """A server's certificate, by a CA that `client` trusts, as contexts and as files."""

    server: ssl.SSLContext
    client: ssl.SSLContext
    folder: Path


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Certificates]:
    folder = tmp_path_factory.mktemp("certificates")
    ca = trustme.CA()
    certificate = ca.issue_cert("localhost")
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    certificate.configure_cert(server)
    client = ssl.create_default_context()
    ca.configure_trust(client)
    ca.cert_pem.write_to_path(str(folder / "ca.pem"))
    certificate.private_key_pem.write_to_path(str(folder / "key.pem"))
    for pem in certificate.cert_chain_pems:
        pem.write_to_path(str(folder / "cert.pem"), append=True)
    yield Certificates(server, client, folder)


TLS = "rsocket+tls://localhost:0"


async def test_bytes_travel_encrypted_and_a_close_loses_none(certificates: Certificates) -> None:
    async with listening(TLS, ssl=certificates.server) as place:
        client = await connected(place.url, ssl=certificates.client)
        server = await place.next()
        data = bytes(1_000_000)
        client.link.write(data)
        client.link.close()
        await server.has(data)
        assert await server.lost() is None
        await client.lost()


async def test_a_link_knows_the_certificate_of_its_peer(certificates: Certificates) -> None:
    async with listening(TLS, ssl=certificates.server) as place:
        client = await connected(place.url, ssl=certificates.client)
        server = await place.next()
        client.link.write(b"made")
        await server.has(b"made")
        assert client.link.get_extra_info("peercert")["subjectAltName"] == (("DNS", "localhost"),)
        assert not server.link.get_extra_info("peercert")
        client.link.abort()
        await server.lost()


async def test_certificates_may_be_files_that_the_url_names(certificates: Certificates) -> None:
    folder = certificates.folder
    async with listening(f"{TLS}?cert={folder}/cert.pem&key={folder}/key.pem") as place:
        url = f"rsocket+tls://localhost:{place.port}?ca={folder}/ca.pem"
        client = await connected(url)
        server = await place.next()
        client.link.write(b"hi")
        await server.has(b"hi")
        client.link.abort()
        await server.lost()


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"], ids=["an unknown CA", "another name"])
async def test_a_certificate_that_is_not_to_be_trusted_is_refused(certificates: Certificates, host: str) -> None:
    # THREATS 75
    trusted = certificates.client if host == "127.0.0.1" else None
    async with listening(TLS, ssl=certificates.server) as place:
        with pytest.raises(ConnectError, match=r"not trusted .*; name its CA with ssl=\.\.\., or \?ca=FILE"):
            await connected(f"rsocket+tls://{host}:{place.port}", ssl=trusted)
        server = await place.next()
        assert isinstance(await server.lost(), LinkLost)
        assert server.link is None


async def test_who_does_not_speak_tls_is_told_of_before_there_is_a_link(certificates: Certificates) -> None:
    async with listening(TLS, ssl=certificates.server) as place, stranger(place.port) as (_, writer):
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        server = await place.next()
        error = await server.lost()
        assert isinstance(error, LinkLost) and "no TLS handshake" in str(error)
        assert server.told == ["lost"]


async def test_a_server_that_does_not_speak_tls_is_one_clear_error(certificates: Certificates) -> None:
    async with listening() as place:
        task = asyncio.create_task(connected(f"rsocket+tls://localhost:{place.port}", ssl=certificates.client))
        server = await place.next()
        await server.until(lambda: server.reads > 0)
        server.link.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        with pytest.raises(ConnectError, match=r"TLS failed .* does the server speak TLS there"):
            await task
        await server.lost()


async def test_a_server_that_never_answers_the_handshake_is_given_up(certificates: Certificates) -> None:
    async with listening() as place:
        with pytest.raises(ConnectError, match=r"no answer within 0\.05 s; is the address right"):
            await connected(f"rsocket+tls://localhost:{place.port}", SHORT, certificates.client)
        await place.accepted[0].lost()


async def test_a_client_that_never_begins_the_handshake_is_given_up(certificates: Certificates) -> None:
    # THREATS 75
    async with listening(TLS, SHORT, certificates.server) as place, stranger(place.port) as (reader, _):
        server = await place.next()
        assert isinstance(await server.lost(), LinkLost)
        assert server.told == ["lost"]
        assert await reader.read() == b""


async def test_a_listener_that_is_closed_gives_up_handshakes(certificates: Certificates) -> None:
    async with listening(TLS, ssl=certificates.server) as place, stranger(place.port) as (reader, _):
        server = await place.next()
        await turns(5)
        await place.listener.close()
        assert server.told == ["lost"]
        assert await reader.read() == b""


async def test_a_listener_that_is_closed_gives_up_links_that_have_only_come_in() -> None:
    async with listening() as place:
        closing: list[asyncio.Task[None]] = []
        place.came = lambda: closing.append(asyncio.create_task(place.listener.close()))
        async with stranger(place.port) as (reader, _):
            assert await reader.read() == b""
        await asyncio.gather(*closing)
        assert [server.told for server in place.accepted] == [["lost"]]


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (TLS, r"needs a certificate: give ssl=\.\.\., or add \?cert=FILE&key=FILE"),
        (f"{TLS}?cert=/nowhere.pem", "the certificates cannot be read"),
        (f"{TLS}?crt=x", "unknown option 'crt'; known are cert, key"),
        (f"{TCP}?cert=x", "unknown option 'cert'; tcp has none"),
    ],
)
async def test_a_place_that_cannot_be_encrypted_as_asked_is_wrong_use(url: str, message: str) -> None:
    with pytest.raises(UrlError, match=message):
        async with listening(url):
            pass


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("rsocket+tls://localhost:1?ca=/nowhere.pem", "the certificates cannot be read"),
        ("rsocket+tls://localhost:1?cert=x", "unknown option 'cert'; known are ca"),
    ],
)
async def test_whom_to_trust_is_to_be_known(url: str, message: str) -> None:
    with pytest.raises(UrlError, match=message):
        await connected(url)


async def test_encryption_that_the_url_does_not_ask_for_is_wrong_use(certificates: Certificates) -> None:
    with pytest.raises(UrlError, match=r"is not encrypted; write rsocket\+tls://"):
        await connected("rsocket+tcp://localhost:1", ssl=certificates.client)
