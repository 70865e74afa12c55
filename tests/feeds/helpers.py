"""Files of feeds for tests, whose publisher is in memory."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from tests.journal.publishing import ROUTE, URL
from weirpool.feeds.board import Board
from weirpool.feeds.config import FeedConfig
from weirpool.feeds.file import FeedsFile, parse
from weirpool.feeds.retry import Retry
from weirpool.feeds.status import FeedStatus
from weirpool.feeds.values import Seconds
from weirpool.journal import Journal

__all__ = ["QUICK", "Announced", "config", "feeds", "items"]

QUICK = Retry(first=Seconds(0.001), longest=Seconds(0.001))


def config(folder: Path, **options: object) -> FeedConfig:
    """Return the configuration of a feed that tries again at once."""
    chosen = {"url": URL, "route": ROUTE, "journal": str(folder), "retry": QUICK} | options
    return FeedConfig(**chosen)


def feeds(folder: Path, *lines: str) -> FeedsFile:
    """Return a file whose feeds have one line each: a name, and then keys if there are some."""
    text = f'[defaults]\nurl = "{URL}"\nroute = "{ROUTE}"\njournal = "journal"\n'
    text += 'retry = {first = "1ms", longest = "1ms"}\n'
    for line in lines:
        name, _, keys = line.partition(" ")
        text += f"[feed.{name}]\n" + "".join(f"{key}\n" for key in keys.split("; ") if key)
    return parse(folder / "feeds.toml", text)


def items(journal: Path, source: str) -> list[bytes]:
    """Return the data of all rows of a log."""
    reader = Journal(journal).reader(source)
    return [value for batch in reader.read(reader.first, reader.end) for value in batch["data"].to_pylist()]


class Announced(Board):
    """A board that wakes a test when statuses are published."""

    def __init__(self, workers: int = 1) -> None:
        super().__init__(workers)
        self._event = asyncio.Event()

    def publish(self, feeds: list[FeedStatus], worker: int = 0) -> None:
        super().publish(feeds, worker)
        self._event.set()

    async def until(self, condition: Callable[[dict[str, FeedStatus]], bool]) -> None:
        """Wait for statuses that fulfil a condition. A test that waits too long is canceled."""
        while not condition({feed.name: feed for feed in self._current(time.time()).feeds}):
            self._event.clear()
            await self._event.wait()
