"""The options of a session with a server."""

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

Set = Annotated[list[str], typer.Option("--set", metavar="NAME=VALUE", help="A penstock.Settings field; repeatable.")]


@dataclass(frozen=True, kw_only=True)
class SessionOptions:
    """The set-up of a session, and TLS."""

    data_mime: Annotated[
        str | None, typer.Option("--data-mime", metavar="MIME", help="MIME type of the connection's data.")
    ] = None
    metadata_mime: Annotated[
        str | None, typer.Option("--metadata-mime", metavar="MIME", help="MIME type of the connection's metadata.")
    ] = None
    lease: Annotated[bool, typer.Option("--lease", help="Ask for leases, and wait for them before requests.")] = False
    header: Annotated[
        list[str],
        typer.Option("--header", metavar="'NAME: VALUE'", help="With WebSocket and HTTP/2: a header; repeatable."),
    ] = field(default_factory=list)
    cafile: Annotated[
        str | None, typer.Option("--cafile", metavar="FILE", help="With TLS: trust the certificates in this file.")
    ] = None
    insecure: Annotated[bool, typer.Option("--insecure", help="With TLS: trust any certificate; only for tests.")] = (
        False
    )
    cert: Annotated[str | None, typer.Option("--cert", metavar="FILE", help="With TLS: the client certificate.")] = None
    key: Annotated[str | None, typer.Option("--key", metavar="FILE", help="Its key, if in a separate file.")] = None
    set: Set = field(default_factory=list)
    options: OptionsFile = None

    def settings(self, url: str, **more: Any) -> Settings:
        """Return the settings for a session with `url`, including `more`.

        Raises:
            LocalError: An option is invalid, or the transport does not support it.

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
        """Return the URL to connect to and its TLS context; see :func:`client_tls`."""
        return client_tls(url, self.cafile, self.insecure, self.cert, self.key)


def check_composite(url: str, settings: Settings, options: str) -> None:
    """Check that a connection to `url` has the composite metadata that `options` need.

    Raises:
        LocalError: Its metadata is not composite.

    """
    if not is_composite(parse_url(url).protocol, settings):
        protocols = " or ".join(protocol for protocol in PROTOCOLS if is_composite(protocol, DEFAULT_SETTINGS))
        raise LocalError(f"{options} composite metadata; use protocol {protocols}, without --metadata-mime")


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon:
        # The value may be secret, so it is not shown.
        raise LocalError("--header needs a colon: 'Name: value'")
    return name.strip(), value.strip()
