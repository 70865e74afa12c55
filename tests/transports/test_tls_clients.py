"""Servers that require certificates of clients: who is refused, what each side is told, and what it costs others."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

import weirpool
from tests.transports.recording import raw_connection
from weirpool import ConnectError, LinkLost, Payload, ResumeRejected, Service, Settings

DAY = timedelta(days=1)
CLIENT, SERVER = ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH
TRANSPORTS = ["tls", "wss", "h2"]
HINT = "trusts the certificate of this client"
REASONS = {
    "none": "peer did not return a certificate",
    "another authority": "unable to get local issuer certificate",
    "half a chain": "unable to get local issuer certificate",
    "self-signed": "self-signed certificate",
    "expired": "certificate has expired",
    "not yet valid": "certificate is not yet valid",
    "of a server": "unsuitable certificate purpose",
}
"""What the server logs about each certificate that it refuses."""


class Issued:
    """A certificate with its key, and the ones above it.

    Args:
        name: Its subject.
        issuer: Who signs it; None for itself.
        usage: What it is for; None for an authority.
        since: When it begins to be valid; for three days.

    """

    def __init__(
        self,
        name: str,
        issuer: Issued | None = None,
        usage: x509.ObjectIdentifier | None = None,
        since: timedelta = -DAY,
    ) -> None:
        self.issuer = issuer
        self.key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        begin = datetime.now(UTC) + since
        builder = (
            x509.CertificateBuilder(subject_name=subject, issuer_name=issuer.certificate.subject if issuer else subject)
            .public_key(self.key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(begin)
            .not_valid_after(begin + 3 * DAY)
            .add_extension(x509.BasicConstraints(usage is None, None), critical=True)
        )
        if usage is not None:
            names = x509.SubjectAlternativeName([x509.DNSName("localhost")])
            builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            builder = builder.add_extension(names, critical=False)
        self.certificate: x509.Certificate = builder.sign((issuer or self).key, hashes.SHA256())

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)

    def write(self, file: Path, *above: Issued) -> Path:
        """Write the key and the chain."""
        key = self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        file.write_bytes(key + self.pem + b"".join(each.pem for each in above))
        return file


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates of an authority, and those that a server must refuse."""
    folder = tmp_path_factory.mktemp("clients")
    root = Issued("authority")
    between = Issued("between", root)
    (folder / "ca.pem").write_bytes(root.pem)
    Issued("server", root, SERVER).write(folder / "server.pem")
    Issued("right", root, CLIENT).write(folder / "right")
    Issued("chain", between, CLIENT).write(folder / "chain", between)
    Issued("half", between, CLIENT).write(folder / "half a chain")
    Issued("stranger\x1b[31m\nroot logged in", Issued("other"), CLIENT).write(folder / "another authority")
    Issued("alone", None, CLIENT).write(folder / "self-signed")
    Issued("old", root, CLIENT, since=-4 * DAY).write(folder / "expired")
    Issued("new", root, CLIENT, since=DAY).write(folder / "not yet valid")
    Issued("server", root, SERVER).write(folder / "of a server")
    return folder


def serve(folder: Path, transport: str, protocol: str = "rsocket", **options: Any) -> weirpool.Server:
    """Return a server that tells a client the name in its certificate."""
    service = Service()

    @service.call("who")
    def who(request: Payload) -> str:
        certificate = weirpool.current_connection().certificate or {}
        names = dict(part for parts in certificate["subject"] for part in parts)
        return str(names["commonName"])

    @service.stream("ticks")
    async def ticks(request: Payload) -> AsyncIterator[bytes]:
        while True:
            yield b"tick"

    files = f"cert={folder}/server.pem&ca={folder}/ca.pem"
    return weirpool.serve(service, f"{protocol}+{transport}://localhost:0?{files}", **options)


def context(folder: Path, name: str, version: ssl.TLSVersion = ssl.TLSVersion.MAXIMUM_SUPPORTED) -> ssl.SSLContext:
    """Return the TLS context of a client that shows the certificate of this name."""
    found = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    found.maximum_version = version
    if name != "none":
        found.load_cert_chain(folder / name)
    return found


async def who(url: str, tls: ssl.SSLContext) -> str:
    """Return whom the server takes the client for."""
    async with weirpool.connect(url, ssl=tls) as peer:
        return (await peer.call("who")).data.decode()


def plain(url: str) -> str:
    return url.partition("?")[0]


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("name", ["right", "chain"])
async def test_client_with_a_certificate_of_the_authority_is_known_by_it(
    transport: str, name: str, folder: Path
) -> None:
    async with serve(folder, transport) as server:
        assert await who(plain(server.urls[0]), context(folder, name)) == name


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("name", REASONS)
async def test_other_clients_are_refused_and_both_sides_are_told_why(
    name: str, transport: str, version: ssl.TLSVersion, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serve(folder, transport) as server:
        with pytest.raises((LinkLost, ConnectError), match=HINT):
            await who(plain(server.urls[0]), context(folder, name, version))
    (line,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert REASONS[name] in line
    assert line.isprintable()
    assert "logged in" not in line


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("protocol", ["reactivesocket-0.2", "reactivesocket-0.0", "reactive-streams", "river"])
async def test_refusal_is_the_same_over_each_protocol(protocol: str, transport: str, folder: Path) -> None:
    async with serve(folder, transport, protocol) as server:
        url = plain(server.urls[0])
        with pytest.raises((LinkLost, ConnectError), match=HINT):
            async with weirpool.connect(url, ssl=context(folder, "none"), reconnect=False) as peer:
                await peer.call("who.who")


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_alert_of_a_server_is_shown(transport: str, folder: Path) -> None:
    # Unlike asyncio's, a blocking server sends one.
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(folder / "ca.pem"))
    server.load_cert_chain(folder / "server.pem")
    server.verify_mode = ssl.CERT_REQUIRED
    server.set_alpn_protocols(["h2"])
    listening = socket.create_server(("localhost", 0))

    def refuse() -> None:
        connection, _ = listening.accept()
        encrypted = server.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        with pytest.raises(ssl.SSLError):
            encrypted.do_handshake()
        # Closing a socket with unread input resets it, and the alert could be lost.
        with socket.socket(fileno=encrypted.detach()) as bare:
            bare.shutdown(socket.SHUT_WR)
            while bare.recv(65_536):
                pass

    with listening:
        refusing = asyncio.create_task(asyncio.to_thread(refuse))
        with pytest.raises((LinkLost, ConnectError), match="the server wants a certificate of this client"):
            await who(f"rsocket+{transport}://localhost:{listening.getsockname()[1]}", context(folder, "none"))
        await refusing


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_session_belongs_to_the_certificate_that_began_it(transport: str, folder: Path) -> None:
    settings = Settings(resume=True)
    async with serve(folder, transport) as server:
        url = plain(server.urls[0])
        async with weirpool.connect(url, ssl=context(folder, "right"), settings=settings) as peer:
            stream = peer.stream("ticks", manual=True)
            await anext(aiter(stream))
            checkpoint, secret = peer.checkpoint(stream, 1), peer.secret
            other = context(folder, "chain")
            with pytest.raises(ResumeRejected, match="there is no session with this token"):
                async with weirpool.connect(
                    url, ssl=other, settings=settings, reconnect=False, checkpoint=checkpoint, secret=secret
                ) as thief:
                    await thief.call("who")
            assert (await peer.call("who")).data == b"right"


async def test_honest_client_does_not_wait_for_unfinished_handshakes(folder: Path) -> None:
    settings = Settings(max_connections=1_000, max_connections_per_address=1_000)
    async with serve(folder, "tls", settings=settings) as server, contextlib.AsyncExitStack() as stack:
        port = int(plain(server.urls[0]).rpartition(":")[2])
        for _ in range(500):
            await stack.enter_async_context(raw_connection(port))
        assert await who(plain(server.urls[0]), context(folder, "right")) == "right"
