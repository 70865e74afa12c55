"""Weirpool's collector with many feeds in one process: each feed has a connection and a log of its own."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from time import process_time

from weirpool.journal.collect import Collector
from weirpool.journal.committer import Committer

from .publisher import TICK, serving

__all__ = ["Client", "connected", "serving"]

SETTLE_SECONDS = 2.0


class Client:
    def __init__(self, address: str) -> None:
        self.address = address

    async def feeds(self, count: int, rate: int, seconds: float) -> dict[str, float]:
        """Collect `count` feeds into one journal, and return the rows and the CPU seconds of a window in the middle."""
        with tempfile.TemporaryDirectory(prefix="weirpool-bench-") as folder:
            committer = Committer(Path(folder))
            collectors = [
                Collector(
                    self.address, "paced", folder, source=f"feed-{number}", data=b"%d" % rate, committer=committer
                )
                for number in range(count)
            ]
            tasks = [asyncio.create_task(collector.run()) for collector in collectors]
            while min(each.progress.rows for each in collectors) < rate:  # noqa: ASYNC110
                await asyncio.sleep(TICK)
            await asyncio.sleep(SETTLE_SECONDS)
            rows, cpu = sum(each.progress.rows for each in collectors), process_time()
            await asyncio.sleep(seconds)
            rows, cpu = sum(each.progress.rows for each in collectors) - rows, process_time() - cpu
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await committer.close()
        return {"rows": rows, "cpu_used": cpu}


@asynccontextmanager
async def connected(address: str, tuned: bool) -> AsyncIterator[Client]:
    yield Client(address)
