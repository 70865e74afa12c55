"""The options that say how a session with a server begins."""

from __future__ import annotations

import ssl as tls
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import LocalError
from ..protocols import PROTOCOLS, is_composite
from ..settings import DEFAULT_SETTINGS
from ..urls import check_headers, parse_url
from .given import given_settings
from .optionsfile import OptionsFile
from .trust import client_tls

if TYPE_CHECKING:
    from ..settings import Settings

__all__ = ["SessionOptions", "Set", "check_composite"]

Set = Annotated[list[str], typer.Option("--set", metavar="NAME=VALUE", help="One of penstock.Settings; repeatable.")]


@dataclass(frozen=True, kw_only=True)
class SessionOptions:
    """What is said of a session before it begins, and whom TLS trusts."""

    data_mime: Annotated[
        str | None, typer.Option("--data-mime", metavar="MIME", help="What the connection's data is.")
    ] = None
    metadata_mime: Annotated[
        str | None, typer.Option("--metadata-mime", metavar="MIME", help="What the connection's metadata is.")
    ] = None
    lease: Annotated[bool, typer.Option("--lease", help="Ask for leases, and wait for them.")] = False
    header: Annotated[
        list[str],
        typer.Option("--header", metavar="'NAME: VALUE'", help="With WebSocket and HTTP/2: a header; repeatable."),
    ] = field(default_factory=list)
    cafile: Annotated[
        str | None, typer.Option("--cafile", metavar="FILE", help="With TLS: trust the certificates in this file.")
    ] = None
    insecure: Annotated[bool, typer.Option("--insecure", help="With TLS: trust any certificate. For tests alone.")] = (
        False
    )
    cert: Annotated[str | None, typer.Option("--cert", metavar="FILE", help="With TLS: the certificate to show.")] = (
        None
    )
    key: Annotated[
        str | None, typer.Option("--key", metavar="FILE", help="Its key, if that is in a file of its own.")
    ] = None
    set: Set = field(default_factory=list)
    options: OptionsFile = None

    def settings(self, url: str, **more: Any) -> Settings:
        """Return the settings of a session with the server at `url`, and `more` of them.

        Raises:
            LocalError: Some option is no such thing, or not for this transport.

        """
        from ..settings import Settings

        chosen = given_settings(self.set) | more
        if self.data_mime is not None:
            chosen["data_mime"] = self.data_mime
        if self.metadata_mime is not None:
            chosen["metadata_mime"] = self.metadata_mime
        if self.lease:
            chosen["lease"] = True
        if self.header:
            check_headers(parse_url(url).transport, "--header")
            chosen["headers"] = tuple(_header(text) for text in self.header)
        return Settings(**chosen)

    def tls(self, url: str) -> tuple[str, tls.SSLContext | None]:
        """Return the URL to connect to and what decides whom to trust there; see :func:`client_tls`."""
        return client_tls(url, self.cafile, self.insecure, self.cert, self.key)


def check_composite(url: str, settings: Settings, options: str) -> None:
    """Refuse options that need more room in metadata than a route takes, where there is none.

    Raises:
        LocalError: The metadata of such a connection is not composite.

    """
    if not is_composite(parse_url(url).protocol, settings):
        protocols = " or ".join(protocol for protocol in PROTOCOLS if is_composite(protocol, DEFAULT_SETTINGS))
        raise LocalError(f"{options} composite metadata: protocol {protocols}, and no other --metadata-mime")


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon:
        # What stands there may be secret.
        raise LocalError("--header needs a colon: 'Name: value'")
    return name.strip(), value.strip()
