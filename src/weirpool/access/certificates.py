"""TLS contexts from files of certificates and keys."""

from __future__ import annotations

import ssl as tls

from ..errors import LocalError

__all__ = ["load_certificate", "tls_context"]


def tls_context(purpose: tls.Purpose, cafile: str | None) -> tls.SSLContext:
    """Return a context that trusts the certificates in `cafile`; the system's by default.

    Raises:
        LocalError: The file cannot be read.

    """
    try:
        return tls.create_default_context(purpose, cafile=cafile)
    except OSError as error:
        raise LocalError(f"cannot read certificates from {cafile!r}: {error.strerror or error}") from error


def load_certificate(context: tls.SSLContext, cert: str, key: str | None) -> None:
    """Let a context show the certificate in `cert`, whose key is in `key` or the same file.

    Raises:
        LocalError: A file cannot be read, or they do not belong together.

    """
    try:
        # Without a password, OpenSSL would ask for that of an encrypted key on the terminal.
        context.load_cert_chain(cert, key, password="")
    except OSError as error:
        files = repr(cert) if key is None else f"{cert!r} and {key!r}"
        raise LocalError(f"cannot read a certificate and its key from {files}: {error.strerror or error}") from error
