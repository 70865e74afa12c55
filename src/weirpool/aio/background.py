"""Runs blocking disk work in threads, so that the event loop is not blocked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

__all__ = ["Background"]

THREADS: Final = 4
"""Logs that are synced concurrently: a file system commits several at about the cost of one."""


class Background:
    """Runs work in a few threads. Create and use it in the event loop that calls `done`.

    Its method :meth:`run` is a `weirpool.session.Run`. Await :meth:`ended` after the last call of it.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._threads = ThreadPoolExecutor(THREADS, "weirpool-disk")
        self._pending: set[asyncio.Future[None]] = set()

    def run(self, work: Callable[[], None], done: Callable[[Exception | None], None]) -> None:
        """Call `work` in a thread, then `done` in the event loop with the error that `work` raised, or None."""
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
        """Wait until all work is done and each `done` was called, then end the threads."""
        while self._pending:
            await asyncio.wait(self._pending)
        self._threads.shutdown()
