"""`weirpool call`, `stream`, `fire`, `upload`, `channel` and `push`: each connects, sends one request and closes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from .arguments import Credit, Route, Url
from .bodies import bodies_of
from .connect_options import ConnectOptions
from .connection import ask, print_items, with_peer
from .groups import grouped
from .lines import ItemOptions, paced
from .output import OutputOptions
from .request_options import RequestOptions
from .values import duration, read_bytes

if TYPE_CHECKING:
    from ..aio.peer import Peer
    from ..payload import Payload

__all__ = ["call", "channel", "fire", "push", "stream", "upload"]

Lines = Annotated[str, Argument(help="The items, one per line: the text itself, @FILE, or - for standard input.")]
Interval = Annotated[
    float,
    Option("--interval", metavar="SECONDS", parser=duration(), help="Pause between items or repetitions, in seconds."),
]
Repeat = Annotated[int, Option("--repeat", metavar="N", min=1, help="Repeat N times, sequentially.")]
Take = Annotated[int | None, Option("--take", metavar="N", min=1, help="Stop after N items.")]


@grouped
def call(
    url: Url,
    route: Route,
    request: RequestOptions,
    output: OutputOptions,
    options: ConnectOptions,
    repeat: Repeat = 1,
    interval: Interval = 0,
) -> None:
    """Send one item and print the response.

    Example: weirpool call rsocket+tcp://localhost:7878 quotes.latest -d ACME

    Example: weirpool call rsocket+tls://localhost:7878 quotes.latest --auth bearer:@token.txt --debug
    """
    printer = output.printer(url, options)

    async def use(peer: Peer, route: str, payload: Payload) -> None:
        async for _ in paced(range(repeat), interval):
            printer.item(await peer.call(route, payload))

    ask(url, route, request, options, use)


@grouped
def stream(
    url: Url,
    route: Route,
    request: RequestOptions,
    output: OutputOptions,
    options: ConnectOptions,
    take: Take = None,
    credit: Credit = None,
    interval: Interval = 0,
    endless: Annotated[
        bool, Option("--endless", help="Request a stream without an expected end (ReactiveSocket 0.0: REQUEST_SUB).")
    ] = False,
    watch: Annotated[bool, Option("--watch", help="Show the newest items as a live table, with trends.")] = False,
) -> None:
    """Send one item and print the items of the stream, until it ends or --take items are printed.

    Example: weirpool stream rsocket+tcp://localhost:7878 quotes.live --credit 64 --take 1000 --json

    Example: weirpool stream reactivesocket-0.0+tcp://localhost:7878 quotes.live --endless --interval 0.5

    Example: weirpool stream rsocket+tcp://localhost:7878 quotes.live --watch
    """
    printer = output.printer(url, options)
    title = route

    async def use(peer: Peer, route: str, payload: Payload) -> None:
        items = peer.stream(route, payload, credit=credit, endless=endless)
        if watch:
            from .watch import watch_items

            await watch_items(items, title, bodies_of(url, options.data_mime), take, interval)
        else:
            await print_items(items, printer, take, interval)

    ask(url, route, request, options, use)


@grouped
def fire(
    url: Url,
    route: Route,
    request: RequestOptions,
    options: ConnectOptions,
    repeat: Repeat = 1,
    interval: Interval = 0,
) -> None:
    """Send one item without waiting for a response.

    Example: weirpool fire rsocket+tcp://localhost:7878 log -d 'hello' --repeat 3 --interval 1
    """

    async def use(peer: Peer, route: str, payload: Payload) -> None:
        async for _ in paced(range(repeat), interval):
            await peer.fire(route, payload)

    ask(url, route, request, options, use)


@grouped
def upload(
    url: Url,
    route: Route,
    items: Lines,
    sending: ItemOptions,
    request: RequestOptions,
    output: OutputOptions,
    options: ConnectOptions,
) -> None:
    """Send items, one per line, and print the one response.

    Example: seq 10 | weirpool upload rsocket+tcp://localhost:7878 sum -
    """
    printer = output.printer(url, options)
    source = bodies_of(url, options.data_mime).items(sending.source(items))

    async def use(peer: Peer, route: str, payload: Payload) -> None:
        printer.item(await peer.upload(route, payload, source))

    ask(url, route, request, options, use)


@grouped
def channel(
    url: Url,
    route: Route,
    items: Lines,
    sending: ItemOptions,
    request: RequestOptions,
    output: OutputOptions,
    options: ConnectOptions,
    take: Take = None,
    credit: Credit = None,
    interval: Interval = 0,
) -> None:
    """Send items, one per line, and print the items that come back.

    Example: seq 10 | weirpool channel rsocket+tcp://localhost:7878 double - --delay 0.5
    """
    printer = output.printer(url, options)
    source = bodies_of(url, options.data_mime).items(sending.source(items))

    async def use(peer: Peer, route: str, payload: Payload) -> None:
        await print_items(peer.channel(route, payload, source, credit=credit), printer, take, interval)

    ask(url, route, request, options, use)


@grouped
def push(
    url: Url,
    metadata: Annotated[str, Argument(help="The metadata: the text itself, @FILE, or - for standard input.")],
    options: ConnectOptions,
    repeat: Repeat = 1,
    interval: Interval = 0,
) -> None:
    """Send metadata for the whole connection without waiting for a response.

    Example: weirpool push rsocket+tcp://localhost:7878 'prices are late today'
    """
    data = read_bytes(metadata)

    async def use(peer: Peer) -> None:
        async for _ in paced(range(repeat), interval):
            await peer.push(data)

    with_peer(url, use, options)
