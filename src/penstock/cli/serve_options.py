"""The options of `penstock serve`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import LocalError
from .connect_options import Debug, ShowSecrets, Stats
from .given import given_settings
from .optionsfile import OptionsFile
from .session_options import Set

if TYPE_CHECKING:
    from ..leases import IntervalLease
    from ..settings import Settings

__all__ = ["ServeOptions"]


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """Who is let in, for how much, and what is told of it."""

    metrics: Annotated[
        str | None, typer.Option("--metrics", help="[HOST:]PORT where Prometheus may scrape; the host: 127.0.0.1.")
    ] = None
    origin: Annotated[
        list[str], typer.Option("--origin", help="For ws and wss: whose pages may connect; repeatable, * is anybody's.")
    ] = field(default_factory=list)
    lease: Annotated[
        str | None,
        typer.Option(
            "--lease", metavar="REQUESTS/SECONDS", help="Grant leases, to clients that ask: so many in so many seconds."
        ),
    ] = None
    cert: Annotated[str | None, typer.Option("--cert", metavar="FILE", help="With TLS: the server's certificate.")] = (
        None
    )
    key: Annotated[
        str | None, typer.Option("--key", metavar="FILE", help="Its key, if that is in a file of its own.")
    ] = None
    cafile: Annotated[
        str | None, typer.Option("--cafile", metavar="FILE", help="With TLS: clients must show a certificate by these.")
    ] = None
    resume: Annotated[
        float | None,
        typer.Option("--resume", metavar="SECONDS", min=0, help="How long clients may come back; 0: not at all."),
    ] = None
    resume_store: Annotated[
        str,
        typer.Option(
            "--resume-store",
            metavar="FOLDER",
            help="Where sessions are kept, for clients to resume them after a restart.",
        ),
    ] = ""
    set: Set = field(default_factory=list)
    debug: Debug = False
    show_secrets: ShowSecrets = False
    stats: Stats = False
    options: OptionsFile = None

    def settings(self) -> Settings:
        """Return the settings of the server.

        Raises:
            LocalError: Some option is no such thing.

        """
        from ..settings import Settings

        chosen: dict[str, Any] = given_settings(self.set)
        if self.origin:
            chosen["origins"] = tuple(self.origin)
        if self.lease is not None:
            chosen["lease"] = _lease(self.lease)
        if self.resume is not None:
            chosen["resume_timeout"] = self.resume
        if self.resume_store:
            chosen["resume_store"] = self.resume_store
        return Settings(**chosen)


def _lease(text: str) -> IntervalLease:
    from ..leases import IntervalLease

    found = re.fullmatch(r"([0-9]{1,10})/([0-9]{1,7}(?:\.[0-9]{1,3})?)", text)
    if found is None:
        raise LocalError(f"--lease {text!r} is no REQUESTS/SECONDS, such as 100/1")
    return IntervalLease(int(found[1]), float(found[2]))
