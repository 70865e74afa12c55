"""Weirpool from a publisher to a journal: a stream item by item, and a collector that syncs each batch."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from weirpool.journal.collect import Collector

from .publisher import serving

__all__ = ["Client", "connected", "serving"]

BUDGET_BYTES = 1 << 34


class Client:
    def __init__(self, address: str) -> None:
        self.address = address

    async def collect(self, route: str, data: str, journal: str, source: str) -> dict[str, int]:
        """Collect a stream into a log, until its last row is on the disk."""
        collector = Collector(
            self.address, route, journal, source=source, data=data.encode(), budget_bytes=BUDGET_BYTES
        )
        await collector.run()
        return {"rows": collector.progress.rows}


@asynccontextmanager
async def connected(address: str, tuned: bool) -> AsyncIterator[Client]:
    yield Client(address)
