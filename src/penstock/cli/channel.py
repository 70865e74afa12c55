"""`penstock channel`: any number of items in each direction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .arguments import Credit, Interval, Lines, Route, Take, Url
from .bodies import bodies_of
from .connect_options import ConnectOptions
from .connection import ask, print_items
from .groups import grouped
from .lines import ItemOptions
from .output import OutputOptions
from .request_options import RequestOptions

if TYPE_CHECKING:
    from ..aio.peer import Peer
    from ..payload import Payload


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

    Example: seq 10 | penstock channel rsocket+tcp://localhost:7878 double - --delay 0.5
    """
    printer = output.printer(url)
    source = bodies_of(url).items(sending.source(items))

    async def use(peer: Peer, route: str, payload: Payload) -> None:
        await print_items(peer.channel(route, payload, source, credit=credit), printer, take, interval)

    ask(url, route, request, options, use)
