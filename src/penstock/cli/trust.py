"""TLS contexts from files of certificates and keys."""

from __future__ import annotations

import ssl as tls
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ..errors import LocalError
from ..urls import parse_url

if TYPE_CHECKING:
    from ..urls import Url

__all__ = ["client_tls", "server_tls", "without_files"]

ENCRYPTED: Final = frozenset({"tls", "wss", "h2", "quic"})
"""The transports whose URLs can name certificates."""


def client_tls(
    text: str, cafile: str | None = None, insecure: bool = False, cert: str | None = None, key: str | None = None
) -> tuple[str, tls.SSLContext | None]:
    """Return the URL to connect to and its TLS context; None if the URL's own options suffice.

    Args:
        text: The URL.
        cafile: A file of trusted certificates; the system's by default.
        insecure: Trust any certificate.
        cert: A file with the client certificate.
        key: A file with its private key; None if it is in the same file.

    """
    url = parse_url(text)
    _check_key(cert, key)
    if cafile is None and not insecure and cert is None:
        return text, None
    if url.transport == "quic":
        if insecure or cert is not None or cafile is None:
            raise LocalError(f"'{text}': QUIC includes TLS, for which only --cafile applies")
        return _with(url, ca=cafile), None
    context = _context(tls.Purpose.SERVER_AUTH, cafile or url.options.get("ca"))
    if insecure:
        context.check_hostname = False
        context.verify_mode = tls.CERT_NONE
    if cert is not None:
        _load_certificate(context, cert, key)
    return text, context


def server_tls(
    urls: Sequence[str], cafile: str | None = None, cert: str | None = None, key: str | None = None
) -> list[str]:
    """Return the URLs to listen on, in which the encrypted ones name the files.

    Args:
        urls: The URLs.
        cafile: A file of certificates; clients must show a certificate signed by one of them.
        cert: A file with the server's certificate.
        key: A file with its private key; None if it is in the same file.

    """
    _check_key(cert, key)
    if cert is None:
        if cafile is not None:
            raise LocalError("--cafile requires client certificates, and needs the server's own --cert")
        return list(urls)
    _load_certificate(_context(tls.Purpose.CLIENT_AUTH, cafile), cert, key)
    files = {"cert": cert, "key": key, "ca": cafile}
    options = {name: file for name, file in files.items() if file is not None}
    found = []
    for text in urls:
        url = parse_url(text)
        if url.transport == "quic" and cafile is not None:
            raise LocalError(f"'{text}': QUIC includes TLS, which does not support client certificates")
        found.append(_with(url, **options) if url.transport in ENCRYPTED else text)
    return found


def without_files(text: str) -> str:
    """Return the URL of a server without the options of `server_tls`, as clients write it."""
    url = parse_url(text)
    options = {name: value for name, value in url.options.items() if name not in ("cert", "key", "ca")}
    return str(replace(url, options=options))


def _context(purpose: tls.Purpose, cafile: str | None) -> tls.SSLContext:
    try:
        return tls.create_default_context(purpose, cafile=cafile)
    except OSError as error:
        raise LocalError(f"cannot read certificates from {cafile!r}: {error.strerror or error}") from error


def _check_key(cert: str | None, key: str | None) -> None:
    if key is not None and cert is None:
        raise LocalError("--key needs the certificate; add --cert")


def _load_certificate(context: tls.SSLContext, cert: str, key: str | None) -> None:
    try:
        # Without a password, OpenSSL would ask for that of an encrypted key on the terminal.
        context.load_cert_chain(cert, key, password="")
    except OSError as error:
        files = repr(cert) if key is None else f"{cert!r} and {key!r}"
        raise LocalError(f"cannot read a certificate and its key from {files}: {error.strerror or error}") from error


def _with(url: Url, **options: str) -> str:
    return str(replace(url, options={**url.options, **options}))
