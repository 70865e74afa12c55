from __future__ import annotations

import ssl
from pathlib import Path

import pytest
import trustme

from tests.cli.conftest import INTEROP, SEEN, Weirpool, assert_one_line, serving
from weirpool.cli import parser
from weirpool.cli.trust import client_tls
from weirpool.errors import LocalError
from weirpool.settings import Settings
from weirpool.transports.base import connect_errors
from weirpool.urls import parse_url

TLS = "rsocket+tls://127.0.0.1:7878"
QUIC = "rsocket+quic://127.0.0.1:7878"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ca.pem, server.pem and server.key, client.pem with its key in it, and locked.key."""
    folder = tmp_path_factory.mktemp("tls")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    server = authority.issue_cert("127.0.0.1")
    server.private_key_pem.write_to_path(folder / "server.key")
    for pem in server.cert_chain_pems:
        pem.write_to_path(folder / "server.pem", append=True)
    authority.issue_cert("client@example.org").private_key_and_cert_chain_pem.write_to_path(folder / "client.pem")
    (folder / "empty.pem").touch()
    return folder


def test_trust_is_from_the_url_without_options() -> None:
    assert client_tls(TLS) == (TLS, None)


def test_trust_any_certificate() -> None:
    _, context = client_tls(TLS, insecure=True)
    assert context is not None and context.verify_mode is ssl.CERT_NONE


def test_quic_client_gets_its_file_by_the_url() -> None:
    assert client_tls(QUIC, "ca.pem") == (f"{QUIC}?ca=ca.pem", None)


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"cafile": "empty.pem"}, r"empty\.pem"),
        ({"cafile": "missing.pem"}, r"missing\.pem"),
        ({"cert": "empty.pem"}, r"empty\.pem"),
        ({"cert": "server.pem", "key": "client.pem"}, r"server\.pem.*client\.pem"),
        ({"key": "server.key"}, "--cert"),
    ],
)
def test_unreadable_file_is_named(options: dict[str, str], part: str, files: Path) -> None:
    with pytest.raises(LocalError, match=part):
        client_tls(TLS, **{name: str(files / file) for name, file in options.items()})  # type: ignore[arg-type]


def test_unsupported_tls_options_of_quic_are_errors(files: Path) -> None:
    pem, ca = str(files / "client.pem"), str(files / "ca.pem")
    for options in ({"insecure": True}, {"cert": pem}, {"cert": pem, "cafile": ca}):
        with pytest.raises(LocalError, match="only --cafile"):
            client_tls(QUIC, **options)  # type: ignore[arg-type]


def test_both_sides_present_certificates(weirpool: Weirpool, files: Path) -> None:
    options = ("--cert", f"{files}/server.pem", "--key", f"{files}/server.key", "--cafile", f"{files}/ca.pem")
    with serving(SEEN, "rsocket+tls://127.0.0.1:0", options=options) as (_, urls):
        call = ("call", urls[0], "setup", "--cafile", f"{files}/ca.pem")
        (answer,) = weirpool(*call, "--cert", f"{files}/client.pem").objects
        assert answer["certificate"]
        refused = weirpool(*call)
        assert refused.code == 3
        assert_one_line(refused)


def test_certificate_errors_name_the_options(weirpool: Weirpool, files: Path) -> None:
    options = ("--cert", f"{files}/server.pem", "--key", f"{files}/server.key")
    with serving(SEEN, "rsocket+tls://127.0.0.1:0", options=options) as (_, urls):
        result = weirpool("call", urls[0].partition("?")[0], "setup")
    assert result.code == 3
    assert_one_line(result)
    assert "pass its CA with --cafile FILE or ?ca=FILE" in result.err and "ssl=" not in result.err


def test_missing_client_certificates_name_the_options(weirpool: Weirpool, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(arguments: list[str]) -> int:
        error = ssl.SSLError(1, "failed")
        error.reason = "TLSV13_ALERT_CERTIFICATE_REQUIRED"
        with connect_errors(parse_url(TLS), Settings()):
            raise error

    monkeypatch.setattr(parser, "invoke", refuse)
    result = weirpool("doctor")
    assert result.code == 3
    assert "pass one that it trusts with --cert FILE and --key FILE\n" in result.err


@pytest.mark.parametrize("transport", ["wss", "h2", "quic"])
def test_every_encrypted_transport(weirpool: Weirpool, files: Path, transport: str) -> None:
    options = ("--cert", f"{files}/server.pem", "--key", f"{files}/server.key")
    with serving(f"{INTEROP}:service", f"rsocket+{transport}://127.0.0.1:0/here", options=options) as (_, urls):
        url = urls[0].partition("?")[0]
        result = weirpool("call", url, "echo", "-d", "hi", "--cafile", f"{files}/ca.pem")
        assert (result.code, result.out, result.err) == (0, b"hi\n", "")
