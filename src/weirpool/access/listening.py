"""The certificates of a server, as options describe them: in the URLs that it listens on."""

from __future__ import annotations

import ssl as tls
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ..errors import LocalError
from ..urls import Url, parse_url
from .certificates import load_certificate, tls_context

__all__ = ["ENCRYPTED", "FILES", "server_tls", "with_options", "without_files"]

ENCRYPTED: Final = frozenset({"tls", "wss", "h2", "quic"})
"""The transports whose URLs can name certificates."""
FILES: Final = ("cert", "key", "ca")
"""The options of a server's URL that name files."""


def server_tls(
    urls: Sequence[str], cafile: str | None = None, cert: str | None = None, key: str | None = None
) -> list[str]:
    """Return the URLs to listen on, in which the encrypted ones name the files.

    Args:
        urls: The URLs.
        cafile: A file of certificates; clients must show a certificate signed by one of them.
        cert: A file with the server's certificate.
        key: A file with its private key; None if it is in the same file.

    Raises:
        LocalError: A file cannot be read, or has no effect.

    """
    if cert is None:
        if key is not None:
            raise LocalError("a key needs its certificate; add cert")
        if cafile is not None:
            raise LocalError("cafile requires client certificates, and needs the server's own cert")
        return list(urls)
    parsed = [parse_url(text) for text in urls]
    if not any(url.transport in ENCRYPTED for url in parsed):
        # An operator who asks for TLS must not get a server without it.
        what = f"{' and '.join(str(url) for url in parsed)} is not encrypted"
        raise LocalError(f"cert has no effect, because {what}; write +tls://, +wss:// or +h2://")
    load_certificate(tls_context(tls.Purpose.CLIENT_AUTH, cafile), cert, key)
    options = {name: file for name, file in zip(FILES, (cert, key, cafile), strict=True) if file is not None}
    found = []
    for text, url in zip(urls, parsed, strict=True):
        if url.transport == "quic" and cafile is not None:
            raise LocalError(f"'{text}': QUIC includes TLS, which does not support client certificates")
        found.append(with_options(url, **options) if url.transport in ENCRYPTED else text)
    return found


def without_files(text: str) -> str:
    """Return the URL of a server without the options of `server_tls`, as clients write it."""
    url = parse_url(text)
    return str(replace(url, options={name: value for name, value in url.options.items() if name not in FILES}))


def with_options(url: Url, **options: str) -> str:
    """Return a URL with more options."""
    return str(replace(url, options={**url.options, **options}))
