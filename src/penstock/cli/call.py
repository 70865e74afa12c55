"""`penstock call`: one item there, one back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .arguments import CaFile, Data, Insecure, Json, Metadata, Retry, Route, Timeout, Url
from .bodies import bodies_of
from .connection import request_of, with_peer
from .output import Printer

if TYPE_CHECKING:
    from ..aio.peer import Peer


def call(
    url: Url,
    route: Route,
    data: Data = "",
    metadata: Metadata = None,
    json: Json = False,
    retry: Retry = 0,
    timeout: Timeout = None,
    cafile: CaFile = None,
    insecure: Insecure = False,
) -> None:
    """Send one item and print the one that comes back.

    Example: penstock call rsocket+tcp://localhost:7878 quotes.latest -d ACME
    """
    bodies = bodies_of(url)
    request = bodies.outgoing(request_of(data, metadata))

    async def use(peer: Peer) -> None:
        Printer(json).item(bodies.incoming(await peer.call(route, request)))

    with_peer(url, use, retry=retry, timeout=timeout, cafile=cafile, insecure=insecure)
