"""`penstock stream`: one item there, any number back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .arguments import CaFile, Credit, Data, Insecure, Json, Metadata, Retry, Route, Take, Timeout, Url
from .bodies import bodies_of
from .connection import print_items, request_of, with_peer

if TYPE_CHECKING:
    from ..aio.peer import Peer


def stream(
    url: Url,
    route: Route,
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
    """Send one item and print those that come back, until they end or --take are printed.

    Example: penstock stream rsocket+tcp://localhost:7878 quotes.live --credit 64 --take 1000 --json
    """
    bodies = bodies_of(url)
    request = bodies.outgoing(request_of(data, metadata))

    async def use(peer: Peer) -> None:
        await print_items(peer.stream(route, request, credit=credit), json, take, bodies)

    with_peer(url, use, retry=retry, timeout=timeout, cafile=cafile, insecure=insecure)
