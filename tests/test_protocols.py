from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import asdict
from importlib import import_module
from inspect import signature
from typing import Any

import pytest

from weirpool import Connection, LocalError, Metadata, Settings, UrlError
from weirpool.protocols import (
    PROTOCOLS,
    VERSIONS,
    Dump,
    ProtocolSpec,
    client_session,
    connection_settings,
    data_mime,
    detectors,
    dump_of,
    spec_of,
)
from weirpool.rsocket.dialect import DIALECTS
from weirpool.rsocket.extensions.mimes import COMPOSITE


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_protocol_has_both_sides(protocol: str) -> None:
    client = client_session(protocol, Settings(), random=bytes(16))
    client.link_up(0.0)
    acceptor = detectors(protocol, Settings())()
    acceptor.link_up(0.0)
    server = acceptor.receive(b"".join(client.take_output()), 0.0)
    assert server is not None
    assert [type(event).__name__ for event in server.take_events()] == ["Established"]


def test_only_river_starts_another_session() -> None:
    assert [protocol for protocol in PROTOCOLS if spec_of(protocol).reconnects] == ["river"]


def rows() -> list[ProtocolSpec]:
    return [spec_of(protocol) for protocol in PROTOCOLS]


def test_rows_match_their_families() -> None:
    for spec in rows():
        dialect = DIALECTS.get(spec.version)
        assert spec.metadata_mime == (dialect and dialect.metadata_mime)
        assert spec.resumes is bool(dialect and dialect.keepalive)


def test_rows_refer_to_existing_objects() -> None:
    for spec in rows():
        references = [value for value in asdict(spec).values() if re.fullmatch(r"[\w.]+:\w+", str(value))]
        assert len(references) >= 3
        for reference in references:
            module, _, name = reference.partition(":")
            assert callable(getattr(import_module(f"weirpool.{module}"), name))


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_can_be_shown(version: str) -> None:
    dump = dump_of(version)
    for verb in ("frames", "encoder", "detected", "reader"):
        assert list(signature(getattr(dump, verb)).parameters) == list(signature(getattr(Dump, verb)).parameters)[1:]
    assert dump.framings["none"] == 0 and dump.unit in ("frame", "message")
    assert hasattr(dump.reader("", False, False), "lines")


def test_unknown_version_raises() -> None:
    with pytest.raises(LocalError, match=r"'morse-1'; use one of rsocket-1\.0, .*, river-2\.0"):
        dump_of("morse-1")


def test_unknown_protocol_raises() -> None:
    for make in (client_session, detectors):
        with pytest.raises(UrlError, match="unknown protocol 'morse'; known are: rsocket"):
            make("morse", Settings())


ASKED: dict[str, Any] = {
    "resume": True,
    "lease": True,
    "extensions": ("metadata",),
    "element_sizes": (("route", 8),),
    "metadata_mime": "text/plain",
    "client_ids": "even",
    "lenient": True,
    "strict": True,
    "length_counts_itself": True,
}
RSOCKET = {"resume", "lease", "metadata_mime", "client_ids", "lenient", "length_counts_itself"}


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize(
    ("protocol", "honored"),
    [
        ("rsocket", RSOCKET),
        ("reactivesocket-0.2", RSOCKET | {"strict"}),
        ("reactivesocket-0.0", RSOCKET - {"resume"}),
        ("reactive-streams", {"extensions", "element_sizes"}),
        # Its sessions always outlive their links.
        ("river", {"resume"}),
    ],
)
def test_unsupported_setting_raises(protocol: str, honored: set[str], name: str) -> None:
    settings = Settings(**{name: ASKED[name]})
    if name in honored:
        assert client_session(protocol, settings, random=bytes(16)).link_wanted
    else:
        with pytest.raises(LocalError, match=f"^{protocol} .*; leave Settings.{name} out$"):
            client_session(protocol, settings, random=bytes(16))


def test_checkpoint_of_another_protocol_raises() -> None:
    with pytest.raises(LocalError, match="invalid session checkpoint"):
        client_session("rsocket", Settings(resume=True), random=bytes(16), checkpoint=b"something", secret=b"s")


@pytest.mark.parametrize("protocol", ["rsocket", "river"])
def test_checkpoint_without_secret_raises(protocol: str) -> None:
    with pytest.raises(LocalError, match="secret of the checkpoint"):
        client_session(protocol, Settings(resume=True), random=bytes(16), checkpoint=b"something")


def test_detectors_of_one_server_share_its_sessions() -> None:
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
        # The second set-up has a token that is in use (THREATS 27).
        assert [event.error.code for event in closed] == expected


def test_families_are_imported_on_first_use() -> None:
    program = (
        "import sys, weirpool.protocols; sys.exit(any(name.startswith('weirpool.rsocket') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], timeout=60).returncode == 0


def test_data_mime_is_that_of_request_or_connection() -> None:
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


def test_data_mime_of_river_follows_its_codec() -> None:
    settings = Settings(data_mime="text/plain")
    assert connection_settings("rsocket", settings, {}) is settings
    assert connection_settings("river", settings, {}).data_mime == "application/vnd.river+json"
    assert connection_settings("river", settings, {"codec": "msgpack"}).data_mime == "application/vnd.river+msgpack"
