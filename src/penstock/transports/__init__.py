"""Links over which bytes travel, one file a transport; asyncio starts here. May import the top files, wire.framing."""

from __future__ import annotations

import asyncio
import ssl as tls
from importlib import import_module
from typing import Final, cast

from ..errors import LocalError
from ..settings import Settings
from ..urls import Url, check_headers
from .base import Accept, Discard, Link, Listener, Receiver, Refused, Transport, connect_errors, listen_errors

__all__ = [
    "MODULES",
    "Accept",
    "Discard",
    "Link",
    "Listener",
    "Receiver",
    "Refused",
    "carries_messages",
    "connect",
    "listen",
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
"""Which module knows each transport that URLs may name. It is imported when it is used."""
EXTRAS: Final = {"websockets": "websocket", "h2": "http2", "aioquic": "quic"}
"""The extra that brings each package that a module may need."""


def carries_messages(url: Url) -> bool:
    """Whether the transport of `url` carries messages, and not a stream of bytes."""
    return url.transport in ("ws", "wss")


async def connect(url: Url, receiver: Receiver, settings: Settings, ssl: tls.SSLContext | None = None) -> None:
    """Open a link to `url` and hand it to `receiver`, whose `link_made` has been called then.

    Args:
        url: Where to.
        receiver: Whose link it will be.
        settings: For `connect_timeout` and `output_high_bytes`.
        ssl: For TLS; without it the system's certificate authorities are trusted.

    Raises:
        ConnectError: No connection could be made; the message says what to do.
        LocalError: The transport needs a package that is not installed, or cannot carry `Settings.headers`.
        UrlError: The URL has options that its transport does not know.

    """
    if settings.headers:
        check_headers(url.transport, "Settings.headers")
    transport = _module(url)
    with connect_errors(url, settings):
        async with asyncio.timeout(settings.connect_timeout):
            await transport.connect(url, receiver, settings, ssl)


async def listen(url: Url, accept: Accept, settings: Settings, ssl: tls.SSLContext | None = None) -> Listener:
    """Accept links at `url` until the listener that is returned is closed.

    Args:
        url: Where; port 0 lets the system choose one.
        accept: Called for each new link, before its handshake.
        settings: For `connect_timeout` and `output_high_bytes`.
        ssl: For TLS; without it the URL must name `cert` and `key`.

    Raises:
        ConnectError: The place cannot be bound; the message says what to do.
        LocalError: The transport needs a package that is not installed.
        UrlError: The URL has options that its transport does not know, or lacks some.

    """
    with listen_errors(url):
        return await _module(url).listen(url, accept, settings, ssl)


def _module(url: Url) -> Transport:
    try:
        return cast(Transport, import_module(f".{MODULES[url.transport]}", __name__))
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        if package not in EXTRAS:
            raise
        todo = f"run: pip install 'penstock[{EXTRAS[package]}]'"
        raise LocalError(f"'{url}' needs the package {package}; {todo}") from error
