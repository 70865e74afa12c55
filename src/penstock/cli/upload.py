"""`penstock upload`: any number of items there, one back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .arguments import CaFile, Data, Insecure, Json, Lines, Metadata, Retry, Route, Timeout, Url
from .bodies import bodies_of
from .connection import request_of, with_peer
from .lines import lines_of
from .output import Printer

if TYPE_CHECKING:
    from ..aio.peer import Peer


def upload(
    url: Url,
    route: Route,
    items: Lines,
    data: Data = "",
    metadata: Metadata = None,
    json: Json = False,
    retry: Retry = 0,
    timeout: Timeout = None,
    cafile: CaFile = None,
    insecure: Insecure = False,
) -> None:
    """Send items, a line each, and print the one that comes back for all of them.

    Example: seq 10 | penstock upload rsocket+tcp://localhost:7878 sum -
    """
    bodies = bodies_of(url)
    request, lines = bodies.outgoing(request_of(data, metadata)), bodies.lines(lines_of(items))

    async def use(peer: Peer) -> None:
        Printer(json).item(bodies.incoming(await peer.upload(route, request, lines)))

    with_peer(url, use, retry=retry, timeout=timeout, cafile=cafile, insecure=insecure)
