"""Decides which web pages may open links, on transports that start with HTTP."""

from __future__ import annotations

from collections.abc import Collection
from ipaddress import ip_address
from urllib.parse import urlsplit

from ..texts import shown_line

__all__ = ["are_allowed", "refused_origin"]


def are_allowed(origins: Collection[str], hosts: Collection[str], listed: Collection[str]) -> bool:
    """Return True if a request may open a link.

    Browsers always send the true origin with a WebSocket handshake, and with a POST from another site's page. Other
    clients need not. So a request without an origin is allowed, and each of several origins must be allowed.

    Args:
        origins: The values of its Origin headers.
        hosts: The values of its Host header, or of HTTP/2's `:authority`.
        listed: `Settings.origins`.

    """
    return all(_is_allowed(origin.lower(), hosts, listed) for origin in origins)


def refused_origin(origins: Collection[str]) -> str:
    """Return what the log says of a request that is not allowed because of its origins."""
    shown = shown_line(", ".join(origins))
    return f"pages of {shown} may not connect; allow them with Settings.origins or --origin"


def _is_allowed(origin: str, hosts: Collection[str], listed: Collection[str]) -> bool:
    """Return True if `origin` is listed, or is the server's own IP address or localhost.

    Java clients send the server itself as their origin, as its own pages would. A host name is not sufficient, because
    its owner can point it to this server (DNS rebinding).
    """
    if "*" in listed or any(origin == known.lower() for known in listed):
        return True
    try:
        parts = urlsplit(origin)
        host = parts.hostname or ""
        same = [host.lower() for host in hosts] == [parts.netloc]
        return same and (host == "localhost" or bool(ip_address(host)))
    except ValueError:
        return False
