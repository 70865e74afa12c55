"""`penstock collect`: keep a stream in a journal."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .arguments import Data, Route, Url, read_bytes

if TYPE_CHECKING:
    from ..journal.collect import Collector

REPORT_SECONDS = 2.0


def collect(
    url: Url,
    route: Route,
    journal: Annotated[Path, typer.Option("--journal", "-j", help="The journal's folder.")],
    source: Annotated[
        str | None, typer.Option("--source", help="The log's name in the journal; else the route.")
    ] = None,
    data: Data = "",
    budget: Annotated[int, typer.Option("--budget", min=1, help="MiB that readers may leave unread.")] = 256,
    again: Annotated[bool, typer.Option("--again", help="Collect anew a stream that is complete.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Report no progress.")] = False,
) -> None:
    """Collect a stream into a journal, each item once, until it is complete; stop it and start it at will.

    Example: penstock collect rsocket+tcp://localhost:7878 flights --journal data/flights
    """
    from ..aio.loop import run
    from ..journal.collect import Collector

    collector = Collector(
        url,
        route,
        journal,
        source=source,
        data=read_bytes(data),
        budget_bytes=budget * 1024 * 1024,
        again=again,
    )
    run(_collect(collector, quiet))


async def _collect(collector: Collector, quiet: bool) -> None:
    """Collect, report, and stop in order when told to."""
    work = asyncio.ensure_future(collector.run())
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, work.cancel)
    before = 0
    while not work.done():
        await asyncio.wait((work,), timeout=REPORT_SECONDS)
        progress = collector.progress
        if not quiet:
            rate = (progress.rows - before) / REPORT_SECONDS
            note = f"; {progress.waiting}" if progress.waiting else ""
            print(f"{progress.position:,} rows in the journal, {rate:,.0f}/s{note}", file=sys.stderr, flush=True)
        before = progress.rows
    try:
        await work
    except asyncio.CancelledError:
        print("stopped; start it again to go on", file=sys.stderr)
    progress = collector.progress
    gaps = f", {progress.gaps} gaps" if progress.gaps else ""
    print(f"collected {progress.rows:,} items{gaps}; the journal ends at {progress.position:,}")
