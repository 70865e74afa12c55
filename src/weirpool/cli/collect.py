"""`weirpool collect`: collect a stream into a journal."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer import Argument, Option

from .. import units
from ..access.listening import server_tls
from ..errors import LocalError
from ..texts import counted
from .arguments import Credit
from .bodies import bodies_of
from .connect_options import SessionOptions
from .console import COLLECTING, note, say, say_json, start_logging
from .contexts import offered, resolved
from .durable import STOPPED, DurableOptions, collect_in_group
from .entrance import AllowAnonymous, entrance
from .exits import CANCELED
from .feeds import FeedsOptions
from .given import given_settings
from .groups import grouped
from .listen import Listener, ListenOptions
from .progress import StandardError, progress_line
from .request_options import RequestOptions

if TYPE_CHECKING:
    from ..journal.collect import Collector, Progress
    from ..replica.group import Membership
    from ..serving.host import Listening

SHARED: Final = "quiet cafile cert key allow_anonymous options".split()
OF_A_FILE: Final = frozenset([*SHARED, *"config check workers http http_name log serve".split()])
"""The options of --config."""
OF_LISTENING: Final = frozenset([*SHARED, *"listen receive stage_bytes journal budget auth set".split()])
"""The options of --listen."""
OF_OTHERS: Final = frozenset("check workers http http_name log receive stage_bytes".split())
"""Options that a single stream does not have."""
REPORT_SECONDS: Final = 2.0


@dataclass(frozen=True, kw_only=True)
class CollectOptions:
    """The journal, and how to collect into it."""

    journal: Annotated[Path | None, Option("--journal", "-j", help="The journal's folder.")] = None
    source: Annotated[str | None, Option("--source", help="The log's name in the journal; the route by default.")] = (
        None
    )
    credit: Credit = None
    budget: Annotated[
        str, Option("--budget", metavar="BYTES", help="Maximum size of unread rows: 1000000, 256MiB, 4GiB.")
    ] = "256MiB"
    again: Annotated[bool, Option("--again", help="Collect a completed stream again.")] = False
    accept_loss: Annotated[bool, Option("--accept-loss", help="Open a damaged log; record lost rows as a gap.")] = False
    serve: Annotated[
        list[str],
        Option(
            "--serve",
            metavar="URL",
            help="Serve the journal to readers elsewhere, which show the token in WEIRPOOL_SERVE_TOKEN; repeatable.",
        ),
    ] = field(default_factory=list)
    allow_anonymous: AllowAnonymous = False
    quiet: Annotated[bool, Option("--quiet", "-q", help="Show no progress.")] = False
    as_json: Annotated[bool, Option("--json", help="Print one JSON object at the end.")] = False


Publisher = Annotated[
    str | None,
    Argument(
        help="PROTOCOL+TRANSPORT://HOST:PORT of the publisher, or @NAME of a saved context.",
        callback=resolved,
        is_eager=True,
        autocompletion=offered,
    ),
]


@grouped
def collect(
    context: typer.Context,
    request: RequestOptions,
    options: SessionOptions,
    collecting: CollectOptions,
    feeds: FeedsOptions,
    listening: ListenOptions,
    durable: DurableOptions,
    url: Publisher = None,
    route: Annotated[str | None, Argument(help="The name of a handler.")] = None,
) -> None:
    """Collect a stream into a journal, each item once, until it is complete.

    With --config it collects many streams, and with --listen it receives rows.

    If it is stopped, the same command continues where it left off.

    Example: weirpool collect rsocket+tcp://localhost:7878 flights --journal data/flights

    Example: weirpool collect --config feeds.toml --http 7880 --serve rsocket+tcp://127.0.0.1:7879

    Example: weirpool collect --listen rsocket+tcp://:7879 --receive delays --journal data/in --auth env:SINK_AUTH
    """
    journal = collecting.journal
    given = _on_the_command_line(context)
    # As a path, s3://bucket is s3:/bucket.
    if journal is not None and re.match(r"[a-z][a-z0-9+.-]+:/", str(journal)):
        raise LocalError(
            "--journal needs a folder: a journal is written to a disk of this machine; "
            "`weirpool journal seal --store URI` moves its old rows to a store"
        )
    if feeds.config is not None:
        if durable != DurableOptions():
            raise LocalError("--config says where items are durable: use storage.durable and [group] in the file")
        if url is not None or journal is not None or listening.listen:
            raise LocalError(
                "--config names the streams and journals: use it without URL, ROUTE, --journal and --listen"
            )
        _refuse((given[name] for name in given if name not in OF_A_FILE), "with --config")
        feeds.run(_serve_table(collecting, options), allow_anonymous=collecting.allow_anonymous)
    elif listening.listen:
        if url is not None or journal is None:
            raise LocalError("--listen needs --journal, and no URL and ROUTE: clients connect to this process")
        if durable != DurableOptions():
            raise LocalError("--listen is durable on this disk only: use it without --durable, --store and --group")
        _refuse((given[name] for name in given if name not in OF_LISTENING), "with --listen")
        _listener(listening, journal, request, options, collecting).run()
    elif url is None or route is None or journal is None:
        raise LocalError("give URL, ROUTE and --journal of one stream, or --config FILE for many")
    else:
        unused = OF_OTHERS if collecting.serve else OF_OTHERS | {"allow_anonymous"}
        _refuse((given[name] for name in given if name in unused), "without --config and --listen")
        _collect_one(url, route, journal, request, options, collecting, durable.membership(journal))


def _on_the_command_line(context: typer.Context) -> dict[str, str]:
    """Return the names of the parameters that the user has given there, and the options as the user writes them."""
    sources = {(each.name, each.opts[0]): context.get_parameter_source(each.name) for each in context.command.params}
    return {name: option for (name, option), source in sources.items() if source and source.name == "COMMANDLINE"}


def _refuse(unused: Iterable[str], form: str) -> None:
    """Refuse options that a form of the verb would ignore."""
    if options := ", ".join(sorted(unused)):
        raise LocalError(f"not used {form}: {options}")


def _serve_table(collecting: CollectOptions, options: SessionOptions) -> dict[str, Any] | None:
    """Return the table [serve] that the command line describes; None without --serve."""
    if not collecting.serve:
        return None
    return {"url": tuple(collecting.serve), "cafile": options.cafile, "cert": options.cert, "key": options.key}


def _listener(
    listening: ListenOptions,
    journal: Path,
    request: RequestOptions,
    options: SessionOptions,
    collecting: CollectOptions,
) -> Listener:
    from ..settings import Settings

    urls = server_tls(listening.listen, options.cafile, options.cert, options.key)
    return Listener(
        urls=urls,
        routes=listening.routes(),
        journal=journal,
        budget_bytes=size_of(collecting.budget),
        stage_bytes=size_of(listening.stage_bytes),
        acceptor=entrance(urls, request.auth, collecting.allow_anonymous),
        settings=Settings(**given_settings(options.set)),
    )


def _collect_one(
    url: str,
    route: str,
    journal: Path,
    request: RequestOptions,
    options: SessionOptions,
    collecting: CollectOptions,
    member: Membership | None,
) -> None:
    """Collect one stream, and print what was collected."""
    from ..aio.loop import run
    from ..journal import Request
    from ..journal.collect import Collector

    start_logging(COLLECTING, handler=StandardError())
    settings = options.settings(url)
    request_route, payload = request.request(url, route, settings)
    payload = bodies_of(url).outgoing(payload)
    address, context = options.tls(url)
    made = partial(
        Collector,
        address,
        request_route,
        journal,
        source=route if collecting.source is None else collecting.source,
        data=payload.data,
        metadata=payload.metadata,
        budget_bytes=size_of(collecting.budget),
        credit=collecting.credit,
        settings=settings,
        ssl=context,
        setup=options.setup_payload(url, settings),
        again=collecting.again,
        accept_loss=collecting.accept_loss,
        request=Request(route, payload.data, request.lasting_metadata(payload), address),
    )
    progress, stopped = run(_collect(made, journal, collecting, _readers(collecting), member))
    _print_result(progress, stopped is None, collecting.as_json)
    if stopped == signal.SIGINT:
        raise typer.Exit(CANCELED)


def size_of(text: str) -> int:
    """Return a size in bytes, as `units.size` reads it; `LocalError` if it is not one."""
    try:
        return units.size(text)
    except ValueError as error:
        raise LocalError(f"{text!r} is not valid; {error}") from None


def _readers(options: CollectOptions) -> Listening | None:
    """Return where the journal is served, and to whom; None if it is not. It is checked before anything begins."""
    if not options.serve:
        return None
    from ..serving.door import OPERATOR_TOKEN, environment_token
    from ..serving.host import Listening, check

    where = Listening(
        urls=tuple(options.serve),
        token=environment_token(),
        operator=environment_token(OPERATOR_TOKEN),
        allow_anonymous=options.allow_anonymous,
    )
    check(where)
    return where


async def _collect(
    made: Callable[..., Collector],
    journal: Path,
    options: CollectOptions,
    readers: Listening | None,
    member: Membership | None,
) -> tuple[Progress, signal.Signals | None]:
    """Collect, and serve the journal meanwhile. Return the progress, and the signal that has ended it or None."""
    from ..aio.signals import stop_signal

    async with AsyncExitStack() as serving:
        signaled = await serving.enter_async_context(stop_signal())
        told: list[Callable[[str], None]] = []
        if readers is not None:
            from ..serving.host import Host

            host = await serving.enter_async_context(Host({"journal": str(journal)}, readers))
            told.append(host.journals.stand_by)
            for url in host.urls:
                note(f"serving the journal on {url}")
        if member is None:
            progress, stopped = await _collected(made(), options.quiet, signaled)
        else:
            reported = partial(_reported, quiet=options.quiet)
            progress, stopped = await collect_in_group(member, made, reported, signaled, *told)
        if readers is not None and stopped is None:
            note("the stream is complete; the journal is served until Ctrl-C")
            await signaled
        return progress, stopped


async def _collected(
    collector: Collector, quiet: bool, stopped: asyncio.Future[signal.Signals]
) -> tuple[Progress, signal.Signals | None]:
    """Collect until the stream is complete or a signal arrives. Return the progress, and the signal or None."""
    work = asyncio.ensure_future(_reported(collector, quiet))
    stopped.add_done_callback(lambda _: work.cancel())
    try:
        await work
    except asyncio.CancelledError:
        note(STOPPED)
    return collector.progress, stopped.result() if work.cancelled() else None


async def _reported(collector: Collector, quiet: bool) -> None:
    """Collect until the stream is complete, and print the progress meanwhile unless `quiet`."""
    report = None if quiet else asyncio.ensure_future(_report(collector))
    try:
        await collector.run()
    finally:
        if report is not None:
            report.cancel()


def _print_result(progress: Progress, complete: bool, as_json: bool) -> None:
    """Print what was collected."""
    if as_json:
        fields = {"items": progress.rows, "bytes": progress.size, "gaps": progress.gaps, "position": progress.position}
        say_json(fields | {"complete": complete})
        return
    if progress.already:
        say(f"the stream is already complete, at {progress.position:,}; use --again to collect it again")
        return
    gaps = f", {counted(progress.gaps, 'gap')}" if progress.gaps else ""
    say(f"collected {counted(progress.rows, 'item')}{gaps}; the journal ends at {progress.position:,}")


async def _report(collector: Collector) -> None:
    """Show progress periodically: in one line of a terminal, or in a line each time."""
    progress = collector.progress
    rows, at = 0, monotonic()
    with progress_line() as show:
        while True:
            await asyncio.sleep(REPORT_SECONDS)
            rate = (progress.rows - rows) / (monotonic() - at)
            rows, at = progress.rows, monotonic()
            note = f"; {progress.waiting}" if progress.waiting else ""
            show(f"{progress.position:,} rows in the journal, {rate:,.0f}/s{note}")
