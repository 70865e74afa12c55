"""A server that requests are sent to: its URL, and how to be let in."""

from __future__ import annotations

import ssl as tls
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from ..errors import LocalError
from ..payload import Payload
from ..protocols import is_composite
from ..settings import Settings
from ..urls import parse_url, parse_urls
from .certificates import load_certificate, tls_context
from .references import resolved

if TYPE_CHECKING:
    from .. import Bearer, Simple
    from ..aio.client import Connecting
    from ..tap import Tap

__all__ = ["BINARY", "Target"]

BINARY: Final = "application/octet-stream"
"""The MIME type of a request's own metadata beside its credentials."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A server, as it is described on one machine and connected to from another: files are read by :meth:`connect`.

    `token`, `password` and `setup` may be `@FILE` or `env:NAME`, of the machine that connects; no error shows them.
    """

    url: str
    """Its URL."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Fields of :class:`weirpool.Settings`."""
    token: str | None = field(default=None, repr=False)
    """The token of the credentials."""
    user: str | None = None
    """Instead of it, the name of a user."""
    password: str | None = field(default=None, repr=False)
    """The user's password."""
    each_request: bool = False
    """Whether the credentials are in each request; otherwise they are in the set-up of the connection."""
    setup: str | None = field(default=None, repr=False)
    """The data of the set-up."""
    cafile: str | None = None
    """A file of certificates to trust; None: the system's."""
    cert: str | None = None
    """A file with the client's certificate."""
    key: str | None = None
    """A file with its key, if that is not in the same file."""

    def __post_init__(self) -> None:
        """Check what can be checked without a file or the network.

        Raises:
            LocalError: Two values contradict each other, or one has no effect.

        """
        settings = Settings(**self.settings)
        parse_urls([self.url], settings, serving=False)
        url = parse_url(self.url)
        if self.password is not None and self.user is None:
            raise LocalError("a password needs the name of its user")
        if self.user is not None and (self.password is None or self.token is not None):
            raise LocalError("a user needs a password, and no token")
        if self.authenticated and not is_composite(url.protocol, settings):
            raise LocalError(f"protocol {url.protocol} has no place for credentials; send them as set-up data")
        if self.key is not None and self.cert is None:
            raise LocalError("a key needs its certificate")
        if (self.cafile or self.cert) is not None and url.transport not in ("tls", "wss", "h2", "quic"):
            raise LocalError(f"transport {url.transport} is not encrypted, so certificates have no effect")
        if self.cert is not None and url.transport == "quic":
            raise LocalError("QUIC includes TLS, which does not support client certificates here")

    @property
    def authenticated(self) -> bool:
        """True if there are credentials."""
        return self.token is not None or self.user is not None

    def connect(self, taps: Iterable[Tap] = ()) -> Connecting:
        """Return a connection that is made when it is entered: a session of its own, without reconnecting.

        Raises:
            LocalError: A file or a variable cannot be read.

        """
        from ..aio.client import connect

        return connect(
            self._address(),
            settings=Settings(**self.settings),
            setup=self._setup(),
            ssl=self._context(),
            taps=taps,
            reconnect=False,
        )

    def metadata(self, route: str, metadata: bytes | None) -> tuple[str, bytes | None]:
        """Return the route and metadata to pass with a request; with credentials, the route is in the metadata."""
        if not self.each_request or not self.authenticated:
            return route, metadata
        from .. import Metadata

        entries = [] if metadata is None else [(BINARY, metadata)]
        return "", Metadata(auth=self._credentials(), entries=entries).addressed(route)

    def _credentials(self) -> Simple | Bearer:
        from .. import Bearer, Simple

        if self.token is not None:
            return Bearer(resolved(self.token))
        return Simple(self.user or "", resolved(self.password or ""))

    def _setup(self) -> Payload:
        data = b"" if self.setup is None else resolved(self.setup).encode()
        if not self.authenticated or self.each_request:
            return Payload(data)
        from .. import Metadata

        return Payload(data, Metadata(auth=self._credentials()).encode())

    def _address(self) -> str:
        url = parse_url(self.url)
        if url.transport != "quic" or self.cafile is None:
            return self.url
        return str(replace(url, options={**url.options, "ca": self.cafile}))

    def _context(self) -> tls.SSLContext | None:
        url = parse_url(self.url)
        if url.transport == "quic" or (self.cafile is None and self.cert is None):
            return None
        context = tls_context(tls.Purpose.SERVER_AUTH, self.cafile or url.options.get("ca"))
        if self.cert is not None:
            load_certificate(context, self.cert, self.key)
        return context
