"""The options of verbs that connect, send a request and close."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..payload import Payload
from .arguments import read_bytes
from .bodies import bodies_of
from .credentials import credentials
from .request_options import BINARY
from .session_options import SessionOptions, check_composite

if TYPE_CHECKING:
    from ..settings import Settings

__all__ = ["ConnectOptions", "Debug", "ShowSecrets", "Stats"]

Debug = Annotated[bool, typer.Option("--debug", help="Show every frame on standard error.")]
ShowSecrets = Annotated[bool, typer.Option("--show-secrets", help="With --debug: also show credentials and tokens.")]
Stats = Annotated[bool, typer.Option("--stats", help="At the end, print totals and rates on standard error.")]


@dataclass(frozen=True, kw_only=True)
class ConnectOptions(SessionOptions):
    """How to connect, how long to try, and what to report."""

    setup: Annotated[str | None, typer.Option("--setup", metavar="DATA", help="Data of the set-up; see --data.")] = None
    setup_metadata: Annotated[
        str | None,
        typer.Option("--setup-metadata", metavar="DATA", help="Metadata of the set-up; see --data."),
    ] = None
    setup_auth: Annotated[
        str | None,
        typer.Option(
            "--setup-auth",
            metavar="AUTH",
            envvar="PENSTOCK_SETUP_AUTH",
            help="Credentials of the connection; see --auth.",
            show_default=False,
        ),
    ] = None
    resume: Annotated[
        float | None,
        typer.Option(
            "--resume",
            metavar="SECONDS",
            min=0.001,
            help="Resume broken connections; give up after this time.",
        ),
    ] = None
    retry: Annotated[
        int, typer.Option("--retry", metavar="N", min=0, help="Retry N times if no connection can be made.")
    ] = 0
    timeout: Annotated[
        float | None, typer.Option("--timeout", metavar="SECONDS", min=0, help="Overall time limit, in seconds.")
    ] = None
    debug: Debug = False
    show_secrets: ShowSecrets = False
    stats: Stats = False

    def settings(self, url: str, **more: Any) -> Settings:
        """Return the settings for a session with `url`; see :meth:`SessionOptions.settings`."""
        if self.resume is not None:
            more |= {"resume": True, "resume_timeout": self.resume}
        return super().settings(url, **more)

    def setup_payload(self, url: str, settings: Settings) -> Payload:
        """Return the data and metadata of the set-up.

        Raises:
            LocalError: A file cannot be read, or the credentials are invalid or need composite metadata.

        """
        data = b"" if self.setup is None else read_bytes(self.setup)
        metadata = None if self.setup_metadata is None else read_bytes(self.setup_metadata)
        if self.setup_auth is None:
            return bodies_of(url).outgoing(Payload(data, metadata))
        from .. import Metadata

        check_composite(url, settings, "--setup-auth needs")
        entries = [] if metadata is None else [(BINARY, metadata)]
        return Payload(data, Metadata(auth=credentials(self.setup_auth), entries=entries).encode())
