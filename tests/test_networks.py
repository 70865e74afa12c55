from __future__ import annotations

import pytest

from weirpool.networks import Networks, networks, parse_address

TRUSTED = ("10.0.0.0/8", "192.0.2.7", "2001:db8::/32", "fe80::/10")


@pytest.mark.parametrize(
    ("address", "inside"),
    [
        # THREATS 95
        ("10.255.0.1", True),
        ("11.0.0.1", False),
        ("192.0.2.7", True),
        ("192.0.2.8", False),
        ("2001:db8::1", True),
        ("2001:db9::1", False),
        ("::ffff:10.1.2.3", True),
        ("::ffff:11.1.2.3", False),
        ("fe80::1%eth0", True),
        ("", False),
        ("10.0.0.1 ", False),
        ("10.0.0.01", False),
        ("proxy", False),
        ("unix", False),
    ],
)
def test_networks_contain_their_addresses(address: str, inside: bool) -> None:
    assert (address in Networks(TRUSTED)) == inside


def test_unix_contains_only_peers_without_an_address() -> None:
    # THREATS 95
    found = Networks(("unix",))
    assert "" in found and "uid 1000" in found and "127.0.0.1" not in found and "unix" not in found


def test_networks_without_entries_are_false() -> None:
    assert not Networks(()) and Networks(("unix",)) and Networks(("::1",))
    assert networks(TRUSTED) is networks(TRUSTED)


@pytest.mark.parametrize("entry", ["", "10.0.0.1/8", "10.0.0.0/33", "proxy.example", "*", "10.0.0.0/8, 192.0.2.7"])
def test_networks_raise_for_other_entries(entry: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Networks((entry,))


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:DB8:0::1", "2001:db8::1"),
        ("1", "None"),
        ("٣.1.1.1", "None"),
    ],
)
def test_addresses_are_parsed_strictly(text: str, address: str) -> None:
    assert str(parse_address(text)) == address
