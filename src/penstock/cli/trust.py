"""TLS contexts from files of certificates and keys."""

from __future__ import annotations

import ssl as tls
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..errors import LocalError
from ..urls import parse_url

if TYPE_CHECKING:
    from ..urls import Url

__all__ = ["client_tls", "server_tls"]


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
) -> tuple[list[str], tls.SSLContext | None]:
    """Return the URLs to listen on and their TLS context; None if the URLs' own options suffice.

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
        return list(urls), None
    found = []
    for text in urls:
        url = parse_url(text)
        if url.transport == "quic":
            if cafile is not None:
                raise LocalError(f"'{text}': QUIC includes TLS, which does not support client certificates")
            text = _with(url, **({"cert": cert} if key is None else {"cert": cert, "key": key}))
        found.append(text)
    context = _context(tls.Purpose.CLIENT_AUTH, cafile)
    _load_certificate(context, cert, key)
    if cafile is not None:
        context.verify_mode = tls.CERT_REQUIRED
    return found, context


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
