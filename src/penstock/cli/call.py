"""`penstock call`: one item in each direction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .arguments import Interval, Repeat, Route, Url
from .connect_options import ConnectOptions
from .connection import ask
from .groups import grouped
from .output import OutputOptions
from .pace import paced
from .request_options import RequestOptions

if TYPE_CHECKING:
    from ..aio.peer import Peer
    from ..payload import Payload


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

    Example: penstock call rsocket+tcp://localhost:7878 quotes.latest -d ACME

    Example: penstock call rsocket+tls://localhost:7878 quotes.latest --auth bearer:@token.txt --debug
    """
    printer = output.printer(url)

    async def use(peer: Peer, route: str, payload: Payload) -> None:
        async for _ in paced(range(repeat), interval):
            printer.item(await peer.call(route, payload))

    ask(url, route, request, options, use)
