"""`penstock stream`: one item, and any number of items back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from .arguments import Credit, Interval, Route, Take, Url
from .connect_options import ConnectOptions
from .connection import ask, print_items
from .groups import grouped
from .output import OutputOptions
from .request_options import RequestOptions

if TYPE_CHECKING:
    from ..aio.peer import Peer
    from ..payload import Payload


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
        bool,
        typer.Option("--endless", help="Request a stream without an expected end (ReactiveSocket 0.0: REQUEST_SUB)."),
    ] = False,
) -> None:
    """Send one item and print the items of the stream, until it ends or --take items are printed.

    Example: penstock stream rsocket+tcp://localhost:7878 quotes.live --credit 64 --take 1000 --json

    Example: penstock stream reactivesocket-0.0+tcp://localhost:7878 quotes.live --endless --interval 0.5
    """
    printer = output.printer(url)

    async def use(peer: Peer, route: str, payload: Payload) -> None:
        await print_items(peer.stream(route, payload, credit=credit, endless=endless), printer, take, interval)

    ask(url, route, request, options, use)
