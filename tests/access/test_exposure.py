"""Which addresses others can reach, and what their clients need then."""

from __future__ import annotations

import logging
import socket

import pytest

from weirpool.access.exposure import check_exposure, check_page, is_local
from weirpool.errors import LocalError
from weirpool.urls import parse_url

LOCAL = [
    "rsocket+tcp://127.0.0.1:1",
    "rsocket+tcp://127.1.2.3:1",
    "rsocket+tcp://[::1]:1",
    "rsocket+ws://localhost:1",
    "river+unix:///tmp/s",
    "rsocket+memory://m",
]
OPEN = [
    "rsocket+tcp://:1",
    "rsocket+tcp://0.0.0.0:1",
    "river+ws://[::]:1/r",
    "rsocket+tls://collector:1?cert=c",
    "reactive-streams+tcp://10.0.0.1:1",
    # Certificates that nobody asks for.
    "rsocket+tcp://:1?ca=a",
    "rsocket+quic://:1?cert=c&ca=a",
]


@pytest.mark.parametrize("url", LOCAL)
def test_this_machine_needs_no_credentials(url: str, caplog: pytest.LogCaptureFixture) -> None:
    check_exposure([url], authenticated=False, allowed=False)
    check_exposure([url], authenticated=True, allowed=False)
    assert not caplog.records


@pytest.mark.parametrize("url", OPEN)
def test_other_machines_need_credentials_or_an_option(url: str) -> None:
    wanted = r"clients need no credentials; .* require --auth or client certificates .* with --allow-anonymous$"
    with pytest.raises(LocalError, match=wanted):
        check_exposure([LOCAL[0], url], authenticated=False, allowed=False, remedy="--auth or")
    check_exposure([url], authenticated=True, allowed=False)
    check_exposure([url], authenticated=False, allowed=True)


@pytest.mark.parametrize("transport", ["tls", "wss", "h2"])
def test_client_certificates_are_credentials(transport: str) -> None:
    url = f"rsocket+{transport}://:1?cert=c"
    check_exposure([f"{url}&ca=a"], authenticated=False, allowed=False)
    with pytest.raises(LocalError):
        check_exposure([url], authenticated=False, allowed=False)


def test_credentials_in_clear_text_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        check_exposure(["rsocket+tls://:1?cert=c"], authenticated=True, allowed=False)
        check_exposure(["rsocket+tcp://:1"], authenticated=False, allowed=True)
        assert not caplog.records
        check_exposure(["rsocket+tcp://:1"], authenticated=True, allowed=False)
    assert "not encrypted" in caplog.text


@pytest.mark.parametrize(("address", "local"), [("127.0.0.1", True), ("0.0.0.0", False)])
def test_an_inherited_socket_is_where_it_was_bound(address: str, local: bool) -> None:
    with socket.create_server((address, 0)) as given:
        assert is_local(parse_url(f"rsocket+tcp://127.0.0.1:1?fd={given.fileno()}")) is local
        with socket.create_server(("127.0.0.1", 0)) as other:
            assert is_local(parse_url(f"rsocket+tcp://:1?fd={other.fileno()},{given.fileno()}")) is local
        assert given.getsockname()


@pytest.mark.parametrize("number", ["9999", "x", "0"])
def test_a_descriptor_that_is_no_socket_is_not_local(number: str) -> None:
    assert not is_local(parse_url(f"rsocket+tcp://127.0.0.1:1?fd={number}"))


def test_a_page_is_for_this_machine_only() -> None:
    for host in ("127.0.0.1", "::1", "localhost"):
        check_page("--http", host, allowed=False)
    for host in ("0.0.0.0", "::", "collector", "10.0.0.1"):
        with pytest.raises(LocalError, match=rf"--http {host}: .* with --allow-anonymous$"):
            check_page("--http", host, allowed=False)
        check_page("--http", host, allowed=True)
