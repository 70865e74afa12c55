from __future__ import annotations

from pathlib import Path

import pytest

from tests.transports.certificates import Certificates
from weirpool import Settings, UrlError
from weirpool.transports.quic_connection import client_configuration, server_configuration
from weirpool.urls import parse_url

QUIC = "rsocket+quic://localhost:0"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", r"needs a certificate; add \?cert=FILE&key=FILE"),
        ("?cert=/nowhere.pem", "the certificates cannot be read: No such file"),
        ("?cert={folder}/junk.pem", "the certificates cannot be read"),
        ("?cert={folder}/cert.pem", "the certificate file has no private key; add &key=FILE"),
        ("?crt=x", "unknown option 'crt'; known are cert, key"),
    ],
)
def test_a_server_that_cannot_be_certified_is_wrong_use(tmp_path: Path, options: str, message: str) -> None:
    Certificates(tmp_path)
    (tmp_path / "junk.pem").write_text("junk")
    with pytest.raises(UrlError, match=message):
        server_configuration(parse_url(QUIC + options.format(folder=tmp_path)), Settings(), None)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("?ca=/nowhere.pem", "the certificates cannot be read: No such file"),
        ("?cert=x", "a QUIC client cannot present a certificate; use tls, wss or h2, with ssl=..."),
        ("?ca=x&key=y", "a QUIC client cannot present a certificate"),
    ],
)
def test_unreadable_ca_raises(options: str, message: str) -> None:
    with pytest.raises(UrlError, match=message):
        client_configuration(parse_url(QUIC + options), "localhost", Settings(), None)


def test_client_trusts_system_cas_and_times_out() -> None:
    configuration = client_configuration(parse_url(QUIC), "localhost", Settings(keepalive_lifetime=7.0), None)
    assert configuration.cafile is not None or configuration.capath is not None
    assert (configuration.server_name, configuration.idle_timeout) == ("localhost", 7.0)
    assert configuration.alpn_protocols == ["rsocket"]


@pytest.mark.parametrize(
    ("protocol", "alpn"),
    [
        ("rsocket", "rsocket"),
        ("reactivesocket-0.2", "rsocket"),
        ("reactivesocket-0.0", "rsocket"),
        ("reactive-streams", "reactive-streams"),
        ("river", "river"),
    ],
)
def test_both_sides_offer_the_name_of_the_protocol(certificates: Certificates, protocol: str, alpn: str) -> None:
    client = parse_url(f"{protocol}+quic://localhost:1")
    server = parse_url(f"{protocol}+quic://localhost:1?{certificates.server_options}")
    assert client_configuration(client, "localhost", Settings(), None).alpn_protocols == [alpn]
    assert server_configuration(server, Settings(), None).alpn_protocols == [alpn]
