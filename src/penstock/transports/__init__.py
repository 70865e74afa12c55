"""Links over which bytes travel, one file a transport. May import the top files; asyncio starts here."""

from __future__ import annotations

import ssl as tls
from importlib import import_module
from typing import Final, cast

from ..errors import UrlError
from ..settings import Settings
from ..urls import Url
from .base import Accept, Discard, Link, Listener, Receiver, Transport

__all__ = ["MODULES", "Accept", "Discard", "Link", "Listener", "Receiver", "connect", "listen"]

MODULES: Final = {
    "tcp": "tcp",
    "tls": "tcp",
    "unix": "tcp",
    "memory": "memory",
    "h2c": "http2",
    "h2": "http2",
    "quic": "quic",
}
"""Which module knows each transport that URLs may name. It is imported when it is used."""

EXTRAS: Final = {"http2": "http2", "quic": "quic"}
"""Which extra installs what a module needs beside the standard library."""


async def connect(url: Url, receiver: Receiver, settings: Settings, ssl: tls.SSLContext | None = None) -> None:
    """Open a link to `url` and hand it to `receiver`, whose `link_made` has been called then.

    Args:
        url: Where to.
        receiver: Whose link it will be.
        settings: For `connect_timeout` and `output_high_bytes`.
        ssl: For TLS; without it the system's certificate authorities are trusted.

    Raises:
        ConnectError: No connection could be made; the message says what to do.
        UrlError: The URL has options that its transport does not know, or a package for it is not installed.

    """
    await _module(url).connect(url, receiver, settings, ssl)


async def listen(url: Url, accept: Accept, settings: Settings, ssl: tls.SSLContext | None = None) -> Listener:
    """Accept links at `url` until the listener that is returned is closed.

    Args:
        url: Where; port 0 lets the system choose one.
        accept: Called for each new link, before its handshake.
        settings: For `connect_timeout` and `output_high_bytes`.
        ssl: For TLS; without it the URL must name `cert` and `key`.

    Raises:
        ConnectError: The place cannot be bound; the message says what to do.
        UrlError: The URL has options that its transport does not know, or lacks some, or a package for it is not
            installed.

    """
    return await _module(url).listen(url, accept, settings, ssl)


def _module(url: Url) -> Transport:
    name = MODULES[url.transport]
    try:
        return cast(Transport, import_module(f".{name}", __name__))
    except ModuleNotFoundError as error:
        if name not in EXTRAS:
            raise
        what = f"{url.transport}:// needs the package {error.name}"
        raise UrlError(f"{what}; run: pip install 'penstock[{EXTRAS[name]}]'") from error
