"""`penstock channel`: any number of items each way."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

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
    read_lines,
    tls_context,
)
from .output import Printer


def channel(
    url: Url,
    route: Route,
    items: Annotated[str, typer.Argument(help="The items, a line each: @FILE, - for standard input, or the lines.")],
    data: Data = "",
    metadata: Metadata = None,
    json: Json = False,
    take: Take = None,
    credit: Credit = None,
    timeout: Timeout = None,
    cafile: CaFile = None,
    insecure: Insecure = False,
) -> None:
    """Send items, a line each, and print those that come back.

    Example: seq 10 | penstock channel rsocket+tcp://localhost:7878 double -
    """
    from ..aio.client import connect
    from ..aio.loop import run

    async def main() -> None:
        printer = Printer(json)
        count = 0
        async with asyncio.timeout(timeout), connect(url, ssl=tls_context(cafile, insecure)) as peer:
            extra = None if metadata is None else read_bytes(metadata)
            lines = read_lines(items)
            async with peer.channel(route, read_bytes(data), lines, metadata=extra, credit=credit) as answers:
                async for answer in answers:
                    printer.item(answer)
                    count += 1
                    if count == take:
                        break

    run(main())
