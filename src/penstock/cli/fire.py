"""`penstock fire`: one item there, nothing back."""

from __future__ import annotations

import asyncio

from .arguments import CaFile, Data, Insecure, Metadata, Route, Timeout, Url, read_bytes, tls_context


def fire(
    url: Url,
    route: Route,
    data: Data = "",
    metadata: Metadata = None,
    timeout: Timeout = None,
    cafile: CaFile = None,
    insecure: Insecure = False,
) -> None:
    """Send one item; nobody learns what becomes of it.

    Example: penstock fire rsocket+tcp://localhost:7878 log -d 'hello'
    """
    from ..aio.client import connect
    from ..aio.loop import run

    async def main() -> None:
        async with asyncio.timeout(timeout), connect(url, ssl=tls_context(cafile, insecure)) as peer:
            extra = None if metadata is None else read_bytes(metadata)
            await peer.fire(route, read_bytes(data), metadata=extra)

    run(main())
