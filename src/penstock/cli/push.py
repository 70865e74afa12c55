"""`penstock push`: metadata for the whole connection."""

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
    metadata: Annotated[str, typer.Argument(help="The metadata: the text itself, @FILE, or - for standard input.")],
    options: ConnectOptions,
    repeat: Repeat = 1,
    interval: Interval = 0,
) -> None:
    """Send metadata for the whole connection without waiting for a response.

    Example: penstock push rsocket+tcp://localhost:7878 'prices are late today'
    """
    data = read_bytes(metadata)

    async def use(peer: Peer) -> None:
        async for _ in paced(range(repeat), interval):
            await peer.push(data)

    with_peer(url, use, options)
