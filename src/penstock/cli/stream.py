"""`penstock stream`: one item there, any number back."""

from __future__ import annotations

import asyncio

from .arguments import (
    CaFile,
    Credit,
    Data,
    Insecure,
    Json,
    Metadata,
    Route,
    Take,
    Timeout,
    Url,
    read_bytes,
    tls_context,
)
from .output import Printer


def stream(
    url: Url,
    route: Route,
    data: Data = "",
    metadata: Metadata = None,
    json: Json = False,
    take: Take = None,
    credit: Credit = None,
    timeout: Timeout = None,
    cafile: CaFile = None,
    insecure: Insecure = False,
) -> None:
    """Send one item and print those that come back, until they end or --take are printed.

    Example: penstock stream rsocket+tcp://localhost:7878 quotes.live --credit 64 --take 1000 --json
    """
    from ..aio.client import connect
    from ..aio.loop import run
    from ..aio.streams import Stream

    async def main() -> None:
        async with asyncio.timeout(timeout), connect(url, ssl=tls_context(cafile, insecure)) as peer:
            extra = None if metadata is None else read_bytes(metadata)
            async with peer.stream(route, read_bytes(data), metadata=extra, credit=credit) as items:
                await print_items(items)

    async def print_items(items: Stream) -> None:
        printer = Printer(json)
        count = 0
        async for item in items:
            printer.item(item)
            count += 1
            if count == take:
                break

    run(main())
