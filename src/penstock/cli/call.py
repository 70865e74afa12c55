"""`penstock call`: one item there, one back."""

from __future__ import annotations

import asyncio

from .arguments import CaFile, Data, Insecure, Json, Metadata, Route, Timeout, Url, read_bytes, tls_context
from .output import Printer


def call(
    url: Url,
    route: Route,
    data: Data = "",
    metadata: Metadata = None,
    json: Json = False,
    timeout: Timeout = None,
    cafile: CaFile = None,
    insecure: Insecure = False,
) -> None:
    """Send one item and print the one that comes back.

    Example: penstock call rsocket+tcp://localhost:7878 quotes.latest -d ACME
    """
    from ..aio.client import connect
    from ..aio.loop import run

    async def main() -> None:
        async with asyncio.timeout(timeout), connect(url, ssl=tls_context(cafile, insecure)) as peer:
            extra = None if metadata is None else read_bytes(metadata)
            Printer(json).item(await peer.call(route, read_bytes(data), metadata=extra))

    run(main())
