"""Weirpool's collector: a stream of record batches into a journal, including fsync."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from weirpool.journal.collect import Collector

from .ours import serving

__all__ = ["connected", "serving"]


class Client:
    def __init__(self, address: str) -> None:
        self.address = address

    async def collect(self, count: int) -> None:
        """Collect a stream of `count` rows into a new journal, until its last row is on the disk."""
        with tempfile.TemporaryDirectory(prefix="weirpool-bench-") as folder:
            collector = Collector(self.address, "rows", folder, data=b"%d" % count)
            await collector.run()
        assert collector.progress.rows == count, f"{collector.progress.rows} of {count} rows"


@asynccontextmanager
async def connected(address: str, tuned: bool) -> AsyncIterator[Client]:
    yield Client(address)
