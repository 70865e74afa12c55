from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weirpool import ProtocolError
from weirpool.networks import Networks
from weirpool.transports.forwarded import client_address

TRUSTED = Networks(("10.0.0.0/8", "2001:db8:ffff::/48", "unix"))
PROXY = "10.0.0.1"


@pytest.mark.parametrize(
    ("values", "client"),
    [
        # THREATS 95
        ([], PROXY),
        ([""], PROXY),
        (["192.0.2.1"], "192.0.2.1"),
        (["192.0.2.1:5678"], "192.0.2.1"),
        (["2001:db8::1"], "2001:db8::1"),
        (["[2001:DB8::1]:5678"], "2001:db8::1"),
        (["::ffff:192.0.2.1"], "192.0.2.1"),
        # The rightmost address that is not trusted; what is left of it was the client's to write.
        (["6.6.6.6, 192.0.2.1"], "192.0.2.1"),
        (["6.6.6.6", "192.0.2.1"], "192.0.2.1"),
        (["192.0.2.1", "10.9.9.9,  10.0.0.2"], "192.0.2.1"),
        (['<script>, "" ,,192.0.2.1,'], "192.0.2.1"),
        (["10.9.9.9, 10.0.0.2"], "10.9.9.9"),
        (["192.0.2.1, unknown"], PROXY),
        (["192.0.2.1, unknown, 10.0.0.2"], "10.0.0.2"),
        (["192.0.2.1, 2001:db8:ffff::7"], "192.0.2.1"),
    ],
)
def test_x_forwarded_for_names_the_client(values: list[str], client: str) -> None:
    assert client_address(PROXY, [], values, TRUSTED) == client
    assert client_address("", [], values, TRUSTED) == ("" if client == PROXY else client)


@pytest.mark.parametrize(
    ("values", "client"),
    [
        # THREATS 95
        (["for=192.0.2.43"], "192.0.2.43"),
        (["For=192.0.2.43;Proto=http;by=203.0.113.43"], "192.0.2.43"),
        (['for="192.0.2.43:47011"; host="a,b;c=\\"d"'], "192.0.2.43"),
        (['For="[2001:db8:cafe::17]:4711"'], "2001:db8:cafe::17"),
        (['for="[2001:db8:cafe::17]:_port"'], "2001:db8:cafe::17"),
        (["for=6.6.6.6, for=192.0.2.43"], "192.0.2.43"),
        (["for=192.0.2.43", "for=10.0.0.2;by=10.0.0.1"], "192.0.2.43"),
        (["for=192.0.2.43,, ,for=10.0.0.2,"], "192.0.2.43"),
        (["for=192.0.2.43, for=_hidden"], PROXY),
        (["for=192.0.2.43, for=unknown, for=10.0.0.2"], "10.0.0.2"),
        (['for=192.0.2.43, for="_a:_b"'], PROXY),
        (["for=192.0.2.43, by=10.0.0.1"], PROXY),
        (["for=x, for=192.0.2.43"], "192.0.2.43"),
        (['for="\\1\\9\\2.0.2.43"'], "192.0.2.43"),
        ([""], PROXY),
    ],
)
def test_forwarded_names_the_client(values: list[str], client: str) -> None:
    assert client_address(PROXY, values, [], TRUSTED) == client


@pytest.mark.parametrize(
    "values",
    [
        ["for=192.0.2.43:80"],
        ["for=[2001:db8::1]"],
        ["for=192.0.2.43;for=192.0.2.44"],
        ["for =192.0.2.43"],
        ["for=192.0.2.43 by=10.0.0.1"],
        ["for"],
        ["for="],
        ["=192.0.2.43"],
        ['for="192.0.2.43'],
        ['for="192.0.2.43"x'],
        ['for=""x'],
        ["for=192.0.2.43\n"],
        ["for=192.0.2.443"],
        ["for=localhost"],
        ['for="[192.0.2.1]x"'],
        ['for="fe80::1%eth0"'],
        # A quote of the client must not hide what the proxy adds.
        ['x="', "for=192.0.2.43"],
        ['x="', 'for="[2001:db8::1]"'],
        ['for="\xff"'],
    ],
)
def test_malformed_forwarded_raises(values: list[str]) -> None:
    # THREATS 95
    with pytest.raises(ProtocolError):
        client_address(PROXY, values, [], TRUSTED)


@pytest.mark.parametrize("value", ["localhost", "192.0.2", "192.0.2.1:", "192.0.2.1:123456", "[::1", "fe80::1%eth0"])
def test_malformed_x_forwarded_for_raises(value: str) -> None:
    with pytest.raises(ProtocolError, match="invalid address"):
        client_address(PROXY, [], [value], TRUSTED)


def test_headers_that_disagree_raise() -> None:
    # THREATS 95: a proxy that sets one of them passes the client's own other one on.
    with pytest.raises(ProtocolError, match="name different clients; let the proxy set one"):
        client_address(PROXY, ["for=6.6.6.6"], ["192.0.2.1"], TRUSTED)
    assert client_address(PROXY, ["for=192.0.2.1"], ["6.6.6.6, 192.0.2.1"], TRUSTED) == "192.0.2.1"


@given(st.lists(st.text()), st.lists(st.text()))
def test_headers_of_other_peers_are_ignored(forwarded: list[str], forwarded_for: list[str]) -> None:
    # THREATS 95
    assert client_address("192.0.2.9", forwarded, forwarded_for, TRUSTED) == "192.0.2.9"


HEADER = st.text(st.sampled_from('for=";,\\ 16.:[]\t_bx'), max_size=40)


@given(HEADER, st.sampled_from(["for=192.0.2.1", 'for="[2001:db8::1]:99"', "proto=http;for=192.0.2.1"]), st.booleans())
def test_client_cannot_hide_what_the_proxy_adds(forged: str, added: str, joined: bool) -> None:
    # THREATS 95
    values = [f"{forged}, {added}"] if joined else [forged, added]
    try:
        found = client_address(PROXY, values, [], TRUSTED)
    except ProtocolError:
        return
    assert found == ("2001:db8::1" if "2001" in added else "192.0.2.1")


@pytest.mark.parametrize("text", [" " * 60_000 + "x=", 'a="' + "\\ " * 30_000, ";" * 60_000, "a=b," * 15_000])
def test_long_headers_are_read_in_one_pass(text: str) -> None:
    # Quadratic time would exceed the time limit of a test.
    for values in ([text], []):
        try:
            client_address(PROXY, values, [text], TRUSTED)
        except ProtocolError:
            continue
    assert client_address(PROXY, [], [text + ",192.0.2.1"], TRUSTED) == "192.0.2.1"
