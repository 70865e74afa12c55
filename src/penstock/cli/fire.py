"""`penstock fire`: one item there, nothing back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .arguments import CaFile, Data, Insecure, Metadata, Retry, Route, Timeout, Url
from .connection import request_of, with_peer

if TYPE_CHECKING:
    from ..aio.peer import Peer


def fire(
    url: Url,
    route: Route,
    data: Data = "",
    metadata: Metadata = None,
    retry: Retry = 0,
    timeout: Timeout = None,
    cafile: CaFile = None,
    insecure: Insecure = False,
) -> None:
    """Send one item; nobody learns what becomes of it.

    Example: penstock fire rsocket+tcp://localhost:7878 log -d 'hello'
    """
    request = request_of(data, metadata)

    async def use(peer: Peer) -> None:
        await peer.fire(route, request)

    with_peer(url, use, retry=retry, timeout=timeout, cafile=cafile, insecure=insecure)
