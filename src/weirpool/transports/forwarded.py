"""Finds a request's client in the headers of trusted proxies, on transports that start with HTTP."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from ..errors import ProtocolError
from ..networks import Networks, parse_address

__all__ = ["client_address"]

# RFC 7239, section 4. Each part is matched once, without backtracking: a client may have written most of the header.
TOKEN: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]++"
QUOTED: Final = r'"((?:[\t !#-\[\]-~]|\\[\t -~])*+)"'
PAIR: Final = re.compile(rf"[ \t]*+(?:({TOKEN})=(?:({TOKEN})|{QUOTED}))?+[ \t]*+([;,]|\Z)")
ESCAPED: Final = re.compile(r"\\(.)")
NODE: Final = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([0-9.]+))(?::(?:[0-9]{1,5}|_[\w.-]+))?", re.ASCII)
HIDDEN: Final = re.compile(r"(?:unknown|_[\w.-]+)(?::(?:[0-9]{1,5}|_[\w.-]+))?", re.ASCII | re.IGNORECASE)


def client_address(peer: str, forwarded: Sequence[str], forwarded_for: Sequence[str], trusted: Networks) -> str:
    """Return the address of the client that sent a request.

    Each proxy adds the address of its own peer at the end of a header. The client is therefore the last address that is
    not trusted. Anything before it was written by that client.

    Args:
        peer: The address that the request came from. If it is not trusted, it is the client.
        forwarded: The values of the Forwarded headers.
        forwarded_for: The values of the X-Forwarded-For headers.
        trusted: The proxies.

    Raises:
        ProtocolError: A header is malformed, or the two headers name different clients. A proxy sets only one of them,
            so the other one may come from the client.

    """
    if peer not in trusted:
        return peer
    found = set()
    if forwarded:
        found.add(_last_untrusted(peer, _forwarded_nodes(",".join(forwarded)), trusted))
    if forwarded_for:
        nodes = (node.strip(" \t") for node in ",".join(forwarded_for).split(","))
        found.add(_last_untrusted(peer, [node for node in nodes if node], trusted))
    if len(found) > 1:
        raise ProtocolError(
            "Forwarded and X-Forwarded-For name different clients; let the proxy set one and remove the other"
        )
    return found.pop() if found else peer


def _last_untrusted(peer: str, nodes: Iterable[str], trusted: Networks) -> str:
    """Return the last address that is not trusted, or the first one if all are. Ends at a proxy that hides its peer."""
    client = peer
    for node in reversed(list(nodes)):
        address = _address(node)
        if not address:
            break
        client = address
        if client not in trusted:
            break
    return client


def _address(node: str) -> str:
    """Return the address of a node, without its port; empty if the proxy hides it."""
    if not node or HIDDEN.fullmatch(node):
        return ""
    found = NODE.fullmatch(node)
    address = parse_address(node if found is None else found[1] or found[2])
    if address is None or "%" in node:
        raise ProtocolError("a header of a trusted proxy has an invalid address")
    return str(address)


def _forwarded_nodes(text: str) -> list[str]:
    """Return the `for` of each element of Forwarded headers; empty for elements without one."""
    nodes: list[str] = []
    element: dict[str, str] = {}
    place = 0
    while True:
        found = PAIR.match(text, place)
        if found is None:
            raise ProtocolError("a Forwarded header is malformed")
        name, token, quoted, end = found.groups()
        if name is not None:
            if name.lower() in element:
                raise ProtocolError(f"a Forwarded header has two values of {name.lower()} in one element")
            element[name.lower()] = ESCAPED.sub(r"\1", quoted) if token is None else token
        if end != ";":
            if element:
                nodes.append(element.get("for", ""))
            element = {}
        if not end:
            return nodes
        place = found.end()
