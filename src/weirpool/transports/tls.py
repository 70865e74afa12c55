"""TLS contexts for transports over sockets."""

from __future__ import annotations

import ssl as tls
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from ..errors import UrlError
from ..settings import Settings
from ..urls import Url
from .base import certificate_errors, check_options
from .reloading import Reloaded
from .sockets import FILE_OPTIONS

__all__ = ["Contexts", "client_context", "server_contexts", "tls_arguments", "with_alpn"]

Contexts: TypeAlias = "Callable[[], tls.SSLContext] | None"
"""Returns the TLS context for the next link of a listener; None for unencrypted transports."""

ENCRYPTED: Final = {"tcp": "tls", "unix": "tls", "ws": "wss", "h2c": "h2"}
"""The encrypted counterpart of each unencrypted transport over sockets."""
FILES: Final = frozenset({"ca", "cert", "key"})
"""The options of a server's URL that name files."""
MIN_SHUTDOWN: Final = 0.001
"""The shortest time in seconds for the closing handshake of TLS."""


def tls_arguments(context: tls.SSLContext | None, settings: Settings) -> dict[str, Any]:
    """Return asyncio's arguments for TLS; none without a context."""
    if context is None:
        return {}
    return {
        "ssl": context,
        "ssl_handshake_timeout": settings.connect_timeout,
        # asyncio refuses 0, which is a valid `close_grace`.
        "ssl_shutdown_timeout": max(settings.close_grace, MIN_SHUTDOWN),
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


def server_contexts(url: Url, ssl: tls.SSLContext | None, alpn: str = "") -> Contexts:
    """Return the TLS contexts to listen at `url`: `ssl`, or those with the URL's files as they are at the time.

    `alpn` is the only protocol to negotiate (ALPN), if any. It is set in `ssl`, too, because contexts cannot be copied.

    Raises UrlError if options are unknown or missing, or a file cannot be read.
    """
    if url.transport in ENCRYPTED:
        # `ssl` applies to all URLs of a server, some of which may be unencrypted.
        check_options(url, frozenset({"fd", *FILE_OPTIONS} if url.transport == "unix" else {"fd"}))
        return None
    check_options(url, FILES | {"fd"})
    if ssl is not None:
        if ignored := FILES & url.options.keys():
            # Above all `ca`, without which anybody could connect.
            names = ", ".join(sorted(ignored))
            raise UrlError(f"'{url}': {names} would have no effect, because ssl is given; load the files into it")
        given = with_alpn(ssl, alpn)
        return lambda: given
    if "cert" not in url.options:
        raise UrlError(f"'{url}' needs a certificate; pass ssl=..., or add ?cert=FILE&key=FILE")
    return Reloaded(url, ("cert", "key", "ca"), lambda: with_alpn(_read_context(url), alpn)).current


def with_alpn(context: tls.SSLContext, alpn: str) -> tls.SSLContext:
    """Make TLS negotiate a protocol, if any, and return the context."""
    if alpn:
        context.set_alpn_protocols([alpn])
    return context


def _read_context(url: Url) -> tls.SSLContext:
    authorities = url.options.get("ca")
    with certificate_errors(url):
        context = tls.create_default_context(tls.Purpose.CLIENT_AUTH, cafile=authorities)
        if authorities is not None:
            context.verify_mode = tls.CERT_REQUIRED
        # Without a password, OpenSSL would ask for that of an encrypted key on the terminal.
        context.load_cert_chain(url.options["cert"], url.options.get("key"), password="")
    return context
