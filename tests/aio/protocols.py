"""Every protocol, and peers over it whose data is typed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import weirpool
from weirpool import Peer, Service, Settings

__all__ = ["PROTOCOLS", "RIVER", "WITH_ITEMS", "serving"]

RIVER: Final = ("river-json", "river-msgpack")
PROTOCOLS: Final = ("rsocket", "reactivesocket-0.2", "reactivesocket-0.0", "reactive-streams", *RIVER)
WITH_ITEMS: Final = ("rsocket", "reactivesocket-0.2", *RIVER)
"""Those whose requests may be followed by items."""


@asynccontextmanager
async def serving(service: Service, protocol: str, mime: str = "application/json") -> AsyncIterator[Peer]:
    """Serve `service` over a protocol, with a codec if it is River, and yield a peer that reaches it."""
    name, _, codec = protocol.partition("-") if protocol in RIVER else (protocol, "", "")
    url = f"{name}+memory://all-protocols" + (f"?codec={codec}" if codec else "")
    settings = Settings() if codec else Settings(data_mime=mime)
    async with weirpool.serve(service, url, settings=settings), weirpool.connect(url, settings=settings) as peer:
        yield peer
