"""Certificates of a temporary authority."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import trustme


@dataclass
class Certificates:
    """A server's certificate, and the CA that issued it, as files.

    Attributes:
        folder: Where `cert.pem`, `key.pem` and `ca.pem` are.
        names: The host names and addresses that the certificate is for.

    """

    folder: Path
    names: tuple[str, ...] = ("localhost", "127.0.0.1")

    def __post_init__(self) -> None:
        ca = trustme.CA()
        certificate = ca.issue_cert(*self.names)
        ca.cert_pem.write_to_path(str(self.folder / "ca.pem"))
        certificate.private_key_pem.write_to_path(str(self.folder / "key.pem"))
        for pem in certificate.cert_chain_pems:
            pem.write_to_path(str(self.folder / "cert.pem"), append=True)

    @property
    def server_options(self) -> str:
        """The query of a server's URL."""
        return f"cert={self.folder}/cert.pem&key={self.folder}/key.pem"

    @property
    def client_options(self) -> str:
        """The query of a client's URL."""
        return f"ca={self.folder}/ca.pem"

    def to_client(self, url: str) -> str:
        """Return the client's URL for a server's."""
        return f"{url.partition('?')[0]}?{self.client_options}"

    @cached_property
    def server(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.folder / "cert.pem", self.folder / "key.pem")
        return context

    @cached_property
    def client(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.folder / "ca.pem"))
