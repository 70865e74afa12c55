"""A collector inside the query, for use on one machine: it runs on a thread next to Spark's driver."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
import time
from types import FrameType
from typing import Any, Final

from ..errors import JournalLocked, WeirpoolError
from .options import SourceOptions

__all__ = ["EmbeddedCollector"]

logger = logging.getLogger("weirpool.spark")

LOCK_PATIENCE: Final = 15.0
"""Seconds: the collector of a killed driver holds its log until its process has ended."""
LOCK_RETRY: Final = 0.2
STOP_SECONDS: Final = 5.0
"""The maximum time that Spark waits: an append to the journal is on disk within this time."""


class EmbeddedCollector:
    """Collects the stream of `url` and `route` into the one source of the query, starting with the first `run`."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._error: WeirpoolError | None = None
        self._stopping = threading.Event()
        self._previous: Any = None

    def run(self) -> None:
        """Start to collect on the first call; later, check that the collector still runs.

        Raises the error that stopped the collector.
        """
        if self._thread is None:
            self._thread = threading.Thread(target=self._collect, name="weirpool-collector", daemon=True)
            self._thread.start()
            self._stop_when_terminated()
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Stop the collector after received items are in the journal."""
        self._stopping.set()
        loop, task = self._loop, self._task
        if loop is not None and task is not None and not loop.is_closed():
            loop.call_soon_threadsafe(task.cancel)
        if self._thread is not None:
            self._thread.join(STOP_SECONDS)
        if (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGTERM) == self._terminated
        ):
            # The process may go on without this collector.
            signal.signal(signal.SIGTERM, self._previous)

    def _collect(self) -> None:
        deadline = time.monotonic() + LOCK_PATIENCE
        while not self._stopping.is_set():
            try:
                asyncio.run(self._main())
                return
            except asyncio.CancelledError:
                return
            except JournalLocked as error:
                if time.monotonic() > deadline:
                    self._error = error
                    return
                self._stopping.wait(LOCK_RETRY)
            except WeirpoolError as error:
                self._error = error
                return

    async def _main(self) -> None:
        # Only an embedded collector needs the network.
        from ..journal.collect import Collector

        options = self._options
        assert options.url is not None and options.route is not None and options.sources is not None
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        if self._stopping.is_set():
            return
        collector = Collector(
            options.url,
            options.route,
            options.journal,
            source=options.sources[0],
            data=options.data,
        )
        await collector.run()
        logger.info("the publisher has completed the stream %r", options.route)

    def _stop_when_terminated(self) -> None:
        """Close the journal when Spark ends this process, which it does only with SIGTERM."""
        if threading.current_thread() is not threading.main_thread():
            return
        previous = signal.signal(signal.SIGTERM, self._terminated)
        self._previous = signal.SIG_DFL if previous is None else previous

    def _terminated(self, number: int, frame: FrameType | None) -> None:
        self.stop()
        os.kill(os.getpid(), number)
