"""`weirpool collect --listen`: receives rows that clients send, instead of collecting a stream."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from ..access.listening import without_files
from ..errors import LocalError
from .console import COLLECTING, note, say, start_logging
from .exits import CANCELED

if TYPE_CHECKING:
    from ..aio.setup import Acceptor
    from ..settings import Settings

__all__ = ["ListenOptions", "Listener"]


@dataclass(frozen=True, kw_only=True)
class ListenOptions:
    """Where clients connect, and what they may send."""

    listen: Annotated[
        list[str], Option("--listen", metavar="URL", help="Receive rows at this URL instead; repeatable.")
    ] = field(default_factory=list)
    receive: Annotated[
        list[str],
        Option("--receive", metavar="ROUTE[=SOURCE]", help="With --listen: a route, and its log; repeatable."),
    ] = field(default_factory=list)
    stage_bytes: Annotated[
        str, Option("--stage-bytes", metavar="BYTES", help="With --listen: maximum size of uncommitted rows of a log.")
    ] = "4GiB"

    def routes(self) -> dict[str, str]:
        """Return the routes and the names of their logs."""
        found: dict[str, str] = {}
        for text in self.receive:
            route, equals, source = text.rpartition("=")
            found[route if equals else source] = source
        if not found:
            raise LocalError("--listen needs the routes that it receives: --receive ROUTE or --receive ROUTE=SOURCE")
        return found


@dataclass(frozen=True, kw_only=True)
class Listener:
    """A receiver, and who may connect to it."""

    urls: list[str]
    """Where clients connect; URLs of TLS name their files."""
    routes: dict[str, str]
    """The routes, and the names of their logs."""
    journal: Path
    """The journal's folder."""
    budget_bytes: int
    """Maximum bytes of unread rows of a log."""
    stage_bytes: int
    """Maximum bytes of uncommitted rows of a log."""
    acceptor: Acceptor | None
    """Admits clients; None: all of them."""
    settings: Settings
    """The settings of the server."""

    def run(self) -> None:
        """Receive rows until a signal arrives."""
        from ..aio.loop import run

        start_logging(COLLECTING)
        if run(self._serve()) == signal.SIGINT:
            raise typer.Exit(CANCELED)

    async def _serve(self) -> signal.Signals:
        """Receive rows, and return the signal that has ended it."""
        from ..aio.server import serve
        from ..aio.signals import stop_signal
        from ..receiving.receiver import Receiver

        receiver = Receiver(self.journal, self.routes, stage_bytes=self.stage_bytes, budget_bytes=self.budget_bytes)
        served = serve(receiver.service, *self.urls, settings=self.settings, acceptor=self.acceptor)
        async with stop_signal() as arrived, receiver, served as server:
            for url in server.urls:
                say(f"listening on {without_files(url)}")
            stopped = await arrived
        note("stopped; the same command continues from here")
        return stopped
