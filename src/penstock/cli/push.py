"""`penstock push`: metadata for the connection as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from .arguments import Interval, Repeat, Url, read_bytes
from .connect_options import ConnectOptions
from .connection import with_peer
from .groups import grouped
from .pace import paced

if TYPE_CHECKING:
    from ..aio.peer import Peer


@grouped
def push(
    url: Url,
    metadata: Annotated[str, typer.Argument(help="The metadata: itself, @FILE, or - for standard input.")],
    options: ConnectOptions,
    repeat: Repeat = 1,
    interval: Interval = 0,
) -> None:
    """Send metadata that belongs to the connection as a whole; nobody learns what becomes of it.

    Example: penstock push rsocket+tcp://localhost:7878 'prices are late today'
    """
    octets = read_bytes(metadata)

    async def use(peer: Peer) -> None:
        async for _ in paced(range(repeat), interval):
            await peer.push(octets)

    with_peer(url, use, options)
