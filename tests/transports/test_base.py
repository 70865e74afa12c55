from __future__ import annotations

import errno
import os
import socket
import ssl
from typing import Any

import pytest

from weirpool import ConnectError, LinkLost, Settings, UrlError
from weirpool.transports import base
from weirpool.transports.base import Discard, check_options, connect_errors, link_error, listen_errors
from weirpool.urls import parse_url

URL = parse_url("rsocket+tcp://example.org:7878?ca=x&zone=y")


def system_error(number: int) -> OSError:
    return OSError(number, os.strerror(number))


def tls_error(reason: str | None) -> ssl.SSLError:
    error = ssl.SSLError(1, "failed")
    if reason is not None:
        error.reason = reason
    return error


def untrusted(code: int = 18) -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_message = "self-signed certificate"
    error.verify_code = code
    return error


@pytest.mark.parametrize(
    ("seconds", "advice"), [(3.1, "check the address"), (4.5, "this process was 1.5 s late itself")]
)
def test_timeout_of_a_starved_process_does_not_blame_the_network(
    seconds: float, advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([100.0, 100.0 + seconds])
    monkeypatch.setattr(base, "monotonic", lambda: next(clock))
    with (
        pytest.raises(ConnectError, match=f"no answer within 3 s; {advice}"),
        connect_errors(URL, Settings(connect_timeout=3)),
    ):
        raise TimeoutError


@pytest.mark.parametrize(
    ("error", "what_to_do"),
    [
        (TimeoutError(), "no answer within 3 s; check the address, and firewalls on the way"),
        (system_error(errno.ECONNREFUSED), "connection refused; check that the server is running"),
        (system_error(errno.ENOENT), "the socket does not exist; check that the server is running"),
        (
            system_error(errno.ECONNRESET),
            "the server closed the connection; check that it uses this protocol and transport on this port",
        ),
        (
            system_error(errno.ECONNABORTED),
            "the server closed the connection; check that it uses this protocol and transport on this port",
        ),
        (system_error(errno.ENETUNREACH), os.strerror(errno.ENETUNREACH)),
        (OSError("example.org has no address"), "example.org has no address"),
        (socket.gaierror(socket.EAI_NONAME, "Name not known"), "the host name is unknown (Name not known)"),
        (
            untrusted(),
            "the certificate is not trusted (self-signed certificate); pass its CA with ssl=... or ?ca=FILE",
        ),
        (
            tls_error("WRONG_VERSION_NUMBER"),
            "TLS failed (WRONG_VERSION_NUMBER); check that the server uses TLS there",
        ),
        (tls_error(None), f"TLS failed ({tls_error(None)}); check that the server uses TLS there"),
        *[
            (untrusted(code), f"the certificate is not trusted (self-signed certificate); {advice}")
            for code, advice in (
                (9, "renew the server's certificate, and check the clock of this machine"),
                (10, "renew the server's certificate, and check the clock of this machine"),
                (62, "connect to a name that the certificate has"),
                (64, "connect to a name that the certificate has"),
            )
        ],
        *[
            (tls_error(reason), f"TLS failed ({reason}); {advice}")
            for reason, advice in (
                (
                    "TLSV13_ALERT_CERTIFICATE_REQUIRED",
                    "the server wants a certificate of this client; pass one that it trusts with ssl=...",
                ),
                (
                    "TLSV1_ALERT_UNKNOWN_CA",
                    "the server wants a certificate of this client; pass one that it trusts with ssl=...",
                ),
                ("TLSV1_ALERT_PROTOCOL_VERSION", "client and server have no version of TLS in common"),
                (
                    "SSLV3_ALERT_HANDSHAKE_FAILURE",
                    "client and server have no cipher in common, or the server wants a certificate",
                ),
            )
        ],
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, OSError) else "",
)
def test_connect_errors_have_one_line_with_advice(error: OSError, what_to_do: str) -> None:
    with pytest.raises(ConnectError) as raised, connect_errors(URL, Settings(connect_timeout=3)):
        raise error
    assert str(raised.value) == f"cannot connect to tcp://example.org:7878: {what_to_do}"


@pytest.mark.parametrize(
    ("number", "what_to_do"),
    [
        (errno.EADDRINUSE, "the address is in use; stop the other server, or choose another address"),
        (errno.EADDRNOTAVAIL, "this machine has no such address; omit the host to listen on all addresses"),
        (errno.EACCES, "permission denied; use a port above 1023, or a folder that you may write to"),
        (errno.EMFILE, os.strerror(errno.EMFILE)),
    ],
)
def test_listen_errors_have_one_line_with_advice(number: int, what_to_do: str) -> None:
    with pytest.raises(ConnectError) as raised, listen_errors(URL):
        raise system_error(number)
    assert str(raised.value) == f"cannot listen on tcp://example.org:7878: {what_to_do}"
    assert isinstance(raised.value.__cause__, OSError)


def test_host_that_is_not_a_name_has_one_line_with_advice() -> None:
    problem = "the host is not a valid name; check its dots, and that no part is longer than 63 characters"
    for block in (connect_errors(URL, Settings()), listen_errors(URL)):
        with pytest.raises(ConnectError, match=problem), block:
            socket.getaddrinfo("a..b", 1)


def test_errors_of_ours_are_left_as_they_are() -> None:
    for block in (connect_errors(URL, Settings()), listen_errors(URL)):
        with pytest.raises(UrlError, match="ours"), block:
            raise UrlError("ours")


def test_unknown_option_error_lists_known_ones() -> None:
    check_options(URL, frozenset({"ca", "zone", "more"}))
    with pytest.raises(UrlError, match="unknown option 'zone'; known are ca, more"):
        check_options(URL, frozenset({"more", "ca"}))
    with pytest.raises(UrlError, match="unknown option 'ca'; tcp has no options"):
        check_options(URL, frozenset())
    with pytest.raises(UrlError) as refused:
        check_options(parse_url("rsocket+tcp://h:1?token=hidden"), frozenset())
    assert "hidden" not in str(refused.value)


def test_a_link_that_breaks_is_lost_and_one_that_ends_is_not() -> None:
    broken = link_error(system_error(errno.EPIPE))
    assert isinstance(broken, LinkLost)
    assert str(broken) == f"the connection broke: {os.strerror(errno.EPIPE)}"
    bug = ValueError("a bug")
    assert (link_error(None), link_error(bug)) == (None, bug)


def test_discard_aborts_the_link() -> None:
    told: list[str] = []

    class Link:
        def abort(self) -> None:
            told.append("abort")

    link: Any = Link()
    receiver = Discard()
    receiver.link_made(link)
    receiver.received(b"x")
    receiver.writing_paused()
    receiver.writing_resumed()
    receiver.link_lost(None)
    assert told == ["abort"]


def test_alert_on_a_link_says_what_the_server_wants() -> None:
    error = link_error(tls_error("TLSV13_ALERT_CERTIFICATE_REQUIRED"))
    assert isinstance(error, LinkLost)
    assert "the server wants a certificate of this client" in str(error)
