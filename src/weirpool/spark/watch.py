"""Tells which logs of a journal on a disk have changed, at the cost of one small read for each.

Spark asks for new rows all the time. A refreshed reader costs 100 microseconds and a listing of 10,000 sources 10
milliseconds, so both are done only where something happened. What is compared is the content of each log's mark, not
the time of its file: the clock of a file system is coarse, and a network file system caches it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

from ..journal.journal import Journal
from ..journal.layout import DURABLE, source_folder
from ..journal.mark import MAX_MARK_FILE_BYTES

__all__ = ["Watch"]

RECENT_NS = 2_000_000_000
"""Nanoseconds: a folder that changed so recently may change again without another time."""
LISTING_SECONDS = 10.0
"""Seconds after which the journal is listed again even so."""


class Watch:
    """The marks of logs when they were last read, and the names of all logs of a journal."""

    def __init__(self, journal: str) -> None:
        self._path = journal
        self._journal = Journal(journal)
        self._marks: dict[str, bytes | None] = {}
        self._files: dict[str, str] = {}
        self._names: list[str] = []
        self._listed: tuple[int, float] | None = None

    def names(self) -> list[str]:
        """Return the names of the logs, in order; a `JournalError` like that of `Journal.sources`."""
        if self._names_changed():
            self._listed = None
            changed, listed = self._changed_ns(), time.monotonic()
            self._names = self._journal.sources()
            if changed is not None and abs(time.time_ns() - changed) > RECENT_NS:
                self._listed = changed, listed
        return self._names

    def is_unchanged(self, source: str) -> bool:
        """Return True if a log is as it was when this was last called for it. If it is not, read it now."""
        before, self._marks[source] = self._marks.get(source), self._mark(source)
        return before is not None and before == self._marks[source]

    def sees_change(self, sources: Iterable[str], *, names: bool) -> bool:
        """Return True if one of these logs has changed since it was read; with `names`, also if the names may have."""
        if names and self._names_changed() and self._names != self._journal.sources():
            return True
        return any(self._marks.get(source) is None or self._mark(source) != self._marks[source] for source in sources)

    def _names_changed(self) -> bool:
        if self._listed is None:
            return True
        changed, listed = self._listed
        return self._changed_ns() != changed or time.monotonic() - listed > LISTING_SECONDS

    def _changed_ns(self) -> int | None:
        try:
            return os.stat(self._path).st_mtime_ns
        except OSError:
            return None

    def _mark(self, source: str) -> bytes | None:
        """Return the content of a log's mark; None if it has none, or if it cannot be read."""
        path = self._files.get(source)
        if path is None:
            path = self._files[source] = f"{self._path}/{source_folder(source)}/{DURABLE}"
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            return os.read(descriptor, MAX_MARK_FILE_BYTES)
        except OSError:
            return None
        finally:
            os.close(descriptor)
