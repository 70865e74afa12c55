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
    """Who may connect, the limits for clients, and what to report."""

    metrics: Annotated[
        str | None, typer.Option("--metrics", help="Answer Prometheus on [HOST:]PORT; the default host is 127.0.0.1.")
    ] = None
    origin: Annotated[
        list[str],
        typer.Option("--origin", help="With ws and wss: an origin that may connect, or *; repeatable."),
    ] = field(default_factory=list)
    lease: Annotated[
        str | None,
        typer.Option(
            "--lease", metavar="REQUESTS/SECONDS", help="Grant this many requests per period to clients with leases."
        ),
    ] = None
    cert: Annotated[str | None, typer.Option("--cert", metavar="FILE", help="With TLS: the server's certificate.")] = (
        None
    )
    key: Annotated[str | None, typer.Option("--key", metavar="FILE", help="Its key, if in a separate file.")] = None
    cafile: Annotated[
        str | None,
        typer.Option("--cafile", metavar="FILE", help="With TLS: require client certificates, signed by these."),
    ] = None
    resume: Annotated[
        float | None,
        typer.Option(
            "--resume",
            metavar="SECONDS",
            min=0,
            help="How long clients may resume a session; 0: never.",
        ),
    ] = None
    resume_store: Annotated[
        str,
        typer.Option(
            "--resume-store",
            metavar="FOLDER",
            help="Keep sessions in this folder, so that clients can resume them after a restart.",
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
            LocalError: An option is invalid.

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
        raise LocalError(f"--lease {text!r} is not REQUESTS/SECONDS, such as 100/1")
    return IntervalLease(int(found[1]), float(found[2]))
