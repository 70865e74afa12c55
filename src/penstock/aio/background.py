"""Work that waits for the disk, in threads: the event loop goes on meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

__all__ = ["Background"]

THREADS: Final = 4
"""Logs that are synced at the same time: a file system writes several down at about the price of one."""


class Background:
    """Runs work in a few threads. Make it, and use it, in the event loop that shall hear of the ends.

    Its method :meth:`run` is a `penstock.session.Run`. Await :meth:`ended` when no more is to come.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._threads = ThreadPoolExecutor(THREADS, "penstock-disk")
        self._pending: set[asyncio.Future[None]] = set()

    def run(self, work: Callable[[], None], done: Callable[[Exception | None], None]) -> None:
        """Call `work` in a thread, then `done` in the event loop, with what `work` raised, or None."""
        future = self._loop.run_in_executor(self._threads, work)
        self._pending.add(future)
        future.add_done_callback(partial(self._done, done))

    def _done(self, done: Callable[[Exception | None], None], future: asyncio.Future[None]) -> None:
        self._pending.discard(future)
        error = future.exception()
        if error is not None and not isinstance(error, Exception):
            raise error
        done(error)

    async def ended(self) -> None:
        """Wait until all work is done and told of, then end the threads."""
        while self._pending:
            await asyncio.wait(self._pending)
        self._threads.shutdown()
