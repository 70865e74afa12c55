"""The options of the verbs that connect, ask for something, and close."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..payload import Payload
from .arguments import read_bytes
from .bodies import bodies_of
from .credentials import credentials
from .request_options import OCTETS
from .session_options import SessionOptions, check_composite

if TYPE_CHECKING:
    from ..settings import Settings

__all__ = ["ConnectOptions", "Debug", "ShowSecrets", "Stats"]

Debug = Annotated[bool, typer.Option("--debug", help="Show every frame on standard error.")]
ShowSecrets = Annotated[bool, typer.Option("--show-secrets", help="With --debug: credentials and tokens, too.")]
Stats = Annotated[bool, typer.Option("--stats", help="At the end, tell on standard error what was carried.")]


@dataclass(frozen=True, kw_only=True)
class ConnectOptions(SessionOptions):
    """How to connect, how long to try, and what to tell of it."""

    setup: Annotated[str | None, typer.Option("--setup", metavar="DATA", help="The set-up's data; as --data.")] = None
    setup_metadata: Annotated[
        str | None, typer.Option("--setup-metadata", metavar="DATA", help="The set-up's metadata; as --data.")
    ] = None
    setup_auth: Annotated[
        str | None,
        typer.Option(
            "--setup-auth",
            metavar="AUTH",
            envvar="PENSTOCK_SETUP_AUTH",
            help="Credentials in the set-up; as --auth.",
            show_default=False,
        ),
    ] = None
    resume: Annotated[
        float | None,
        typer.Option("--resume", metavar="SECONDS", min=0.001, help="Outlive broken connections for so long."),
    ] = None
    retry: Annotated[
        int, typer.Option("--retry", metavar="N", min=0, help="Try so often again when nobody answers.")
    ] = 0
    timeout: Annotated[
        float | None, typer.Option("--timeout", metavar="SECONDS", min=0, help="What all of it may take.")
    ] = None
    debug: Debug = False
    show_secrets: ShowSecrets = False
    stats: Stats = False

    def settings(self, url: str, **more: Any) -> Settings:
        """Return the settings of a session with the server at `url`; see :meth:`SessionOptions.settings`."""
        if self.resume is not None:
            more |= {"resume": True, "resume_timeout": self.resume}
        return super().settings(url, **more)

    def setup_payload(self, url: str, settings: Settings) -> Payload:
        """Return what to tell the server about us.

        Raises:
            LocalError: A file cannot be read, the credentials are none, or the metadata has no room for them.

        """
        data = b"" if self.setup is None else read_bytes(self.setup)
        metadata = None if self.setup_metadata is None else read_bytes(self.setup_metadata)
        if self.setup_auth is None:
            return bodies_of(url).outgoing(Payload(data, metadata))
        from .. import Metadata

        check_composite(url, settings, "--setup-auth needs")
        beside = [] if metadata is None else [(OCTETS, metadata)]
        return Payload(data, Metadata(auth=credentials(self.setup_auth), entries=beside).encode())
