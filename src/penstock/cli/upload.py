"""`penstock upload`: any number of items, and one item back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .arguments import Lines, Route, Url
from .bodies import bodies_of
from .connect_options import ConnectOptions
from .connection import ask
from .groups import grouped
from .lines import ItemOptions
from .output import OutputOptions
from .request_options import RequestOptions

if TYPE_CHECKING:
    from ..aio.peer import Peer
    from ..payload import Payload


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

    Example: seq 10 | penstock upload rsocket+tcp://localhost:7878 sum -
    """
    printer = output.printer(url)
    source = bodies_of(url).items(sending.source(items))

    async def use(peer: Peer, route: str, payload: Payload) -> None:
        printer.item(await peer.upload(route, payload, source))

    ask(url, route, request, options, use)
