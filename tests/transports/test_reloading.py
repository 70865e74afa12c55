from __future__ import annotations

import os
import ssl
from pathlib import Path
from typing import Any

import pytest
import trustme

from tests.missing import need_module
from tests.transports.certificates import Certificates
from tests.transports.recording import Place, Recorder, connected, listening
from tests.waiting import until
from weirpool import ConnectError, UrlError
from weirpool.transports import reloading
from weirpool.transports.reloading import Reloaded
from weirpool.urls import parse_url

ENCRYPTED = pytest.mark.parametrize("transport", ["tls", "wss", "h2", "quic"])
HI = b"\0\0\2hi"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at the files for each link."""
    monkeypatch.setattr(reloading, "CHECK_SECONDS", 0.0)


def renewed(folder: Path) -> Certificates:
    """Put certificates of another authority into the files of a folder."""
    for name in os.listdir(folder):
        os.unlink(folder / name)
    return Certificates(folder)


async def link_to(place: Place, ca: Path) -> tuple[Recorder, Recorder]:
    """Return both ends of a new link whose client trusts only `ca`."""
    client = await connected(f"{place.url.partition('?')[0]}?ca={ca}")
    client.link.write(HI)
    server = await place.linked()
    await server.has(HI)
    return client, server


@ENCRYPTED
async def test_new_certificates_are_used_for_new_links(transport: str, tmp_path: Path) -> None:
    old = Certificates(tmp_path)
    async with listening(f"rsocket+{transport}://localhost:0?{old.server_options}") as place:
        old_ca = tmp_path.parent / f"{transport}-old.pem"
        old_ca.write_bytes((tmp_path / "ca.pem").read_bytes())
        links = [await link_to(place, old_ca)]
        renewed(tmp_path)
        links.append(await link_to(place, tmp_path / "ca.pem"))
        with pytest.raises(ConnectError, match="not trusted"):
            await connected(f"{place.url.partition('?')[0]}?ca={old_ca}")
        # The link with the old one is not affected.
        client, server = links[0]
        server.link.write(HI)
        await client.has(HI)
        for client, server in links:
            client.link.abort()
            await server.lost()


@ENCRYPTED
async def test_unusable_certificates_leave_the_old_ones_in_use(
    transport: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    old = Certificates(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    Certificates(other)
    async with listening(f"rsocket+{transport}://localhost:0?{old.server_options}") as place:
        # Half of the pair is replaced.
        (tmp_path / "key.pem").write_bytes((other / "key.pem").read_bytes())
        for _ in range(2):
            client, server = await link_to(place, tmp_path / "ca.pem")
            client.link.abort()
            await server.lost()
        (tmp_path / "cert.pem").unlink()
        client, server = await link_to(place, tmp_path / "ca.pem")
        client.link.abort()
        await server.lost()
        (tmp_path / "cert.pem").write_bytes((other / "cert.pem").read_bytes())
        client, server = await link_to(place, other / "ca.pem")
        client.link.abort()
        await server.lost()
    lines = [record.message for record in caplog.records if "the old ones stay in use" in record.message]
    assert len(lines) == 2
    assert "No such file" in lines[1]


@pytest.mark.parametrize("transport", ["tls", "wss", "h2"])
async def test_new_authorities_of_clients_are_used_for_new_links(
    transport: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made = Certificates(tmp_path)
    authorities = [trustme.CA() for _ in range(2)]
    clients = [made_client(tmp_path, authority) for authority in authorities]
    trusted = tmp_path / "clients.pem"
    authorities[0].cert_pem.write_to_path(str(trusted))
    async with listening(f"rsocket+{transport}://localhost:0?{made.server_options}&ca={trusted}") as place:
        assert [await is_admitted(place, client) for client in clients] == [True, False]
        # Neither an empty file nor a missing one admits anybody else.
        trusted.write_text("")
        assert [await is_admitted(place, client) for client in clients] == [True, False]
        trusted.unlink()
        assert [await is_admitted(place, client) for client in clients] == [True, False]
        authorities[1].cert_pem.write_to_path(str(trusted))
        assert [await is_admitted(place, client) for client in clients] == [False, True]
    lines = [record.message for record in caplog.records if "the old ones stay in use" in record.message]
    assert len(lines) == 2


def made_client(folder: Path, authority: trustme.CA) -> ssl.SSLContext:
    """Return the context of a client with a certificate of `authority`."""
    context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    authority.issue_cert("client@example.org").configure_cert(context)
    return context


async def is_admitted(place: Place, client: ssl.SSLContext) -> bool:
    """Return True if data of a client arrives. With TLS 1.3, one that is refused learns it when it reads."""
    try:
        recorder = await connected(place.url.partition("?")[0], ssl=client)
    except ConnectError:
        return False
    server = place.accepted[-1]
    recorder.link.write(HI)
    await until(lambda: server.data == HI or "lost" in recorder.told)
    recorder.link.abort()
    await recorder.lost()
    return server.data == HI


async def test_quic_server_refuses_an_authority_of_clients(tmp_path: Path) -> None:
    # TP8: it must not seem to check what it cannot check.
    made = Certificates(tmp_path)
    with pytest.raises(UrlError, match="a QUIC server cannot ask clients for certificates; use tls, wss or h2"):
        async with listening(f"rsocket+quic://localhost:0?{made.server_options}&{made.client_options}"):
            pass


@ENCRYPTED
async def test_mistakes_are_reported_when_a_server_starts(transport: str, tmp_path: Path) -> None:
    # TP8: QUIC served, and failed each handshake.
    Certificates(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    Certificates(other)
    with pytest.raises(UrlError, match=r"certificates cannot be read: .*KEY_VALUES_MISMATCH|does not belong to the"):
        async with listening(f"rsocket+{transport}://localhost:0?cert={tmp_path}/cert.pem&key={other}/key.pem"):
            pass


@ENCRYPTED
@pytest.mark.parametrize("content", ["", "junk"])
async def test_ca_that_is_no_certificate_is_wrong_use(transport: str, content: str, tmp_path: Path) -> None:
    # TP8: QUIC reported a timeout.
    (tmp_path / "ca.pem").write_text(content)
    with pytest.raises(UrlError, match="the certificates cannot be read"):
        await connected(f"rsocket+{transport}://localhost:1?ca={tmp_path}/ca.pem")


async def test_quic_reads_a_ca_with_text_around_it(tmp_path: Path) -> None:
    made = Certificates(tmp_path)
    ca = tmp_path / "ca.pem"
    ca.write_text(f"# The authority\n{ca.read_text()}\n\n")
    async with listening(f"rsocket+quic://localhost:0?{made.server_options}") as place:
        client, server = await link_to(place, ca)
        client.link.abort()
        await server.lost()


@ENCRYPTED
async def test_encrypted_key_is_refused_without_asking_for_a_password(transport: str, tmp_path: Path) -> None:
    serialization: Any = need_module("cryptography.hazmat.primitives.serialization")
    Certificates(tmp_path)
    key = serialization.load_pem_private_key((tmp_path / "key.pem").read_bytes(), None)
    locked = serialization.BestAvailableEncryption(b"secret")
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, locked)
    (tmp_path / "key.pem").write_bytes(pem)
    with pytest.raises(UrlError, match="the certificates cannot be read"):
        async with listening(f"rsocket+{transport}://localhost:0?cert={tmp_path}/cert.pem&key={tmp_path}/key.pem"):
            pass


def test_files_are_looked_at_once_in_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(reloading, "CHECK_SECONDS", 1.0)
    monkeypatch.setattr(reloading, "monotonic", lambda: now)
    file = tmp_path / "file"
    file.write_text("1")
    url = parse_url(f"rsocket+tls://h:1?cert={file}")
    read: Reloaded[str] = Reloaded(url, ("cert", "key"), file.read_text)
    file.write_text("22")
    assert read.current() == "1"
    now += 1.0
    assert read.current() == "22"
    file.write_text("333")
    now += 0.5
    assert read.current() == "22"
    now += 0.5
    assert read.current() == "333"
