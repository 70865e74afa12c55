"""Which requests a page answers, and what a browser may do with it."""

from __future__ import annotations

import re
from collections.abc import Collection
from importlib.resources import files
from ipaddress import ip_address
from socket import gethostname
from typing import Final

__all__ = ["HEADERS", "is_meant", "texts_script"]

HEADERS: Final = {
    # Texts of peers are shown: nothing but the page's own files may run or load.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_HOST: Final = re.compile(r"(?a)(\[[0-9A-Fa-f:.]+\]|[\w.-]+)(?::(\d{1,5}))?")
"""RFC 9110, 7.2: a name or an address, and a port."""


def is_meant(header: str, listening: str, names: Collection[str] = (), port: int | None = None) -> bool:
    """Return True if a request with this header `Host` is meant for this server.

    A site can make its name point to any address, and the browsers of its visitors then send requests for that name
    here, whose answers the site may read (DNS rebinding). So only names that no site has are answered: addresses, those
    of this machine, and those that the user has given.

    Args:
        header: The value of the header; empty if there is none.
        listening: The host that the server listens on. On a loopback address, only names of the machine itself count.
        names: Further names of the server.
        port: The port that the header must name; None: any.

    """
    found = _HOST.fullmatch(header)
    if found is None or (port is not None and found[2] != str(port)):
        return False
    name = found[1].strip("[]").rstrip(".").lower()
    if _is_loopback(name):
        return True
    if _is_loopback(listening):
        return name in _lower(names)
    return _is_address(name) or name in _lower([*names, listening, gethostname()])


def texts_script() -> bytes:
    """Return the module of JavaScript that shows texts of peers."""
    return files(__package__).joinpath("texts.js").read_bytes()


def _lower(names: Collection[str]) -> set[str]:
    return {name.strip("[]").rstrip(".").lower() for name in names}


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _is_loopback(name: str) -> bool:
    return name == "localhost" or (_is_address(name) and ip_address(name).is_loopback)
