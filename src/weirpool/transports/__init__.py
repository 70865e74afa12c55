"""Links over asyncio, with one module for each transport. May import the top files and wire.framing."""

from __future__ import annotations

import asyncio
import socket
import ssl as tls
from collections.abc import Iterable
from importlib import import_module
from typing import Final, cast

from .._build import pip_command
from ..errors import LocalError
from ..settings import Settings
from ..urls import Url, check_headers
from .base import (
    MAX_REFUSED_LINKS,
    SCOPE,
    Accept,
    Discard,
    HangUp,
    Link,
    Listen,
    Listener,
    Receiver,
    Refused,
    Transport,
    connect_errors,
    listen_errors,
)

__all__ = [
    "MAX_REFUSED_LINKS",
    "MODULES",
    "SCOPE",
    "Accept",
    "Discard",
    "HangUp",
    "Link",
    "Listen",
    "Listener",
    "Receiver",
    "Refused",
    "carries_messages",
    "connect",
    "hand_over",
    "listen",
    "names_protocol",
]

MODULES: Final = {
    "tcp": "tcp",
    "tls": "tcp",
    "unix": "tcp",
    "ws": "websocket",
    "wss": "websocket",
    "memory": "memory",
    "h2c": "http2",
    "h2": "http2",
    "quic": "quic",
}
"""The module of each transport, imported on first use."""
EXTRAS: Final = {"websockets": "websocket", "h2": "http2", "aioquic": "quic"}
"""The extra of this package that installs each optional package."""


def carries_messages(url: Url) -> bool:
    """Return True if the transport of `url` carries messages instead of a stream of bytes."""
    return url.transport in ("ws", "wss")


def names_protocol(url: Url) -> bool:
    """Return True if a client of `url`'s transport has named the protocol before its first frame.

    Over WebSocket and HTTP/2 the path and the headers do, over QUIC the ALPN name, and in memory the name.
    """
    return url.transport not in ("tcp", "tls", "unix")


async def connect(url: Url, receiver: Receiver, settings: Settings, ssl: tls.SSLContext | None = None) -> None:
    """Open a link to `url` for `receiver`. On return, its `link_made` has been called.

    Args:
        url: The server.
        receiver: The receiver of the link.
        settings: The source of `connect_timeout`, `output_high_bytes` and the transport's own settings.
        ssl: The TLS context; None to trust the system's certificate authorities.

    Raises:
        ConnectError: No connection could be made; the message says what to do.
        LocalError: The transport needs a package that is not installed, or does not support `Settings.headers`.
        UrlError: The URL has unknown options.

    """
    if settings.headers:
        check_headers(url.transport, "Settings.headers")
    transport = _module(url)
    with connect_errors(url, settings):
        async with asyncio.timeout(settings.connect_timeout):
            await transport.connect(url, receiver, settings, ssl)


async def listen(url: Url, accept: Accept, settings: Settings, ssl: tls.SSLContext | None = None) -> Listener:
    """Accept links at `url` until the returned listener is closed.

    Args:
        url: The address; port 0 lets the system choose one.
        accept: Called for each new link, before its handshake.
        settings: The source of `connect_timeout`, `output_high_bytes` and the transport's own settings.
        ssl: The TLS context; without it, a URL of an encrypted transport must have `cert` and `key`.

    Raises:
        ConnectError: The address cannot be bound; the message says what to do.
        LocalError: The transport needs a package that is not installed, or has no PROXY protocol.
        UrlError: The URL has unknown options, or lacks required ones.

    """
    if settings.proxy_protocol and MODULES[url.transport] in ("memory", "quic"):
        raise LocalError(f"Settings.proxy_protocol cannot be used with '{url}'; {url.transport} has no PROXY header")
    with listen_errors(url):
        return await _module(url).listen(url, accept, settings, ssl)


def hand_over(listeners: Iterable[Listener]) -> tuple[list[str], list[int]]:
    """Leave the sockets of `listeners` to another process, and return its URLs and the descriptors that they name."""
    urls: list[str] = []
    descriptors: list[int] = []
    for listener in listeners:
        found = listener.hand_over()
        descriptors += found
        urls.append(str(listener.url.with_descriptors(found) if found else listener.url))
    return urls, descriptors


def _module(url: Url) -> Transport:
    if url.transport == "unix" and not hasattr(socket, "AF_UNIX"):
        raise LocalError(f"'{url}': Python has no Unix sockets on this system; use TCP on 127.0.0.1")
    try:
        return cast(Transport, import_module(f".{MODULES[url.transport]}", __name__))
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        if package not in EXTRAS:
            raise
        raise LocalError(f"'{url}' needs the package {package}; run: {pip_command(EXTRAS[package])}") from error
