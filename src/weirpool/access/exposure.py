"""Whether others than the user's own machine can reach a server, and whether its clients must then prove who they are.

One rule holds for every command that listens: addresses that other machines can reach need credentials of each client,
or an option which says that anybody may connect. Programs that call :func:`weirpool.serve` decide for themselves.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterable
from ipaddress import ip_address
from typing import Final

from ..errors import LocalError
from ..urls import Url, parse_url
from .listening import ENCRYPTED

__all__ = ["ALLOWED", "check_exposure", "check_page", "is_local"]

logger = logging.getLogger("weirpool.access")

ALLOWED: Final = "--allow-anonymous"
"""The option that lets clients of other machines in without credentials."""
CERTIFICATES: Final = "client certificates with +tls://…?cert=FILE&key=FILE&ca=FILE"


def check_exposure(urls: Iterable[str], *, authenticated: bool, allowed: bool, remedy: str = "") -> None:
    """Check that clients of other machines must prove who they are.

    Args:
        urls: The addresses to listen on; encrypted ones name their files.
        authenticated: Every client must show credentials.
        allowed: Anybody may connect.
        remedy: What else can be required of clients, for the error: "--auth or".

    Raises:
        LocalError: Other machines can reach an address, and anybody could connect.

    """
    for text in urls:
        url = parse_url(text)
        if is_local(url):
            continue
        if not (authenticated or allowed or _requires_certificates(url)):
            raise LocalError(
                f"{text}: other machines can reach this address, and clients need no credentials; listen on 127.0.0.1, "
                f"require {f'{remedy} ' if remedy else ''}{CERTIFICATES}, or let anybody connect with {ALLOWED}"
            )
        if authenticated and url.transport not in ENCRYPTED:
            logger.warning("%s is not encrypted: credentials and data can be read on the network; use +tls", text)


def check_page(option: str, host: str, *, allowed: bool) -> None:
    """Check that a page over HTTP, which asks for no credentials, is for this machine only.

    Args:
        option: The option that asks for the page.
        host: The name or address that it listens on.
        allowed: Anybody may connect.

    Raises:
        LocalError: Other machines can reach it.

    """
    if not allowed and not _is_loopback(host):
        raise LocalError(
            f"{option} {host}: other machines can reach this address, and HTTP asks for no credentials; use 127.0.0.1 "
            f"behind a proxy that does, or let anybody connect with {ALLOWED}"
        )


def is_local(url: Url) -> bool:
    """Return True if only processes of this machine can connect to a server at a URL."""
    if url.port is None:
        return True
    if "fd" in url.options:
        # An inherited socket listens where it was bound, whatever the URL says.
        return all(map(_is_bound_to_loopback, url.options["fd"].split(",")))
    return _is_loopback(url.host)


def _requires_certificates(url: Url) -> bool:
    # QUIC's library does not ask clients for certificates.
    return "ca" in url.options and url.transport in ENCRYPTED and url.transport != "quic"


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _is_bound_to_loopback(descriptor: str) -> bool:
    """Return True if an inherited socket is bound to a loopback address. Errors are told when it is used."""
    try:
        given = socket.socket(fileno=int(descriptor))
    except (OSError, ValueError):
        return False
    try:
        return _is_loopback(str(given.getsockname()[0]))
    finally:
        given.detach()
