"""Streams that saturate a server, and the latency of calls meanwhile: what is common to all peers."""

from __future__ import annotations

import asyncio
import resource
import time
from abc import abstractmethod

PAUSE = 0.002
"""Seconds between two calls, so that calls themselves are no load."""


class Load:
    """The base of clients.

    Attributes:
        received: Items received on all streams.

    """

    def __init__(self) -> None:
        self.received = 0
        self.tasks: list[asyncio.Task[None]] = []

    @abstractmethod
    async def call(self) -> None:
        """Make a call."""

    @abstractmethod
    async def read(self, number: int, own: bool) -> None:
        """Open a stream, over a connection of its own or over the one of the client, and read it until canceled."""

    async def saturate(self, streams: int, own: bool) -> None:
        """Read some streams from now on, and return soon after each has begun."""
        for number in range(streams):
            self.tasks.append(asyncio.create_task(self.read(number, own)))
            if own:
                await asyncio.sleep(0)

    async def count(self) -> dict[str, float]:
        """Return the items that were received so far."""
        return {"received": self.received, "failed": sum(task.done() for task in self.tasks)}

    async def stop(self) -> None:
        """Stop reading."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        self.tasks.clear()

    async def latencies(self, seconds: float) -> dict[str, list[float]]:
        """Make calls, one after another; return the seconds that each took."""
        found = []
        end = time.perf_counter() + seconds
        while (begun := time.perf_counter()) < end:
            await self.call()
            found.append(time.perf_counter() - begun)
            await asyncio.sleep(PAUSE)
        return {"latencies": found}


def raise_file_limit() -> None:
    """Allow this process as many open files as the system does."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
