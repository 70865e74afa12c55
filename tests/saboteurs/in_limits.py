"""Mistakes about whom a link counts for, and who pays for it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from ipaddress import ip_address

from weirpool import networks
from weirpool.aio.limits import Limits, RefusalCounter
from weirpool.networks import Networks
from weirpool.tap import Refusal, RefusalCause
from weirpool.transports import forwarded, http2, proxied, websocket
from weirpool.transports.proxy_header import ProxyHeader

from .patching import edited, replaced
from .saboteur import Saboteur

__all__ = ["SABOTEURS"]

Sabotage = AbstractContextManager[object]


def leftmost_is_believed() -> Sabotage:
    return edited(forwarded, "_last_untrusted", ("reversed(list(nodes))", "list(nodes)"))


def this_machine_is_believed() -> Sabotage:
    def contains(self: Networks, address: str) -> bool:
        return address.startswith("127.") or real(self, address)

    real = Networks.__contains__
    return replaced((Networks, "__contains__", contains))


def one_header_is_preferred() -> Sabotage:
    def client_address(peer: str, forwarded: Sequence[str], forwarded_for: Sequence[str], trusted: Networks) -> str:
        return real(peer, forwarded, () if forwarded else forwarded_for, trusted)

    real = websocket.client_address
    return replaced((websocket, "client_address", client_address), (http2, "client_address", client_address))


def mapped_addresses_differ() -> Sabotage:
    return replaced((networks, "parse_address", ip_address), (forwarded, "parse_address", ip_address))


def header_swallows_bytes() -> Sabotage:
    def feed(self: ProxyHeader, data: bytes) -> None:
        real(self, data)
        if not self.wants and not swallowed:
            swallowed.append(self)
            self.wants, self._skipping = 1, True

    real, swallowed = ProxyHeader.feed, list[ProxyHeader]()
    return replaced((ProxyHeader, "feed", feed))


def everybody_is_a_proxy() -> Sabotage:
    return edited(proxied.ProxiedConnections, "take", (" or address not in self._proxies", ""))


def connection_has_one_client() -> Sabotage:
    return replaced((http2.ServerConnection, "_client_address", lambda self, headers: self.slot.address))


def junk_locks_out() -> Sabotage:
    def make_room(self: Limits, address: str, now: float) -> Refusal | None:
        junk = self._junk.too_many(address, self._junk._swept_at)
        return real(self, address, now) or (Refusal(RefusalCause.LOCKED_OUT, "junk") if junk else None)

    real = Limits.make_room
    return replaced((Limits, "make_room", make_room))


def guesses_are_free() -> Sabotage:
    return replaced((Limits, "locked_out", lambda self, address, now: ""))


def lockout_never_drains() -> Sabotage:
    return edited(RefusalCounter, "_count", ("(now - taken_at)", "0 * (now - taken_at)"))


def principal_counts_for_its_address() -> Sabotage:
    return edited(Limits, "admitted", ("    self.linked(session, client)", "    self._linked[client] += 1"))


def principal_has_no_limit() -> Sabotage:
    return edited(Limits, "_full_for", ("self._linked[client] >=", "self._linked[client] > 10 *"))


SABOTEURS: Sequence[Saboteur] = (
    Saboteur(
        "leftmost address believed",
        "the first address in a header of a proxy is believed, which the client has written",
        "SF7",
        "proxies",
        leftmost_is_believed,
    ),
    Saboteur(
        "headers of strangers believed",
        "headers are believed from this machine, although it is not listed",
        "THREATS 95",
        "proxies",
        this_machine_is_believed,
    ),
    Saboteur(
        "one header preferred",
        "Forwarded is believed where X-Forwarded-For names another client",
        "",
        "proxies",
        one_header_is_preferred,
    ),
    Saboteur(
        "mapped proxy not recognized",
        "a listed proxy is not recognized by its IPv4 address in IPv6 notation",
        "",
        "proxies",
        mapped_addresses_differ,
    ),
    Saboteur(
        "PROXY header swallows a byte",
        "the first byte of a client is read with the PROXY header",
        "",
        "proxies",
        header_swallows_bytes,
    ),
    Saboteur(
        "PROXY header of strangers believed",
        "a PROXY header is read from addresses that are not listed",
        "THREATS 95",
        "proxies",
        everybody_is_a_proxy,
    ),
    Saboteur(
        "one client per connection",
        "all requests on an HTTP/2 connection of a proxy count for the proxy",
        "SF7",
        "proxies",
        connection_has_one_client,
    ),
    Saboteur(
        "junk locks out an address",
        "links of an address are refused because others of them began with junk",
        "SF7",
        "neighbors",
        junk_locks_out,
    ),
    Saboteur(
        "guesses cost nothing",
        "unknown tokens are looked up without limit",
        "THREATS 28",
        "neighbors",
        guesses_are_free,
    ),
    Saboteur(
        "lockout never ends",
        "refused links are never forgotten",
        "SF7",
        "neighbors",
        lockout_never_drains,
    ),
    Saboteur(
        "principal counts for its address",
        "a connection that has a principal still counts for its address",
        "SF7",
        "neighbors",
        principal_counts_for_its_address,
    ),
    Saboteur(
        "principal without a limit",
        "the connections of a principal are not limited",
        "",
        "neighbors",
        principal_has_no_limit,
    ),
)
