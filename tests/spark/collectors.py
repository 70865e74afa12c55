"""A collector that listens, on a thread of its own: what sends to it runs an event loop itself."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from weirpool.aio.server import serve
from weirpool.journal import Journal
from weirpool.receiving.receiver import Receiver

from .threads import on_a_thread

__all__ = ["held", "listening"]


def listening(journal: Path, url: str = "rsocket+tcp://127.0.0.1:0", **options: Any) -> AbstractContextManager[str]:
    """Receive rows for the route "rows" into a journal while the block runs; yields the URL."""
    return on_a_thread(_listening(journal, url, options))


@asynccontextmanager
async def _listening(journal: Path, url: str, options: dict[str, Any]) -> AsyncIterator[str]:
    async with Receiver(journal, ["rows"], **options) as receiver, serve(receiver.service, url) as server:
        yield server.urls[0]


def held(journal: Path) -> list[bytes]:
    """Return the rows that were received."""
    reader = Journal(journal).reader("rows")
    return [value for batch in reader.read(0, reader.end) for value in batch["data"].to_pylist()]
