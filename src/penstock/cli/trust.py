"""TLS from files: whom to trust, and what to show."""

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
    """Return the URL to connect to and what decides whom to trust there; None for what the URL says.

    Args:
        text: The URL.
        cafile: A file of certificates to trust; else the system's authorities are trusted.
        insecure: Trust any certificate.
        cert: A file with the certificate to show.
        key: Its private key; None: it is in the same file.

    Raises:
        LocalError: A file holds nothing of that kind, or the transport has no such thing.

    """
    url = parse_url(text)
    _check_key(cert, key)
    if cafile is None and not insecure and cert is None:
        return text, None
    if url.transport == "quic":
        if insecure or cert is not None or cafile is None:
            raise LocalError(f"'{text}': QUIC brings its own TLS, of which --cafile alone can be said")
        return _with(url, ca=cafile), None
    cafile = cafile or url.options.get("ca")
    try:
        context = tls.create_default_context(cafile=cafile)
    except OSError as error:
        raise LocalError(f"cannot read certificates from {cafile!r}: {error.strerror or error}") from error
    if insecure:
        context.check_hostname = False
        context.verify_mode = tls.CERT_NONE
    if cert is not None:
        _show(context, cert, key)
    return text, context


def server_tls(
    urls: Sequence[str], cafile: str | None = None, cert: str | None = None, key: str | None = None
) -> tuple[list[str], tls.SSLContext | None]:
    """Return the URLs to listen at, and the TLS of those that are encrypted; None for what each of them says.

    Args:
        urls: The URLs.
        cafile: A file of certificates: clients must show one that these vouch for.
        cert: A file with the certificate to show.
        key: Its private key; None: it is in the same file.

    Raises:
        LocalError: A file holds nothing of that kind, or a transport has no such thing.

    """
    _check_key(cert, key)
    if cert is None:
        if cafile is not None:
            raise LocalError("--cafile asks clients for certificates, and needs a --cert of the server's own")
        return list(urls), None
    found = []
    for text in urls:
        url = parse_url(text)
        if url.transport == "quic":
            if cafile is not None:
                raise LocalError(f"'{text}': QUIC brings its own TLS, which asks clients for no certificates")
            text = _with(url, **({"cert": cert} if key is None else {"cert": cert, "key": key}))
        found.append(text)
    context = tls.create_default_context(tls.Purpose.CLIENT_AUTH)
    _show(context, cert, key)
    if cafile is not None:
        try:
            context.load_verify_locations(cafile)
        except OSError as error:
            raise LocalError(f"cannot read certificates from {cafile!r}: {error.strerror or error}") from error
        context.verify_mode = tls.CERT_REQUIRED
    return found, context


def _check_key(cert: str | None, key: str | None) -> None:
    if key is not None and cert is None:
        raise LocalError("--key is the key of a certificate; name that with --cert")


def _show(context: tls.SSLContext, cert: str, key: str | None) -> None:
    try:
        # Without an answer, OpenSSL would ask the terminal for the password of a key that has one.
        context.load_cert_chain(cert, key, password="")
    except OSError as error:
        files = repr(cert) if key is None else f"{cert!r} and {key!r}"
        raise LocalError(f"cannot read a certificate and its key from {files}: {error.strerror or error}") from error


def _with(url: Url, **options: str) -> str:
    return str(replace(url, options={**url.options, **options}))
