"""`penstock collect`: collect a stream into a journal."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Final

import typer
from typer import Option

from ..errors import LocalError
from .arguments import Credit, Route, Url
from .bodies import bodies_of
from .connect_options import SessionOptions
from .exits import CANCELED
from .groups import grouped
from .request_options import RequestOptions

if TYPE_CHECKING:
    from ..journal.collect import Collector, Progress

REPORT_SECONDS: Final = 2.0
UNITS: Final = {"": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}


@dataclass(frozen=True, kw_only=True)
class CollectOptions:
    """The journal, and how to collect into it."""

    journal: Annotated[Path, Option("--journal", "-j", help="The journal's folder.")]
    source: Annotated[str | None, Option("--source", help="The log's name in the journal; the route by default.")] = (
        None
    )
    credit: Credit = None
    budget: Annotated[
        str, Option("--budget", metavar="BYTES", help="Maximum size of unread rows: 1000000, 256MiB, 4GiB.")
    ] = "256MiB"
    again: Annotated[bool, Option("--again", help="Collect a completed stream again.")] = False
    accept_loss: Annotated[bool, Option("--accept-loss", help="Open a damaged log; record lost rows as a gap.")] = False
    quiet: Annotated[bool, Option("--quiet", "-q", help="Show no progress.")] = False
    as_json: Annotated[bool, Option("--json", help="Print one JSON object at the end.")] = False


@grouped
def collect(
    url: Url,
    route: Route,
    request: RequestOptions,
    options: SessionOptions,
    collecting: CollectOptions,
) -> None:
    """Collect a stream into a journal, each item once, until it is complete.

    If it is stopped, the same command continues where it left off.

    Example: penstock collect rsocket+tcp://localhost:7878 flights --journal data/flights
    """
    from ..aio.loop import run
    from ..journal import Request
    from ..journal.collect import Collector

    logging.basicConfig(format="penstock: %(message)s")
    settings = options.settings(url)
    request_route, payload = request.request(url, route, settings)
    payload = bodies_of(url).outgoing(payload)
    address, context = options.tls(url)
    collector = Collector(
        address,
        request_route,
        collecting.journal,
        source=route if collecting.source is None else collecting.source,
        data=payload.data,
        metadata=payload.metadata,
        budget_bytes=size_of(collecting.budget),
        credit=collecting.credit,
        settings=settings,
        ssl=context,
        again=collecting.again,
        accept_loss=collecting.accept_loss,
        request=Request(route, payload.data, request.lasting_metadata(payload), address),
    )
    stopped = run(_collect(collector, collecting.quiet))
    _print_result(collector.progress, stopped is None, collecting.as_json)
    if stopped == signal.SIGINT:
        raise typer.Exit(CANCELED)


def size_of(text: str) -> int:
    """Return a size in bytes, given as 1000000, 64KiB, 256MiB or 4GiB."""
    match = re.fullmatch(r"([1-9][0-9]{0,17})(KiB|MiB|GiB|)", text)
    if match is None:
        raise LocalError(f"{text!r} is not a size in bytes; use a form such as 1000000, 256MiB or 4GiB")
    return int(match[1]) * UNITS[match[2]]


async def _collect(collector: Collector, quiet: bool) -> signal.Signals | None:
    """Collect until the stream is complete or a signal arrives. Return the signal, or None."""
    work = asyncio.ensure_future(collector.run())
    loop = asyncio.get_running_loop()
    signals: list[signal.Signals] = []

    def stop(number: signal.Signals) -> None:
        signals.append(number)
        work.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop, number)
    report = asyncio.ensure_future(_report(collector))
    if quiet:
        report.cancel()
    try:
        await work
    except asyncio.CancelledError:
        print("stopped; the same command continues from here", file=sys.stderr)
    finally:
        report.cancel()
    return signals[0] if work.cancelled() else None


def _print_result(progress: Progress, complete: bool, as_json: bool) -> None:
    """Print what was collected."""
    if as_json:
        fields = {"items": progress.rows, "bytes": progress.size, "gaps": progress.gaps, "position": progress.position}
        print(json.dumps(fields | {"complete": complete}))
        return
    if progress.already:
        print(f"the stream is already complete, at {progress.position:,}; use --again to collect it again")
        return
    gaps = f", {progress.gaps} gaps" if progress.gaps else ""
    print(f"collected {progress.rows:,} items{gaps}; the journal ends at {progress.position:,}")


async def _report(collector: Collector) -> None:
    """Print progress periodically."""
    progress = collector.progress
    rows, at = 0, monotonic()
    while True:
        await asyncio.sleep(REPORT_SECONDS)
        rate = (progress.rows - rows) / (monotonic() - at)
        rows, at = progress.rows, monotonic()
        note = f"; {progress.waiting}" if progress.waiting else ""
        print(f"{progress.position:,} rows in the journal, {rate:,.0f}/s{note}", file=sys.stderr, flush=True)
