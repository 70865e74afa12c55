from __future__ import annotations

import pytest

from weirpool.transports.origins import are_allowed

APP = "https://app.example"
EVIL = "https://evil.example"


@pytest.mark.parametrize(
    ("origins", "listed", "allowed"),
    [
        # THREATS 76, 83
        ([], [], True),
        ([EVIL], [], False),
        ([APP], [APP], True),
        ([EVIL], ["*"], True),
        ([EVIL, APP], [APP], False),
        ([APP, EVIL], [APP], False),
        ([APP, APP], [APP], True),
        (["null"], [APP], False),
        (["null"], ["null"], True),
        ([""], [APP], False),
        (["*"], [APP], False),
        # Case means nothing in a scheme or a host; all else does.
        (["HTTPS://App.Example"], [APP], True),
        ([APP], ["https://App.example"], True),
        ([f"{APP}:8443"], [APP], False),
        ([f"{APP}.evil.example"], [APP], False),
        ([f"{APP}, {EVIL}"], [APP], False),
        ([f"{APP} {EVIL}"], [APP], False),
        (["http://app.example"], [APP], False),
    ],
)
def test_pages_may_connect_when_their_origin_is_listed(origins: list[str], listed: list[str], allowed: bool) -> None:
    assert are_allowed(origins, ["server.example:7878"], listed) == allowed


@pytest.mark.parametrize(
    ("origin", "hosts", "allowed"),
    [
        # THREATS 76, 83
        ("http://127.0.0.1:7878", ["127.0.0.1:7878"], True),
        ("http://[::1]:7878", ["[::1]:7878"], True),
        ("http://localhost:7878", ["LOCALHOST:7878"], True),
        ("http://127.0.0.1", ["127.0.0.1:7878"], False),
        ("http://127.0.0.1:7878", [], False),
        ("http://127.0.0.1:7878", ["127.0.0.1:7878", "evil.example"], False),
        ("http://evil.example:7878", ["evil.example:7878"], False),
        ("http://127.0.0.1:7878@evil.example", ["127.0.0.1:7878@evil.example"], False),
        ("null", [""], False),
        ("http://[", ["["], False),
    ],
)
def test_a_server_may_be_named_by_its_own_address(origin: str, hosts: list[str], allowed: bool) -> None:
    assert are_allowed([origin], hosts, []) == allowed
