"""`penstock channel`: any number of items each way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .arguments import CaFile, Credit, Data, Insecure, Json, Lines, Metadata, Retry, Route, Take, Timeout, Url
from .bodies import bodies_of
from .connection import print_items, request_of, with_peer
from .lines import lines_of

if TYPE_CHECKING:
    from ..aio.peer import Peer


def channel(
    url: Url,
    route: Route,
    items: Lines,
    data: Data = "",
    metadata: Metadata = None,
    json: Json = False,
    take: Take = None,
    credit: Credit = None,
    retry: Retry = 0,
    timeout: Timeout = None,
    cafile: CaFile = None,
    insecure: Insecure = False,
) -> None:
    """Send items, a line each, and print those that come back.

    Example: seq 10 | penstock channel rsocket+tcp://localhost:7878 double -
    """
    bodies = bodies_of(url)
    request, lines = bodies.outgoing(request_of(data, metadata)), bodies.lines(lines_of(items))

    async def use(peer: Peer) -> None:
        await print_items(peer.channel(route, request, lines, credit=credit), json, take, bodies)

    with_peer(url, use, retry=retry, timeout=timeout, cafile=cafile, insecure=insecure)
