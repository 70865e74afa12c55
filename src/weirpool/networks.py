"""Sets of network addresses, as `Settings.trusted_proxies` lists them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final

__all__ = ["UNIX", "USER", "Networks", "networks", "parse_address"]

UNIX: Final = "unix"
"""The name of all peers of Unix sockets, which have no network address."""
USER: Final = "uid "
"""What the address of a peer of a Unix socket begins with. The number of its user follows."""


class Networks:
    """A set of addresses, from networks in CIDR notation such as ``10.0.0.0/8``, and ``unix``.

    Raises ValueError if an entry is neither.
    """

    __slots__ = ("_networks", "_unix")

    def __init__(self, entries: Iterable[str]) -> None:
        entries = tuple(entries)
        self._unix = UNIX in entries
        self._networks = tuple(ip_network(entry) for entry in entries if entry != UNIX)

    def __bool__(self) -> bool:
        return self._unix or bool(self._networks)

    def __contains__(self, address: str) -> bool:
        """Return True if `address` is in a network, or if it is that of a Unix socket's peer, and `unix` is listed.

        It is empty on systems that do not tell the user of such a peer.
        """
        if not address or address.startswith(USER):
            return self._unix
        parsed = parse_address(address)
        return parsed is not None and any(parsed in network for network in self._networks)


def parse_address(text: str) -> IPv4Address | IPv6Address | None:
    """Return the address that `text` is; None if it is none. IPv4 addresses that IPv6 maps are IPv4 addresses.

    A socket that listens on both protocols reports them as ``::ffff:192.0.2.1``.
    """
    try:
        address = ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return address if mapped is None else mapped


@lru_cache(maxsize=64)
def networks(entries: tuple[str, ...]) -> Networks:
    """Return the networks of a setting."""
    return Networks(entries)
