"""`weirpool collect --config`: collects the feeds of a file."""

from __future__ import annotations

import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import typer
from typer import Option

from ..access.exposure import check_page
from ..errors import LocalError, StoreError
from .console import LOGS, complain, say
from .exits import CANCELED, WRONG_USE
from .values import offering

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..feeds.file import FeedsFile
    from ..feeds.serve import Serve

__all__ = ["FeedsOptions", "address_of"]

MAX_WORKERS: Final = 256
MAX_PORT: Final = 65_535


@dataclass(frozen=True, kw_only=True)
class FeedsOptions:
    """A file of feeds, and how to run them."""

    config: Annotated[
        Path | None, Option("--config", metavar="FILE", help="Collect the feeds of this TOML file, until stopped.")
    ] = None
    check: Annotated[bool, Option("--check", help="With --config: check the file, and show what would run.")] = False
    workers: Annotated[
        int,
        Option("--workers", metavar="N", min=0, max=MAX_WORKERS, help="With --config: share feeds among processes."),
    ] = 0
    http: Annotated[
        str | None,
        Option("--http", metavar="[HOST:]PORT", help="With --config: serve status, metrics and health; see top."),
    ] = None
    http_name: Annotated[
        list[str],
        Option("--http-name", metavar="NAME", help="With --http: a name of this server; repeatable."),
    ] = field(default_factory=list)
    log: Annotated[
        str, Option("--log", help="With --config: the form of logs, text or json.", autocompletion=offering(*LOGS))
    ] = "text"

    def run(self, serve: Mapping[str, Any] | None = None, *, allow_anonymous: bool = False) -> None:
        """Collect the feeds of the file, or check it.

        Args:
            serve: Keys of the table ``[serve]``, if the command line has it instead of the file.
            allow_anonymous: Other machines may connect to what is served, although it asks for no credentials.

        """
        from ..feeds.file import load

        assert self.config is not None
        if self.log not in LOGS:
            raise LocalError(f"--log {self.log!r} is not known; use text or json")
        place = None if self.http is None else address_of(self.http)
        if self.http_name and place is None:
            raise LocalError("--http-name is a name of the server of --http; use both")
        if place is not None:
            check_page("--http", place[0], allowed=allow_anonymous)
        file = load(self.config)
        table = _serve(file, serve, allow_anonymous)
        if self.check:
            _check(file, table)
            return
        if not file.feeds and file.problems:
            raise LocalError("; ".join(file.problems.values()))
        if table is not None:
            from ..feeds.serving import check_serving

            check_serving(file, table)
        from ..feeds.command import collect_feeds

        names = self.http_name
        stopped = collect_feeds(file, workers=self.workers, http=place, names=names, log=self.log, serve=table)
        if stopped == signal.SIGINT:
            raise typer.Exit(CANCELED)


def address_of(text: str) -> tuple[str, int]:
    """Return host and port of [HOST:]PORT; the host is 127.0.0.1 by default."""
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > MAX_PORT:
        raise LocalError(f"--http {text!r} is not [HOST:]PORT")
    return host.strip("[]") or "127.0.0.1", int(port)


def _serve(file: FeedsFile, given: Mapping[str, Any] | None, allow_anonymous: bool) -> Serve | None:
    """Return how the journals are served: as the file says, or the command line."""
    from ..feeds.serve import Serve

    if given is not None and file.serve is not None:
        raise LocalError(f"{file.path} has the table [serve]; give the addresses there, or with --serve, not both")
    table = file.serve if given is None else Serve(**given)
    if table is None or not allow_anonymous:
        return table
    return msgspec.structs.replace(table, allow_anonymous=True)


def _check(file: FeedsFile, serve: Serve | None) -> None:
    """Print what would run; report all problems, including secrets and certificates that cannot be read."""
    from ..feeds.request import collector

    problems = list(file.problems.values())
    for name, config in file.feeds.items():
        try:
            collector(name, config, file.path.parent)
        except LocalError as error:
            problems.append(f"{file.path}: feed {name!r}: {error}")
        else:
            say(f"{name}: {config.route} from {config.url} into {config.journal}, log {config.source_of(name)}")
    for name in sorted(file.disabled):
        say(f"{name}: not enabled")
    if file.group is not None and file.feeds:
        problems += _check_group(file)
    if serve is not None:
        problems += _check_serving(file, serve)
    sys.stdout.flush()
    for problem in problems:
        complain(problem)
    if problems:
        raise typer.Exit(WRONG_USE)


def _check_group(file: FeedsFile) -> list[str]:
    """Print which group the feeds belong to; return the problems."""
    from ..feeds.grouped import membership

    try:
        member = membership(file)
    except (LocalError, StoreError) as error:
        return [str(error)]
    say(f"group {member.name}: in {member.store}")
    return []


def _check_serving(file: FeedsFile, serve: Serve) -> list[str]:
    """Print which journals would be served; return the problems."""
    from ..feeds.serving import check_serving

    try:
        folders = check_serving(file, serve)
    except LocalError as error:
        return [str(error)]
    for name, folder in folders.items():
        say(f"{folder}: served as {name}")
    return []
