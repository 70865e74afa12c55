from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest
import trustme

import weirpool
from weirpool import Bearer, LocalError, Metadata, Service, Setup, SetupRejected
from weirpool.access.target import Target

TCP = "rsocket+tcp://127.0.0.1:7878"
TLS = "rsocket+tls://127.0.0.1:7878"

service = Service()


@service.call("echo")
def echo(request: weirpool.Payload) -> weirpool.Payload:
    return request


def admit(setup: Setup) -> None:
    if not setup.certificate and Metadata.decode(setup.payload.metadata).auth != Bearer("t0ken"):
        raise SetupRejected("who are you?")


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"url": TCP, "password": "geheim"}, "needs the name of its user"),
        ({"url": TCP, "user": "ada"}, "a user needs a password"),
        ({"url": TCP, "user": "ada", "password": "geheim", "token": "geheim"}, "and no token"),
        ({"url": "river+ws://127.0.0.1:1", "token": "geheim"}, "send them as set-up data"),
        ({"url": TCP, "settings": {"metadata_mime": "text/plain"}, "token": "geheim"}, "no place for credentials"),
        ({"url": TLS, "key": "k"}, "a key needs its certificate"),
        ({"url": TCP, "cafile": "ca.pem"}, "not encrypted"),
        ({"url": "rsocket+quic://h:1", "cert": "c"}, "QUIC"),
    ],
)
def test_contradictions_are_explained(values: dict[str, Any], why: str) -> None:
    with pytest.raises(LocalError, match=why) as caught:
        Target(**values)
    assert "geheim" not in str(caught.value)


def test_secrets_are_not_shown() -> None:
    assert "geheim" not in repr(Target(url=TCP, user="ada", password="geheim", setup="geheim"))


def test_credentials_of_requests_are_beside_their_metadata() -> None:
    target = Target(url=TCP, token="t0ken", each_request=True)
    route, metadata = target.metadata("echo", b"own")
    assert route == ""
    decoded = Metadata.decode(metadata)
    assert (decoded.route, decoded.auth, decoded.entries[-1].content) == ("echo", Bearer("t0ken"), b"own")
    assert Target(url=TCP, token="t0ken").metadata("echo", b"own") == ("echo", b"own")


async def test_a_token_is_read_where_the_connection_is_made(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t0ken\n")
    async with weirpool.serve(service, "rsocket+tcp://127.0.0.1:0", acceptor=admit) as server:
        async with Target(url=server.urls[0], token=f"@{tmp_path}/token").connect() as peer:
            assert (await peer.call("echo", b"hello")).data == b"hello"
        with pytest.raises(LocalError, match="cannot read '/no/such'"):
            Target(url=server.urls[0], token="@/no/such").connect()


async def test_certificates_are_shown_and_checked(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    authority.issue_cert("ada@example.org").private_key_and_cert_chain_pem.write_to_path(tmp_path / "ada.pem")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.verify_mode = ssl.CERT_REQUIRED
    authority.configure_trust(context)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    async with weirpool.serve(service, "rsocket+tls://127.0.0.1:0", acceptor=admit, ssl=context) as server:
        target = Target(url=server.urls[0], cafile=f"{tmp_path}/ca.pem", cert=f"{tmp_path}/ada.pem")
        async with target.connect() as peer:
            assert (await peer.call("echo", b"hello")).data == b"hello"
