"""`penstock upload`: any number of items there, one back."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from .arguments import CaFile, Data, Insecure, Json, Metadata, Route, Timeout, Url, read_bytes, read_lines, tls_context
from .output import Printer


def upload(
    url: Url,
    route: Route,
    items: Annotated[str, typer.Argument(help="The items, a line each: @FILE, - for standard input, or the lines.")],
    data: Data = "",
    metadata: Metadata = None,
    json: Json = False,
    timeout: Timeout = None,
    cafile: CaFile = None,
    insecure: Insecure = False,
) -> None:
    r"""Send items, a line each, and print the one that comes back for all of them.

    Example: seq 10 | penstock upload rsocket+tcp://localhost:7878 sum -
    """
    from ..aio.client import connect
    from ..aio.loop import run

    async def main() -> None:
        async with asyncio.timeout(timeout), connect(url, ssl=tls_context(cafile, insecure)) as peer:
            extra = None if metadata is None else read_bytes(metadata)
            lines = read_lines(items)
            Printer(json).item(await peer.upload(route, read_bytes(data), lines, metadata=extra))

    run(main())
