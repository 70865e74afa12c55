"""TCP with TLS: whom each side trusts, and handshakes that fail or do not end."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from tests.transports.certificates import Certificates
from tests.transports.recording import SHORT_TIMEOUT, TCP, connected, listening, raw_connection
from tests.waiting import turns
from weirpool import ConnectError, LinkLost, Settings, UrlError


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """A certificate for the name alone: the address is not to be trusted."""
    return Certificates(tmp_path_factory.mktemp("certificates"), ("localhost",))


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


async def test_link_that_was_aborted_may_be_closed(certificates: Certificates) -> None:
    async with listening(TLS, ssl=certificates.server) as place:
        client = await connected(place.url, ssl=certificates.client)
        server = await place.next()
        sent = client.link.progress()[0]
        client.link.abort()
        client.link.close()
        assert client.link.get_write_buffer_size() == 0
        assert client.link.progress()[0] == sent
        await server.lost()
        await client.lost()


async def test_tls_works_without_time_to_close(certificates: Certificates) -> None:
    settings = Settings(close_grace=0.0)
    async with listening(TLS, settings, ssl=certificates.server) as place:
        client = await connected(place.url, settings, ssl=certificates.client)
        client.link.write(b"hello")
        await (await place.next()).has(b"hello")
        client.link.abort()


async def test_link_has_the_certificate_of_its_peer(certificates: Certificates) -> None:
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
        advice = "connect to a name" if host == "127.0.0.1" else r"pass its CA with ssl=\.\.\. or \?ca=FILE"
        with pytest.raises(ConnectError, match=f"not trusted .*; {advice}"):
            await connected(f"rsocket+tls://{host}:{place.port}", ssl=trusted)
        server = await place.next()
        assert isinstance(await server.lost(), LinkLost)
        assert server.link is None


async def test_client_without_tls_is_reported_before_the_link(certificates: Certificates) -> None:
    async with listening(TLS, ssl=certificates.server) as place, raw_connection(place.port) as (_, writer):
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        server = await place.next()
        error = await server.lost()
        assert isinstance(error, LinkLost) and "the TLS handshake failed" in str(error)
        assert server.told == ["lost"]


async def test_a_server_that_does_not_speak_tls_is_one_clear_error(certificates: Certificates) -> None:
    async with listening() as place:
        task = asyncio.create_task(connected(f"rsocket+tls://localhost:{place.port}", ssl=certificates.client))
        server = await place.next()
        await server.until(lambda: server.reads > 0)
        server.link.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        with pytest.raises(ConnectError, match=r"TLS failed .* check that the server uses TLS"):
            await task
        await server.lost()


async def test_a_server_that_never_answers_the_handshake_is_given_up(certificates: Certificates) -> None:
    async with listening() as place:
        with pytest.raises(ConnectError, match=r"no answer within 0\.05 s; "):
            await connected(f"rsocket+tls://localhost:{place.port}", SHORT_TIMEOUT, certificates.client)
        await place.accepted[0].lost()


async def test_a_client_that_never_begins_the_handshake_is_given_up(certificates: Certificates) -> None:
    # THREATS 75
    async with listening(TLS, SHORT_TIMEOUT, certificates.server) as place, raw_connection(place.port) as (reader, _):
        server = await place.next()
        assert isinstance(await server.lost(), LinkLost)
        assert server.told == ["lost"]
        assert await reader.read() == b""


async def test_a_listener_that_is_closed_gives_up_handshakes(certificates: Certificates) -> None:
    async with listening(TLS, ssl=certificates.server) as place, raw_connection(place.port) as (reader, _):
        server = await place.next()
        await turns(5)
        await place.listener.close()
        assert server.told == ["lost"]
        assert await reader.read() == b""


async def test_closed_listener_makes_the_links_that_it_has_accepted() -> None:
    async with listening() as place:
        closing: list[asyncio.Task[None]] = []
        place.came = lambda: closing.append(asyncio.create_task(place.listener.close()))
        async with raw_connection(place.port) as (_, writer):
            writer.write(b"early")
            server = await place.next()
            await server.has(b"early")
            await asyncio.gather(*closing)
            server.link.abort()
            await server.lost()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (TLS, r"needs a certificate; pass ssl=\.\.\., or add \?cert=FILE&key=FILE"),
        (f"{TLS}?cert=/nowhere.pem", "the certificates cannot be read"),
        (f"{TLS}?crt=x", "unknown option 'crt'; known are ca, cert, fd, key"),
        (f"{TCP}?cert=x", "unknown option 'cert'; known are fd"),
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
async def test_wrong_trust_options_in_the_url_are_errors(url: str, message: str) -> None:
    with pytest.raises(UrlError, match=message):
        await connected(url)


async def test_encryption_that_the_url_does_not_ask_for_is_wrong_use(certificates: Certificates) -> None:
    with pytest.raises(UrlError, match=r"is not encrypted; write rsocket\+tls://"):
        await connected("rsocket+tcp://localhost:1", ssl=certificates.client)


async def test_files_beside_a_context_are_wrong_use(certificates: Certificates) -> None:
    with pytest.raises(UrlError, match="ca would have no effect, because ssl is given"):
        async with listening(f"{TLS}?ca={certificates.folder}/ca.pem", ssl=certificates.server):
            pass


async def test_server_may_require_certificates_of_an_authority(certificates: Certificates) -> None:
    folder = certificates.folder
    async with listening(f"{TLS}?{certificates.server_options}&ca={folder}/ca.pem") as place:
        url = f"rsocket+tls://localhost:{place.port}"
        context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
        context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
        client = await connected(url, ssl=context)
        client.link.write(b"hi")
        server = await place.linked()
        await server.has(b"hi")
        client.link.abort()
        await server.lost()
        stranger = await connected(f"{url}?ca={folder}/ca.pem")
        await stranger.lost()
        assert await (await place.next()).lost() is not None


@pytest.mark.parametrize("wrong", ["no certificate", "another authority", "plain bytes"])
async def test_failed_handshakes_are_logged_once_in_a_while(
    wrong: str, certificates: Certificates, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # TP6
    folder = certificates.folder
    context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    if wrong == "another authority":
        Certificates(tmp_path)
        context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    async with listening(f"{TLS}?{certificates.server_options}&ca={folder}/ca.pem") as place:
        for _ in range(10):
            if wrong == "plain bytes":
                async with raw_connection(place.port) as (_, writer):
                    writer.write(b"GET / HTTP/1.1\r\n\r\n")
                    await (await place.next()).lost()
            else:
                client = await connected(f"rsocket+tls://localhost:{place.port}", ssl=context)
                await (await place.next()).lost()
                client.link.abort()
                await client.lost()
    lines = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert 1 <= len(lines) <= 3
    assert all("refused: the TLS handshake failed: [SSL" in line for line in lines)
