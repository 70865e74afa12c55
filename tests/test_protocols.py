from __future__ import annotations

import subprocess
import sys

import pytest

from penstock import Connection, LocalError, Metadata, Settings, UrlError
from penstock.protocols import PROTOCOLS, client_session, connects_anew, data_mime, detectors, fitting
from penstock.rsocket.extensions.mimes import COMPOSITE


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_protocol_has_both_sides(protocol: str) -> None:
    client = client_session(protocol, Settings(), random=bytes(16))
    client.link_up(0.0)
    acceptor = detectors(protocol, Settings())()
    acceptor.link_up(0.0)
    server = acceptor.receive(b"".join(client.take_output()), 0.0)
    assert server is not None
    assert [type(event).__name__ for event in server.take_events()] == ["Established"]


def test_river_alone_begins_another_session_by_itself() -> None:
    assert [protocol for protocol in PROTOCOLS if connects_anew(protocol)] == ["river"]


def test_an_unknown_protocol_is_refused() -> None:
    for make in (client_session, detectors):
        with pytest.raises(UrlError, match="unknown protocol 'morse'; known are: rsocket"):
            make("morse", Settings())


def test_a_checkpoint_of_something_else_is_refused() -> None:
    with pytest.raises(LocalError, match="no checkpoint"):
        client_session("rsocket", Settings(resume=True), random=bytes(16), checkpoint=b"something", secret=b"s")


@pytest.mark.parametrize("protocol", ["rsocket", "river"])
def test_a_checkpoint_without_its_secret_is_refused(protocol: str) -> None:
    with pytest.raises(LocalError, match="without the secret"):
        client_session(protocol, Settings(resume=True), random=bytes(16), checkpoint=b"something")


def test_acceptors_of_one_server_share_its_sessions() -> None:
    client = client_session("rsocket", Settings(resume=True), random=b"r" * 16)
    client.link_up(0.0)
    first = b"".join(client.take_output())
    make = detectors("rsocket", Settings())
    for expected in ([], [0x003]):
        acceptor = make()
        acceptor.link_up(0.0)
        server = acceptor.receive(first, 0.0)
        assert server is not None
        closed = [event for event in server.take_events() if type(event).__name__ == "Closed"]
        # The second set-up names a token that is taken (THREATS 27).
        assert [event.error.code for event in closed] == expected


def test_families_are_imported_when_they_are_used() -> None:
    program = (
        "import sys, penstock.protocols; sys.exit(any(name.startswith('penstock.rsocket') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], timeout=60).returncode == 0


def test_the_mime_type_of_data_is_that_of_the_request_or_of_the_connection() -> None:
    metadata = Metadata("r", mime="application/json").encode()
    for protocol, mime, expected in (
        ("rsocket", COMPOSITE, "application/json"),
        ("rsocket", "", "application/json"),
        ("rsocket", "text/plain", "x/y"),
        ("river", COMPOSITE, "x/y"),
    ):
        connection = Connection(protocol, "", False, metadata_mime=mime, data_mime="x/y")
        assert data_mime(connection, metadata) == expected
        assert data_mime(connection, None) == "x/y"


def test_the_data_of_river_is_what_its_codec_says() -> None:
    settings = Settings(data_mime="text/plain")
    assert fitting("rsocket", settings, {}) is settings
    assert fitting("river", settings, {}).data_mime == "application/vnd.river+json"
    assert fitting("river", settings, {"codec": "msgpack"}).data_mime == "application/vnd.river+msgpack"
