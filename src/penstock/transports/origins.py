"""Which web pages may open links, on transports that begin with HTTP."""

from __future__ import annotations

from collections.abc import Collection
from ipaddress import ip_address
from urllib.parse import urlsplit

__all__ = ["are_allowed"]


def are_allowed(origins: Collection[str], hosts: Collection[str], listed: Collection[str]) -> bool:
    """Return whether a request may open a link.

    Only browsers name an origin truthfully, and always for a WebSocket or a POST of another site's page. So a request
    without one is allowed, and one with several must be allowed for each of them.

    Args:
        origins: The values of its Origin headers.
        hosts: The values of its Host header, or of HTTP/2's `:authority`.
        listed: `Settings.origins`.

    """
    return all(_is_allowed(origin.lower(), hosts, listed) for origin in origins)


def _is_allowed(origin: str, hosts: Collection[str], listed: Collection[str]) -> bool:
    """Return whether pages of `origin` may connect: those that are listed, and those of the server's own address.

    Clients of Java name the server itself, as one of its own pages would. A name can be made to lead here by whoever
    owns it (DNS rebinding); an address, or this machine's own name, cannot.
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
