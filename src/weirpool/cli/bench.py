"""`weirpool bench`: measures latency and throughput of a server."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer import Option

from ..errors import LocalError
from ..kinds import KIND_NAMES, Kind
from ..texts import shown_line
from .arguments import Credit, Route, Url
from .benchtable import progress, table
from .bodies import bodies_of
from .confirm import Yes, allow_replacing
from .connect_options import ConnectOptions
from .connection import with_peers
from .console import note, say, say_json
from .exits import CANCELED, FAILED
from .groups import grouped
from .request_options import RequestOptions
from .values import duration, offering

if TYPE_CHECKING:
    from rich.status import Status

    from ..aio.peer import Peer
    from ..load.measured import Measured
    from ..load.requests import Send
    from ..load.round import Pace, Round

__all__ = ["bench"]

FIRE: Final = Kind.FIRE.name.lower()
FIRED: Final = "a fire ends when it is written; the server may not have received it, or not have handled it"
SECONDS: Final = 10.0
"""The duration of a round without --duration and --count."""
MAX_IN_FLIGHT: Final = 100_000
MAX_CONNECTIONS: Final = 10_000
REFRESH_SECONDS: Final = 0.25


@dataclass(frozen=True, kw_only=True)
class LoadOptions:
    """The kind of request, how many of them, and for how long."""

    kind: Annotated[
        str,
        Option("--kind", help=f"The kind of request: {', '.join(KIND_NAMES)}.", autocompletion=offering(*KIND_NAMES)),
    ] = "call"
    in_flight: Annotated[
        str, Option("--in-flight", metavar="N[,N…]", help="Requests in flight, over all connections; one round each.")
    ] = "1"
    connections: Annotated[
        int, Option("--connections", metavar="N", min=1, max=MAX_CONNECTIONS, help="Number of connections.")
    ] = 1
    rate: Annotated[
        float | None,
        Option("--rate", metavar="N", min=0.001, help="Requests per second; by default as fast as they complete."),
    ] = None
    duration: Annotated[
        float | None,
        Option(
            "--duration",
            metavar="SECONDS",
            parser=duration(0.001),
            help=f"Duration of a round; {SECONDS:g} by default.",
        ),
    ] = None
    count: Annotated[int | None, Option("--count", metavar="N", min=1, help="Requests of a round.")] = None
    warm_up: Annotated[
        float,
        Option("--warm-up", metavar="SECONDS", parser=duration(), help="Time before each round that is not measured."),
    ] = 1.0
    items: Annotated[
        int, Option("--items", metavar="N", min=0, help="Items that an upload or channel sends, each with --data.")
    ] = 100
    take: Annotated[
        int | None, Option("--take", metavar="N", min=1, help="Cancel streams and channels after N items.")
    ] = None
    credit: Credit = None

    def paces(self) -> list[Pace]:
        """Return what to run, one round after the other."""
        from ..load.round import Pace

        seconds = SECONDS if self.duration is None and self.count is None else self.duration
        first = Pace(in_flight=1, seconds=seconds, count=self.count, rate=self.rate, warm_up=self.warm_up)
        return [replace(first, in_flight=number) for number in _numbers(self.in_flight)]

    def send(self, route: str, request: Any) -> Send:
        """Return the function that sends a request."""
        from ..load.requests import Load, sender

        if self.kind not in KIND_NAMES:
            raise LocalError(f"--kind {self.kind!r} is unknown; use one of: {', '.join(KIND_NAMES)}")
        kind = Kind[self.kind.upper()]
        return sender(
            Load(kind=kind, route=route, payload=request, items=self.items, take=self.take, credit=self.credit)
        )


@grouped
def bench(
    url: Url,
    route: Route,
    load: LoadOptions,
    request: RequestOptions,
    options: ConnectOptions,
    as_json: Annotated[bool, Option("--json", help="Print the results as one JSON object.")] = False,
    html: Annotated[
        Path | None, Option("--html", metavar="FILE", help="Also write a report with charts to this file.")
    ] = None,
    yes: Yes = False,
) -> None:
    """Send many requests, and print latencies and throughput. Ctrl-C prints what was measured so far.

    With --rate, latencies count from the time at which each request was due, also if it had to wait for others.

    Example: weirpool bench rsocket+tcp://localhost:7878 echo -d hello --in-flight 1,8,64 --duration 5

    Example: weirpool bench rsocket+tcp://localhost:7878 echo --rate 1000 --in-flight 100 --html report.html
    """
    if html is not None and not html.absolute().parent.is_dir():
        raise LocalError(f"there is no folder {str(html.absolute().parent)!r} for --html")
    if html is not None:
        allow_replacing(html, yes)
    paces = load.paces()
    request_route, payload = request.request(url, route, options.settings(url))
    send = load.send(request_route, bodies_of(url).outgoing(payload))
    results: list[Measured] = []
    bench = _Bench(paces, send, results)
    try:
        with_peers(url, load.connections, bench.run, options)
    finally:
        if results:
            title = f"{load.kind} {route} at {url}"
            _print(results, title, as_json, [FIRED] if load.kind == FIRE else [])
            if html is not None:
                _write(html, results, title)
    if bench.stopped:
        raise typer.Exit(CANCELED)
    if any(result.failed for result in results):
        raise typer.Exit(FAILED)


@dataclass
class _Bench:
    """Runs rounds, and stops them at a signal."""

    paces: list[Pace]
    send: Send
    results: list[Measured]
    stopped: bool = False

    async def run(self, peers: list[Peer]) -> None:
        """Run all rounds. What was measured is in `results` in any case."""
        from ..aio.signals import stop_signal
        from ..load.round import Round

        async with stop_signal() as signal:
            with _status() as status:
                for number, pace in enumerate(self.paces, 1):
                    one = Round(peers, self.send, pace)
                    watching = asyncio.ensure_future(_watch(one, f"round {number} of {len(self.paces)}", status))
                    try:
                        if not await self._measured(one, signal):
                            return
                    finally:
                        watching.cancel()

    async def _measured(self, one: Round, signal: asyncio.Future[Any]) -> bool:
        """Run a round, and return True unless a signal has stopped it."""
        running = asyncio.ensure_future(one.run())
        try:
            await asyncio.wait((running, signal), return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not running.done():
                running.cancel()
                await asyncio.wait((running,))
            if one.measured.seconds:
                self.results.append(one.measured)
        self.stopped = signal.done()
        if not self.stopped:
            running.result()
        return not self.stopped


async def _watch(one: Round, title: str, status: Status | None) -> None:
    """Show the progress of a round until this task is canceled."""
    from rich.text import Text

    while status is not None:
        status.update(Text(shown_line(f"{title}: {progress(one.measured, one.elapsed())}")))
        await asyncio.sleep(REFRESH_SECONDS)


def _status() -> AbstractContextManager[Status | None]:
    """Return a live line on standard error, if that is a terminal."""
    if not sys.stderr.isatty():
        return nullcontext()
    from rich.console import Console

    return Console(stderr=True).status("connecting")


def _print(results: list[Measured], title: str, as_json: bool, notes: list[str]) -> None:
    if as_json:
        say_json({"title": title, "rounds": [each.as_json() for each in results]})
    else:
        for line in [*table(results), *notes]:
            say(line)


def _write(path: Path, results: list[Measured], title: str) -> None:
    from ..load.report import report

    try:
        path.write_text(report(results, title), encoding="utf-8")
    except OSError as error:
        raise LocalError(f"cannot write {str(path)!r}: {error.strerror}") from error
    note(f"report in {path}")


def _numbers(text: str) -> list[int]:
    """Return the numbers of requests in flight."""
    parts = [part.strip() for part in text.split(",")]
    if all(part.isdecimal() and len(part) <= len(str(MAX_IN_FLIGHT)) for part in parts):
        found = [int(part) for part in parts]
        if all(1 <= number <= MAX_IN_FLIGHT for number in found):
            return found
    raise LocalError(f"--in-flight {text!r} is not a number from 1 to {MAX_IN_FLIGHT}, or several with commas")
