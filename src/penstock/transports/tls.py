"""TLS contexts for transports over sockets."""

from __future__ import annotations

import ssl as tls
from typing import Any, Final

from ..errors import UrlError
from ..settings import Settings
from ..urls import Url
from .base import certificate_errors, check_options

__all__ = ["client_context", "server_context", "tls_arguments"]

ENCRYPTED: Final = {"tcp": "tls", "unix": "tls", "ws": "wss", "h2c": "h2"}
"""The encrypted counterpart of each unencrypted transport over sockets."""


def tls_arguments(context: tls.SSLContext | None, settings: Settings) -> dict[str, Any]:
    """Return asyncio's arguments for TLS; none without a context."""
    if context is None:
        return {}
    return {
        "ssl": context,
        "ssl_handshake_timeout": settings.connect_timeout,
        "ssl_shutdown_timeout": settings.close_grace,
    }


def client_context(url: Url, ssl: tls.SSLContext | None) -> tls.SSLContext | None:
    """Return the TLS context to connect to `url`: `ssl`, or one with the URL's CA; None for unencrypted transports.

    Raises UrlError if options are unknown, a file cannot be read, or `ssl` is given for an unencrypted transport.
    """
    if url.transport in ENCRYPTED:
        check_options(url, frozenset())
        if ssl is not None:
            encrypted = f"{url.protocol}+{ENCRYPTED[url.transport]}://"
            raise UrlError(f"ssl cannot be used with '{url}', which is not encrypted; write {encrypted}")
        return None
    check_options(url, frozenset({"ca"}))
    if ssl is not None:
        return ssl
    with certificate_errors(url):
        return tls.create_default_context(cafile=url.options.get("ca"))


def server_context(url: Url, ssl: tls.SSLContext | None) -> tls.SSLContext | None:
    """Return the TLS context to listen at `url`: `ssl`, or one with the URL's files; None for unencrypted transports.

    Raises UrlError if options are unknown or missing, or a file cannot be read.
    """
    if url.transport in ENCRYPTED:
        # `ssl` applies to all URLs of a server, some of which may be unencrypted.
        check_options(url, frozenset({"fd"}))
        return None
    check_options(url, frozenset({"cert", "key", "fd"}))
    if ssl is not None:
        return ssl
    if "cert" not in url.options:
        raise UrlError(f"'{url}' needs a certificate; pass ssl=..., or add ?cert=FILE&key=FILE")
    context = tls.create_default_context(tls.Purpose.CLIENT_AUTH)
    with certificate_errors(url):
        context.load_cert_chain(url.options["cert"], url.options.get("key"))
    return context
