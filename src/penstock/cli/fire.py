"""`penstock fire`: one item, and no response."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .arguments import Interval, Repeat, Route, Url
from .connect_options import ConnectOptions
from .connection import ask
from .groups import grouped
from .pace import paced
from .request_options import RequestOptions

if TYPE_CHECKING:
    from ..aio.peer import Peer
    from ..payload import Payload


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

    Example: penstock fire rsocket+tcp://localhost:7878 log -d 'hello' --repeat 3 --interval 1
    """

    async def use(peer: Peer, route: str, payload: Payload) -> None:
        async for _ in paced(range(repeat), interval):
            await peer.fire(route, payload)

    ask(url, route, request, options, use)
