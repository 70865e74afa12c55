"""The options of sessions with servers, and of verbs that connect, send a request and close."""

from __future__ import annotations

import ssl as tls
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Annotated, Any, Final

from typer import Option

from ..errors import LocalError
from ..payload import Payload
from ..protocols import PROTOCOLS, is_composite
from ..settings import DEFAULT_SETTINGS
from ..texts import concealed
from ..urls import check_headers, parse_url, parse_urls
from .bodies import bodies_of
from .contexts import MARK, load
from .credentials import credentials
from .given import given_settings
from .optionsfile import OptionsFile
from .trust import client_tls
from .values import duration, read_bytes

if TYPE_CHECKING:
    from ..settings import Settings

__all__ = [
    "BINARY",
    "ConnectOptions",
    "Debug",
    "SessionOptions",
    "Set",
    "ShowSecrets",
    "Stats",
    "check_composite",
    "of_context",
]

BINARY: Final = "application/octet-stream"
"""The MIME type of --metadata in composite metadata."""

Set = Annotated[list[str], Option("--set", metavar="NAME=VALUE", help="A weirpool.Settings field; repeatable.")]
Debug = Annotated[bool, Option("--debug", help="Show every frame on standard error.")]
ShowSecrets = Annotated[bool, Option("--show-secrets", help="With --debug: also show credentials and tokens.")]
Stats = Annotated[bool, Option("--stats", help="At the end, print totals and rates on standard error.")]


@dataclass(frozen=True, kw_only=True)
class SessionOptions:
    """The set-up of a session, and TLS."""

    __repr__ = concealed

    data_mime: Annotated[
        str | None, Option("--data-mime", metavar="MIME", help="MIME type of the connection's data.")
    ] = None
    metadata_mime: Annotated[
        str | None, Option("--metadata-mime", metavar="MIME", help="MIME type of the connection's metadata.")
    ] = None
    lease: Annotated[bool, Option("--lease", help="Ask for leases, and wait for them before requests.")] = False
    header: Annotated[
        list[str], Option("--header", metavar="'NAME: VALUE'", help="With WebSocket and HTTP/2: a header; repeatable.")
    ] = field(default_factory=list)
    cafile: Annotated[
        str | None, Option("--cafile", metavar="FILE", help="With TLS: trust the certificates in this file.")
    ] = None
    insecure: Annotated[bool, Option("--insecure", help="With TLS: trust any certificate; only for tests.")] = False
    cert: Annotated[str | None, Option("--cert", metavar="FILE", help="With TLS: the client certificate.")] = None
    key: Annotated[str | None, Option("--key", metavar="FILE", help="Its key, if in a separate file.")] = None
    setup: Annotated[str | None, Option("--setup", metavar="DATA", help="Data of the set-up; see --data.")] = None
    setup_metadata: Annotated[
        str | None, Option("--setup-metadata", metavar="DATA", help="Metadata of the set-up; see --data.")
    ] = None
    setup_auth: Annotated[
        str | None,
        Option(
            "--setup-auth",
            metavar="AUTH",
            envvar="WEIRPOOL_SETUP_AUTH",
            help="Credentials of the connection; see --auth.",
            show_default=False,
        ),
    ] = None
    set: Set = field(default_factory=list)
    saved_context: Annotated[
        str | None,
        Option(
            "--context",
            metavar="NAME",
            help="The saved context to use; by default WEIRPOOL_CONTEXT, or the current one.",
        ),
    ] = None
    options: OptionsFile = None

    def settings(self, url: str, **more: Any) -> Settings:
        """Return the settings for a session with `url`, including `more`."""
        from ..settings import Settings

        chosen = given_settings(self.set) | more
        mimes = {"data_mime": self.data_mime, "metadata_mime": self.metadata_mime}
        chosen |= {name: mime for name, mime in mimes.items() if mime is not None}
        if self.lease:
            chosen["lease"] = True
        if self.header:
            check_headers(parse_url(url).transport, "--header")
            chosen["headers"] = tuple(_header(text) for text in self.header)
        settings = Settings(**chosen)
        parse_urls([url], settings, serving=False)
        return settings

    def setup_payload(self, url: str, settings: Settings) -> Payload:
        """Return the data and metadata of the set-up."""
        data = b"" if self.setup is None else read_bytes(self.setup)
        metadata = None if self.setup_metadata is None else read_bytes(self.setup_metadata)
        if self.setup_auth is None:
            return bodies_of(url, self.data_mime).outgoing(Payload(data, metadata))
        from .. import Metadata

        check_composite(url, settings, "--setup-auth needs")
        entries = [] if metadata is None else [(BINARY, metadata)]
        return Payload(data, Metadata(auth=credentials(self.setup_auth), entries=entries).encode())

    def tls(self, url: str) -> tuple[str, tls.SSLContext | None]:
        """Return the URL to connect to and its TLS context; see :func:`client_tls`."""
        return client_tls(url, self.cafile, self.insecure, self.cert, self.key)


@dataclass(frozen=True, kw_only=True)
class ConnectOptions(SessionOptions):
    """How to connect, how long to try, and what to report."""

    __repr__ = concealed

    resume: Annotated[
        float | None,
        Option(
            "--resume",
            metavar="SECONDS",
            parser=duration(0.001),
            help="Resume broken connections; give up after this time.",
        ),
    ] = None
    retry: Annotated[int, Option("--retry", metavar="N", min=0, help="Retry N times if no connection can be made.")] = 0
    timeout: Annotated[
        float | None, Option("--timeout", metavar="SECONDS", parser=duration(), help="Overall time limit, in seconds.")
    ] = None
    debug: Debug = False
    show_secrets: ShowSecrets = False
    stats: Stats = False

    def settings(self, url: str, **more: Any) -> Settings:
        """Return the settings for a session with `url`; see :meth:`SessionOptions.settings`."""
        if self.resume is not None:
            more |= {"resume": True, "resume_timeout": self.resume}
        return super().settings(url, **more)


def of_context(server: str, given: SessionOptions) -> tuple[str, SessionOptions]:
    """Return the URL of a server, and how to connect to it.

    Args:
        server: The URL, or @NAME of a saved context.
        given: The options, which take precedence over those of the context.

    Raises:
        LocalError: There is no such context.

    """
    if not server.startswith(MARK):
        return server, given
    saved, unset = load().find(server.removeprefix(MARK)), SessionOptions()
    names = [each.name for each in fields(SessionOptions)]
    chosen = {name: saved.options[name] for name in names if name in saved.options}
    chosen |= {name: value for name in names if (value := getattr(given, name)) != getattr(unset, name)}
    return saved.url, SessionOptions(**chosen)


def check_composite(url: str, settings: Settings, options: str) -> None:
    """Check that a connection to `url` has the composite metadata that `options` need."""
    if not is_composite(parse_url(url).protocol, settings):
        protocols = " or ".join(protocol for protocol in PROTOCOLS if is_composite(protocol, DEFAULT_SETTINGS))
        raise LocalError(f"{options} composite metadata; use protocol {protocols}, without --metadata-mime")


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon:
        # The value may be secret, so it is not shown.
        raise LocalError("--header needs a colon: 'Name: value'")
    return name.strip(), value.strip()
