"""Notices what is appended to a journal, and which logs appear: for clients that would otherwise have to ask."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import AsyncGenerator
from concurrent.futures import Executor
from typing import Final

from ..errors import JournalError, JournalMissing
from ..journal.journal import Journal
from ..journal.layout import DURABLE, LOCK, log_folder
from ..journal.ports import LogReader
from .messages import LogState

__all__ = ["Watch", "states"]

logger = logging.getLogger("weirpool.serving")

MIN_SECONDS: Final = 0.01
"""The pause between looks while rows arrive."""
MAX_SECONDS: Final = 0.05
"""The same while none do: the delay of the first one after a pause."""
GROWTH: Final = 1.5
SHARE: Final = 10
"""Pauses are at least this many times as long as a look takes."""
SETTLED_SECONDS: Final = 0.1
"""A file system may give the same time to two changes of a file that are this close together."""


class Scan:
    """Looks at a journal again and again. Only logs whose files have changed are read."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._readers: dict[str, LogReader] = {}
        self._seen: dict[str, tuple[int, int]] = {}
        # The last look for earlier followers may not have ended.
        self._lock = threading.Lock()

    def look(self) -> dict[str, LogState]:
        """Return the state of each log; `JournalError` if the journal cannot be reached."""
        try:
            names = self._journal.sources()
        except JournalMissing:
            # Its collector has received nothing yet.
            names = []
        now = time.time_ns()
        with self._lock:
            return {source: self._state(source, now) for source in names}

    def _state(self, source: str, now: int) -> LogState:
        reader, changed = self._readers.get(source), self._changed(source)
        try:
            if reader is None:
                reader = self._readers[source] = self._journal.reader(source)
            elif changed != self._seen.get(source) or now - max(changed) < SETTLED_SECONDS * 1e9:
                reader.refresh()
        except JournalError as error:
            self._readers.pop(source, None)
            return self._unreadable(source, error)
        self._seen[source] = changed
        return LogState(source, reader.uuid, reader.first, reader.end)

    def _unreadable(self, source: str, error: JournalError) -> LogState:
        # A collector has created its lock, and nothing else so far.
        awaited = isinstance(error, JournalMissing) and (log_folder(self._journal.path, source) / LOCK).exists()
        return LogState(source, trouble=f"{type(error).__name__}: {error}", awaited=awaited)

    def _changed(self, source: str) -> tuple[int, int]:
        """Return when rows were appended, and when segments were added or trimmed."""
        folder = log_folder(self._journal.path, source)
        try:
            return os.stat(folder / DURABLE).st_mtime_ns, os.stat(folder).st_mtime_ns
        except OSError:
            return time.time_ns(), 0


def states(journal: Journal) -> list[LogState]:
    """Return the state of each log of a journal now."""
    return list(Scan(journal).look().values())


class Watch:
    """Tells its followers what changes in a journal. It looks only while there is one."""

    def __init__(self, journal: Journal, executor: Executor) -> None:
        self._scan = Scan(journal)
        self._executor = executor
        # Replaced, and never changed: each follower remembers the ones that it was told.
        self._states: dict[str, LogState] = {}
        self._followers: set[asyncio.Event] = set()
        self._task: asyncio.Task[None] | None = None
        self._looked = False

    async def changes(self) -> AsyncGenerator[list[LogState], None]:
        """Yield the states of all logs, then those that have changed since, as often as the caller asks."""
        told: dict[str, LogState] = {}
        news = asyncio.Event()
        self._followers.add(news)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())
        try:
            if self._looked:
                news.set()
            first = True
            while True:
                await news.wait()
                news.clear()
                gone = [
                    LogState(source, trouble=f"JournalMissing: {source} was removed")
                    for source in told.keys() - self._states.keys()
                ]
                changed = [state for source, state in self._states.items() if told.get(source) != state]
                tells = first or changed or gone
                # Before the caller has them: what changes meanwhile must be told next.
                first, told = False, self._states
                if tells:
                    yield changed + gone
        finally:
            self._followers.discard(news)
            if not self._followers and self._task is not None:
                self._task.cancel()
                self._task = None
                self._looked = False

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        pause = MIN_SECONDS
        failed = ""
        while True:
            began = loop.time()
            try:
                found = await loop.run_in_executor(self._executor, self._scan.look)
            except JournalError:
                # Its folder does not respond: readers get the error when they read.
                found = self._states
            except Exception as error:
                # A defect here must not leave all followers waiting for ever, nor fill the log.
                if repr(error) != failed:
                    logger.exception("a look at the journal has failed; more of them follow")
                failed = repr(error)
                found = self._states
            if found != self._states or not self._looked:
                self._states, self._looked = found, True
                pause = MIN_SECONDS
                for news in self._followers:
                    news.set()
            else:
                pause = min(pause * GROWTH, MAX_SECONDS)
            await asyncio.sleep(max(pause, SHARE * (loop.time() - began)))
