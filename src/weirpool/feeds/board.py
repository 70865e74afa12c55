"""The board: the newest statuses of all feeds, which one thread publishes and others read."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

import msgspec

from ..errors import JournalError
from ..journal.lag import age
from ..journal.reader import JournalReader
from .history import History
from .status import Document, FeedState, FeedStatus, Lag, ServedStatus
from .survey import end_of, survey

__all__ = ["Board"]

STALE_SECONDS: Final = 15.0
"""A loop that has published nothing for so long is stuck. Statuses are published every two seconds."""
FRESH_SECONDS: Final = 1.0
"""Readers and budgets are read from disk at most this often, however many ask."""

DISK_SECONDS: Final = 2.0
"""How long a reader of the board waits for another one that reads the disk."""


class Board:
    """The statuses of feeds. Thread-safe: `publish` never waits for `document`, which reads files.

    Args:
        workers: The number of loops that publish.
        clock: Returns the time in seconds since 1970.
        monotonic: Returns the time in seconds of a clock that nobody sets: health and rates depend on it.

    """

    def __init__(
        self,
        workers: int = 1,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._monotonic = monotonic
        # Guards the fields that `publish` writes, for moments only.
        self._lock = threading.Lock()
        self._published: list[list[FeedStatus]] = [[] for _ in range(workers)]
        self._begun = [False] * workers
        self._times = [monotonic()] * workers
        self._served: list[ServedStatus] = []
        self._problem = ""
        self._histories: dict[tuple[str, str], History] = {}
        # Guards the document, while files are read.
        self._reading = threading.Lock()
        self._document: Document | None = None
        self._logs: dict[tuple[str, str], JournalReader] = {}

    def publish(self, feeds: list[FeedStatus], worker: int = 0) -> None:
        """Replace the statuses of one loop. Call this at least every few seconds, also when nothing has changed."""
        now = self._monotonic()
        with self._lock:
            self._published[worker] = feeds
            self._begun[worker] = True
            self._times[worker] = now
            for feed in feeds:
                history = self._histories.setdefault((feed.journal, feed.source), History())
                if feed.position:
                    history.add(now, feed.position)
                else:
                    # The log may not be open yet: its rows would count as new ones.
                    history.renew(now)

    def serve(self, journals: list[ServedStatus]) -> None:
        """Replace the journals that are served."""
        with self._lock:
            self._served = journals

    def warn(self, problem: str) -> None:
        """Show what is wrong with the newest version of the whole file; empty: nothing is."""
        with self._lock:
            self._problem = problem

    def healthy(self) -> bool:
        """Return True if every loop has published lately, or may still be starting."""
        now = self._monotonic()
        with self._lock:
            return all(now - at < STALE_SECONDS for at in self._times)

    def document(self) -> Document:
        """Return all statuses, in the order of their names. It reads files, at most once a second.

        If the disk does not answer in time, the statuses are without readers and budgets.
        """
        now = self._clock()
        if not self._reading.acquire(timeout=DISK_SECONDS):
            return self._current(now, with_disk=False)
        try:
            if self._document is None or not 0 <= now - self._document.time < FRESH_SECONDS:
                self._document = self._current(now)
            return self._document
        finally:
            self._reading.release()

    def _current(self, now: float, *, with_disk: bool = True) -> Document:
        with self._lock:
            feeds = [msgspec.structs.replace(feed) for published in self._published for feed in published]
            started, served, problem = all(self._begun), self._served, self._problem
        feeds.sort(key=lambda feed: feed.name)
        if with_disk:
            for feed in feeds:
                self._complete(feed, now)
            self._forget(feeds)
        waiting = any(feed.state is FeedState.CONNECTING and not feed.reason for feed in feeds)
        ready = started and not waiting
        return Document.of(feeds, time=now, healthy=self.healthy(), ready=ready, served=served, problem=problem)

    def _complete(self, feed: FeedStatus, now: float) -> None:
        """Add what the log's folder says to a status."""
        if not feed.source:
            # Its configuration was never valid.
            return
        log = feed.journal, feed.source
        try:
            # A feed that has not opened its log does not know its end.
            feed.position = feed.position or end_of(*log)
            seen = survey(*log, feed.position)
        except JournalError as error:
            feed.problem = feed.problem or str(error)
            seen = None
        if seen is not None:
            feed.budget_free = max(0, feed.budget - seen.used)
            feed.readers = {
                name: Lag(at, max(0, feed.position - at), self._seconds(log, at, now) if at < feed.position else 0.0)
                for name, at in sorted(seen.readers.items())
            }
        with self._lock:
            feed.rate = self._histories.setdefault(log, History()).rate()

    def _seconds(self, log: tuple[str, str], position: int, now: float) -> float | None:
        """Return the age of the first row that a reader has not committed; of sealed rows, of the first one after."""
        try:
            reader = self._logs.get(log)
            if reader is None:
                reader = self._logs[log] = JournalReader(*log)
            else:
                reader.refresh()
        except JournalError:
            # It may remember what was repaired since.
            self._logs.pop(log, None)
            return None
        return age(reader, position, datetime.fromtimestamp(now, UTC))

    def _forget(self, feeds: list[FeedStatus]) -> None:
        """Drop what is known of feeds that are gone."""
        present = {(feed.journal, feed.source) for feed in feeds}
        for log in self._logs.keys() - present:
            del self._logs[log]
        with self._lock:
            for log in self._histories.keys() - present:
                del self._histories[log]
