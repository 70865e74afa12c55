"""`weirpool record`: writes what passes between a client and a server to a file."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer import Argument, Option

from ..access.listening import server_tls
from ..errors import ApplicationError, ConnectError, LinkLost, LocalError, Rejected
from ..kinds import KIND_NAMES
from ..texts import counted
from ..urls import parse_url
from .arguments import Credit
from .bodies import bodies_of
from .bridge import Log
from .confirm import Yes, allow_replacing
from .connect_options import ConnectOptions
from .console import SERVING, note, say, start_logging
from .contexts import offered, resolved
from .entrance import AllowAnonymous, entrance
from .exits import CANCELED
from .groups import grouped
from .lines import ItemOptions
from .request_options import RequestOptions
from .values import offering

if TYPE_CHECKING:
    from ..aio.peer import Peer
    from ..aio.server import Server
    from ..payload import Payload
    from ..recording.recorder import Recorder

__all__ = ["record"]

CODEC: Final = "codec"

Use = Callable[["Peer", str, "Payload"], Awaitable[None]]


@dataclass(frozen=True, kw_only=True)
class RecordOptions:
    """What to record, and where."""

    file: Annotated[Path, Option("--output", "-o", metavar="FILE", help="The file to write.")]
    kind: Annotated[
        str,
        Option("--kind", help=f"The kind of request: {', '.join(KIND_NAMES)}.", autocompletion=offering(*KIND_NAMES)),
    ] = "stream"
    items: Annotated[
        str, Option("--items", metavar="ITEMS", help="The items of an upload or channel: text, @FILE, or -.")
    ] = ""
    take: Annotated[int | None, Option("--take", metavar="N", min=1, help="Stop after N items.")] = None
    credit: Credit = None
    listen: Annotated[
        list[str], Option("--listen", metavar="URL", help="Record what clients of this URL send to --to; repeatable.")
    ] = field(default_factory=list)
    to: Annotated[
        str | None,
        Option(
            "--to",
            metavar="URL",
            help="With --listen: the server, or @NAME of a saved context.",
            callback=resolved,
            is_eager=True,
            autocompletion=offered,
        ),
    ] = None
    yes: Yes = False
    allow_anonymous: AllowAnonymous = False
    log_form: Log = "text"


@grouped
def record(
    recording: RecordOptions,
    sending: ItemOptions,
    request: RequestOptions,
    options: ConnectOptions,
    url: Annotated[
        str | None,
        Argument(
            help="The URL of the server, or @NAME of a saved context; or use --listen and --to.",
            callback=resolved,
            is_eager=True,
            autocompletion=offered,
        ),
    ] = None,
    route: Annotated[str | None, Argument(help="The name of a handler.")] = None,
) -> None:
    """Send a request and record it with its response; or record everything that passes between clients and a server.

    The file can be served again with `weirpool replay`. Ctrl-C ends the recording. With --listen, clients must show
    what --auth says.

    Example: weirpool record rsocket+tcp://localhost:7878 quotes.live --take 1000 -o quotes.jsonl

    Example: weirpool record --listen rsocket+tcp://localhost:7879 --to rsocket+tcp://localhost:7878 -o session.jsonl
    """
    from ..aio.loop import run
    from ..recording.recorder import Recorder

    if recording.kind not in KIND_NAMES:
        raise LocalError(f"--kind {recording.kind!r} is unknown; use one of: {', '.join(KIND_NAMES)}")
    if bool(recording.listen) == bool(url) or bool(recording.listen) != bool(recording.to):
        raise LocalError("give either URL and ROUTE, or --listen and --to")
    server = recording.to or url
    assert server is not None
    allow_replacing(recording.file, recording.yes)
    bridged = _arguments(server, options)
    if url is None:
        _record_clients(recording, server, bridged, request.auth, options)
        return
    if route is None:
        raise LocalError("ROUTE is missing: weirpool record URL ROUTE -o FILE")
    request_route, payload = request.request(url, route, options.settings(url))
    payload = bodies_of(url).outgoing(payload)
    # The verb reports errors itself.
    logging.getLogger("weirpool.bridge").addHandler(logging.NullHandler())
    use = _use(recording, bodies_of(url).items(sending.source(recording.items)))
    with Recorder(recording.file, server) as recorder:
        try:
            stopped = run(_client(recorder, url, bridged, options, lambda peer: use(peer, request_route, payload)))
        finally:
            _report(recorder, recording.file)
    if stopped:
        raise typer.Exit(CANCELED)


def _record_clients(
    recording: RecordOptions, server: str, bridged: dict[str, Any], auth: str | None, options: ConnectOptions
) -> None:
    """Record everything that passes between a server and clients with the right credentials."""
    from ..aio.loop import run
    from ..recording.recorder import Recorder

    if options.timeout is not None:
        raise LocalError("--timeout limits one request; a recording of clients ends with Ctrl-C")
    start_logging(SERVING, recording.log_form)
    urls = server_tls(recording.listen, None, None, None)
    admitted = bridged | {"acceptor": entrance(urls, auth, recording.allow_anonymous)}
    with Recorder(recording.file, server) as recorder:
        run(_proxy(recorder, urls, admitted))
        _report(recorder, recording.file)


def _arguments(server: str, options: ConnectOptions) -> dict[str, Any]:
    """Return the arguments of :func:`weirpool.bridge` for the server's side."""
    settings = options.settings(server)
    address, context = options.tls(server)
    given = options.setup is not None or options.setup_metadata is not None or options.setup_auth is not None
    setup = options.setup_payload(server, settings) if given else None
    return {"to": address, "to_settings": settings, "to_ssl": context, "to_setup": setup}


def _use(recording: RecordOptions, items: Any) -> Use:
    """Return the function that sends the request and consumes the response, which is recorded on its way."""

    async def use(peer: Peer, route: str, payload: Payload) -> None:
        match recording.kind:
            case "call":
                await peer.call(route, payload)
            case "fire":
                await peer.fire(route, payload)
            case "upload":
                await peer.upload(route, payload, items)
            case "channel":
                await _consume(peer.channel(route, payload, items, credit=recording.credit), recording.take)
            case _:
                await _consume(peer.stream(route, payload, credit=recording.credit), recording.take)

    return use


async def _consume(stream: Any, take: int | None) -> None:
    count = 0
    async with stream:
        async for _ in stream:
            count += 1
            if count == take:
                break


async def _proxy(recorder: Recorder, urls: list[str], bridged: dict[str, Any]) -> None:
    """Record what clients send until a signal arrives."""
    from ..aio.signals import stop_signal

    async with stop_signal() as stopped, _bridge(recorder, urls, bridged) as server:
        for url in server.urls:
            say(f"listening on {url}")
        await stopped


async def _client(
    recorder: Recorder,
    url: str,
    bridged: dict[str, Any],
    options: ConnectOptions,
    use: Callable[[Peer], Awaitable[None]],
) -> bool:
    """Send a request through a bridge within this process; return True if a signal has stopped it."""
    from ..aio.client import connect
    from ..aio.signals import stop_signal
    from ..bridging.counters import Counters
    from ..settings import Settings

    parsed = parse_url(url)
    codec = f"?{CODEC}={parsed.options[CODEC]}" if CODEC in parsed.options else ""
    inside = f"{parsed.protocol}+memory://weirpool-record-{os.getpid()}{codec}"
    mimes: dict[str, Any] = {"data_mime": options.data_mime, "metadata_mime": options.metadata_mime}
    settings = Settings(**{name: mime for name, mime in mimes.items() if mime is not None})
    counters = Counters()
    within = _bridge(recorder, [inside], bridged, counters=counters)
    async with stop_signal() as stopped, asyncio.timeout(options.timeout), within:
        async with connect(inside, settings=settings) as peer:
            running = asyncio.ensure_future(use(peer))
            try:
                await asyncio.wait((running, stopped), return_when=asyncio.FIRST_COMPLETED)
                if running.done():
                    running.result()
            except Rejected as error:
                if counters.upstream_connects == 0:
                    raise ConnectError(error.message) from error
                raise
            except ApplicationError as error:
                # To this side of the bridge, the end of the other connection is an error of the request.
                if counters.upstream_losses:
                    raise LinkLost(error.message) from error
                raise
            finally:
                running.cancel()
                await asyncio.wait((running,))
            if stopped.done():
                await peer.close(0)
    return stopped.done()


def _bridge(recorder: Recorder, urls: list[str], bridged: dict[str, Any], **more: Any) -> Server:
    from ..bridging.bridge import bridge

    arguments = dict(bridged)
    return bridge(arguments.pop("to"), *urls, watch=recorder.watch, **arguments, **more)


def _report(recorder: Recorder, path: Path) -> None:
    note(f"recorded {counted(recorder.streams, 'request')}, {counted(recorder.events, 'event')} in {path}")
