"""TLS contexts from files of certificates and keys."""

from __future__ import annotations

import ssl as tls

from ..access.certificates import load_certificate, tls_context
from ..access.listening import with_options
from ..errors import LocalError
from ..urls import parse_url

__all__ = ["client_tls"]


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
    if key is not None and cert is None:
        raise LocalError("--key needs the certificate; add --cert")
    if cafile is None and not insecure and cert is None:
        return text, None
    if url.transport == "quic":
        if insecure or cert is not None or cafile is None:
            raise LocalError(f"'{text}': QUIC includes TLS, for which only --cafile applies")
        return with_options(url, ca=cafile), None
    context = tls_context(tls.Purpose.SERVER_AUTH, cafile or url.options.get("ca"))
    if insecure:
        context.check_hostname = False
        context.verify_mode = tls.CERT_NONE
    if cert is not None:
        load_certificate(context, cert, key)
    return text, context
