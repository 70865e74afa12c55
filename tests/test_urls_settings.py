"""Settings that have no effect with the chosen protocol and transport are refused."""

from __future__ import annotations

import re
from contextlib import nullcontext
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import weirpool
from weirpool import LocalError, Service, Settings
from weirpool.leases import FixedLease
from weirpool.protocols import PROTOCOLS, spec_of, specific, uses
from weirpool.settings import DEFAULT_SETTINGS
from weirpool.transports import MODULES
from weirpool.urls import TRANSPORT_SETTINGS, TRANSPORTS, WITH_HEADERS, check_settings, fitting, parse_url

SRC = Path(weirpool.__file__).parent
SPECIAL: dict[str, Any] = {
    "lease": True,
    "extensions": ("metadata",),
    "element_sizes": (("route", 8),),
    "client_ids": "even",
    "served_0_2": "rsocket-1.0",
    "origins": ("https://example.org",),
    "headers": (("X-Id", "1"),),
    "trusted_proxies": ("10.0.0.0/8",),
    "max_credit": 99,
    "fragment_bytes": 4096,
}
ABOVE = {"lease_timeout": "lease", "max_sessions": "resume_bytes", "resume_store": "resume_bytes"}
"""Settings that are read above the families, with one that the families concerned read."""


def changed(name: str) -> Settings:
    """Return settings with another value of one of them."""
    default = getattr(DEFAULT_SETTINGS, name)
    value = SPECIAL.get(name)
    if value is None:
        value = not default if isinstance(default, bool) else "x/y" if isinstance(default, str) else default + 1
    needed = {"trusted_proxies": SPECIAL["trusted_proxies"]} if name == "proxy_protocol" else {}
    return Settings(**{name: value}, **needed)


def read_in(*places: str) -> set[str]:
    """Return the settings that the files of some folders, or some files, read."""
    files = [file for place in places for file in ((SRC / place).rglob("*.py") if "." not in place else [SRC / place])]
    found = {name for file in files for name in re.findall(r"settings\.([a-z_0-9]+)", file.read_text())}
    return found & {field.name for field in fields(Settings)}


def url(protocol: str, transport: str) -> str:
    return f"{protocol}+{transport}://{'x' if transport in ('unix', 'memory') else 'localhost:1'}"


FAMILY_FOLDERS = {protocol: spec_of(protocol).client.partition(".")[0] for protocol in PROTOCOLS}
REFUSED_THOUGH_READ = {"rsocket": set(), "reactivestreams": {"lease", "resume", "metadata_mime"}, "river": set()}
"""What a family reads only to refuse it, or to report it."""


@pytest.mark.parametrize("folder", sorted(set(FAMILY_FOLDERS.values())))
def test_rows_name_the_settings_that_their_family_reads(folder: str) -> None:
    read = read_in(folder) | (read_in("core/fragments.py") if folder != "river" else set())
    read -= REFUSED_THOUGH_READ[folder]
    read |= {name for name, other in ABOVE.items() if other in read}
    rows = [spec_of(protocol) for protocol, place in FAMILY_FOLDERS.items() if place == folder]
    named = set().union(*(row.supports | row.served for row in rows))
    # A row may also name a setting that is read where it is defined, or above; none is missing.
    assert read & specific() - named == set()
    assert named - read <= {"resume", "resume_timeout"}


def test_transports_name_the_settings_that_they_read() -> None:
    modules = {
        "h2": ("http2.py", "http2_connection.py", "streams.py", "proxied.py"),
        "quic": ("quic.py", "quic_connection.py", "quic_server.py", "streams.py"),
    }
    modules |= {
        "ws": ("websocket.py", "websocket_handshake.py", "websocket_link.py", "proxied.py"),
        "memory": ("memory.py",),
    }
    modules |= {"tcp": ("tcp.py", "proxied.py")}
    own = set(TRANSPORT_SETTINGS)
    for transport, files in modules.items():
        read = read_in(*(f"transports/{file}" for file in files))
        named = {name for name, places in TRANSPORT_SETTINGS.items() if transport in places}
        assert read & own == named
    assert set(MODULES) == set(TRANSPORTS)


def test_all_other_settings_are_read_by_shared_code() -> None:
    shared = read_in("aio", "transports", "urls.py", "ledger.py", "wire/framing.py", "core") | {"max_frame_bytes"}
    shared |= set.intersection(*(read_in(folder) for folder in FAMILY_FOLDERS.values()))
    others = {field.name for field in fields(Settings)} - specific() - set(TRANSPORT_SETTINGS)
    assert others - shared == set()


@pytest.mark.parametrize("name", [field.name for field in fields(Settings)])
def test_setting_is_refused_where_it_has_no_effect(name: str) -> None:
    settings = changed(name)
    for protocol in PROTOCOLS:
        for transport in TRANSPORTS:
            place = parse_url(url(protocol, transport))
            for serving in (False, True):
                useful = name not in specific() | set(TRANSPORT_SETTINGS) or (
                    transport in TRANSPORT_SETTINGS.get(name, ()) or uses(protocol, name, serving)
                )
                if name == "length_counts_itself" and transport in ("ws", "wss"):
                    useful = False
                if name == "trusted_proxies" and transport in ("tcp", "tls", "unix"):
                    # Without proxy_protocol.
                    useful = False
                if useful:
                    check_settings([place], settings, serving=serving)
                else:
                    with pytest.raises(LocalError, match=rf"Settings\.{name}\b.*leave|leave Settings\.{name} out"):
                        check_settings([place], settings, serving=serving)


def test_server_needs_one_url_that_uses_a_setting() -> None:
    settings = Settings(heartbeat_interval=3.0)
    both = [parse_url("rsocket+tcp://:1"), parse_url("river+ws://:1")]
    check_settings(both, settings, serving=True)
    with pytest.raises(LocalError, match=r"heartbeat_interval has no effect on a server of rsocket\+tcp; leave it out"):
        check_settings(both[:1], settings, serving=True)


@pytest.mark.parametrize("transport", [each for each in TRANSPORTS if each not in WITH_HEADERS])
def test_settings_of_opening_requests_need_a_transport_that_has_them(transport: str) -> None:
    headers, origins = Settings(headers=(("X-Name", "x"),)), Settings(origins=("https://example.org",))
    with pytest.raises(LocalError, match=r"Settings\.headers has no effect on a client"):
        weirpool.connect(url("rsocket", transport), settings=headers)
    with pytest.raises(LocalError, match=r"Settings\.origins has no effect on a server"):
        weirpool.serve(Service(), url("rsocket", transport), settings=origins)


def test_messages_have_no_length_to_count() -> None:
    settings = Settings(length_counts_itself=True)
    with pytest.raises(LocalError, match=r"length_counts_itself has no effect on a client of rsocket\+ws"):
        weirpool.connect("rsocket+ws://localhost:1", settings=settings)
    with pytest.raises(LocalError, match="river has no 24-bit length"):
        weirpool.connect("river+ws://localhost:1", settings=settings)


def test_policy_of_leases_is_refused_without_leases() -> None:
    with pytest.raises(LocalError, match="river has no leases"):
        check_settings([parse_url("river+tcp://:1")], Settings(lease=FixedLease()), serving=True)


SHARED = Settings(heartbeat_interval=3.0, keepalive_interval=3.0, origins=("*",), credit=7)


@pytest.mark.parametrize(
    ("place", "serving", "left"),
    [
        ("rsocket+tcp://:1", False, Settings(keepalive_interval=3.0, credit=7)),
        ("river+ws://:1", True, Settings(heartbeat_interval=3.0, origins=("*",), credit=7)),
        ("reactive-streams+memory://x", True, Settings(credit=7)),
    ],
)
def test_fitting_settings_are_accepted(place: str, serving: bool, left: Settings) -> None:
    assert fitting(SHARED, place, serving=serving) == left
    check_settings([parse_url(place)], left, serving=serving)
    assert fitting(SHARED, "rsocket+ws://:1", "river+tcp://:1", serving=serving) == SHARED


@pytest.mark.parametrize("name", [field.name for field in fields(Settings)])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_connect_serve_and_balance_refuse_what_has_no_effect(protocol: str, name: str) -> None:
    place = url(protocol, "memory")
    settings = changed(name)
    calls = {
        "client": (
            lambda: weirpool.connect(place, settings=settings),
            lambda: weirpool.balance([place], settings=settings),
        ),
        "server": (lambda: weirpool.serve(Service(), place, settings=settings),),
    }
    for side, attempts in calls.items():
        useless = fitting(settings, place, serving=side == "server") != settings
        for attempt in attempts:
            with (
                pytest.raises(LocalError, match=rf"Settings\.{name}\b.*leave|leave Settings\.{name} out")
                if useless
                else nullcontext()
            ):
                attempt()


def test_default_values_are_never_refused() -> None:
    for field in fields(Settings):
        settings = Settings(**{field.name: getattr(DEFAULT_SETTINGS, field.name)})
        for protocol in PROTOCOLS:
            weirpool.connect(url(protocol, "memory"), settings=settings)
            assert weirpool.serve(Service(), url(protocol, "memory"), settings=settings).urls == []
