"""The driver's view of the journal: its sources, and the rows of each."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from pathlib import Path

from ..errors import DataLost, JournalError, JournalMissing, LocalError
from ..journal.journal import Journal
from ..journal.layout import IDENTITY, LOCK, Extent, is_served, log_folder, source_folder
from ..journal.ports import LogReader
from ..journal.since import first_since
from .options import SourceOptions
from .places import Start, is_time
from .watch import Watch

__all__ = ["JournalView", "reaches"]

REMOTE_SECONDS = 1.0
"""Seconds between reads of a remote journal: each costs some requests."""


class JournalView:
    """The sources that a query reads. Nothing is read before the first `refresh`.

    An unreadable log does not prevent the others from being read.

    Args:
        options: The query's options.
        clock: Returns the time in seconds, for the pauses between reads of a remote journal.

    Attributes:
        readers: A reader for each source that was readable at the last refresh, by name.
        troubles: The errors of the other sources, by name.
        trouble: The error of the journal itself at the last refresh; None if there was none.
        awaited: Sources whose collector has no row yet: they have no log, and were never read.
        seen: Sources that this view could read before.
        expected: More sources to look for, in addition to existing ones.

    """

    def __init__(self, options: SourceOptions, clock: Callable[[], float] = time.monotonic) -> None:
        self.readers: dict[str, LogReader] = {}
        self.troubles: dict[str, JournalError] = {}
        self.trouble: JournalError | None = None
        self.awaited: set[str] = set()
        self.seen: set[str] = set()
        self.expected: Collection[str] = ()
        self._options = options
        self._journal = Journal(options.journal)
        # A collector announces new rows by itself.
        self._slow = options.remote and not is_served(options.journal)
        self._clock = clock
        self._next_refresh = float("-inf")
        self._watch = None if options.remote else Watch(options.journal)
        self._files: dict[str, tuple[int, int]] = {}

    def refresh(self) -> None:
        """Read what was appended since the last time, and which sources appeared or disappeared.

        It raises `JournalMissing` if there is no such journal, or no source in it, and `JournalError` if it cannot be
        reached.
        """
        if self._slow and self._clock() < self._next_refresh:
            return
        try:
            names = self._names()
        except JournalError as error:
            self.readers, self.troubles, self.awaited, self.trouble = {}, {}, set(), error
            raise
        readers: dict[str, LogReader] = {}
        self.troubles, self.awaited, self.trouble = {}, set(), None
        for source in names:
            try:
                readers[source] = self._refreshed(source)
            except JournalMissing:
                if self._is_awaited(source):
                    self.awaited.add(source)
                else:
                    self.troubles[source] = self._missing(source)
            except JournalError as error:
                self.troubles[source] = error
        self.readers = readers
        self.seen.update(readers)
        self._next_refresh = self._clock() + REMOTE_SECONDS

    def may_have_changed(self) -> bool:
        """Return True if `refresh` may find something new in a readable log, or another log. It costs little."""
        if self._watch is None:
            # A collector announces new rows, so looking costs nothing.
            return not self._slow or self._clock() >= self._next_refresh
        return self._watch.sees_change(self.readers, names=self._options.sources is None)

    def _names(self) -> Collection[str]:
        """Return the sources to look for: the named ones; otherwise those that exist, or should."""
        if self._options.sources is not None:
            return self._options.sources
        present = self._journal.sources() if self._watch is None else self._watch.names()
        names = {*present, *self.seen, *self.expected}
        if self._options.pattern is not None:
            names = set(filter(self._options.reads, names))
        if not names:
            which = f"whose name matches {self._options.pattern}" if present else "in it"
            raise JournalMissing(
                f"journal {self._options.journal} has no source {which}: check the path and the mount, or run "
                "`weirpool collect` first"
            )
        return sorted(names)

    def _refreshed(self, source: str) -> LogReader:
        """Return an updated reader of a source."""
        reader = self.readers.get(source)
        unchanged = self._watch is not None and self._watch.is_unchanged(source)
        if unchanged and reader is not None:
            return reader
        file = self._identity_file(source)
        # Another file: the log was removed, or created again.
        if reader is None or file != self._files.get(source):
            reader = self._journal.reader(source)
            self._files[source] = file
        else:
            reader.refresh()
        return reader

    def _is_awaited(self, source: str) -> bool:
        """Return True if a source has, or had, a collector that waits for the first row."""
        if source in self.seen or source in self.expected:
            return False
        if self._options.remote:
            return not self._slow and self._journal.is_awaited(source)
        return Path(log_folder(self._options.journal, source), LOCK).exists()

    def _missing(self, source: str) -> JournalMissing:
        try:
            present = [name for name in self._journal.sources() if name != source]
        except JournalMissing as error:
            return error
        except JournalError:
            present = []
        there = f"; its sources are {', '.join(present)}" if present else ""
        known = source in self.seen or source in self.expected
        remedy = (
            "; if it was removed permanently, name the remaining ones with the option source"
            if known
            else ", or run `weirpool collect` first"
        )
        return JournalMissing(
            f"journal {self._options.journal} has no source {source!r} in it{there}: check the path and the mount"
            f"{remedy}"
        )

    def _identity_file(self, source: str) -> tuple[int, int]:
        """Return an identifier of a log's identity file, at the cost of one system call."""
        if self._options.remote:
            return (0, 0)
        try:
            status = os.stat(f"{self._options.journal}/{source_folder(source)}/{IDENTITY}")
        except OSError:
            return (0, 0)
        return status.st_ino, status.st_mtime_ns

    def reader(self, source: str) -> LogReader:
        """Return a source's reader; if it cannot be read, raise the error with the reason."""
        reader = self.readers.get(source)
        if reader is None:
            raise self.troubles.get(source) or self.trouble or self._missing(source)
        return reader

    def logs(self) -> dict[str, str]:
        """Return the UUID of each source's log."""
        return {source: reader.uuid for source, reader in self.readers.items()}

    def position(self, source: str, place: int | str) -> int:
        """Return the current position of a start or end in a readable source.

        The place is a position; "earliest", "latest", or a time, for the first row that was received since. It raises
        `DataLost` if the source ends before it, and `JournalError` if the rows around that time cannot be reached.
        """
        reader = self.readers[source]
        if place == "earliest":
            # A log that is only trimmed counts as unchanged.
            if self._watch is not None:
                reader.refresh()
            return reader.first
        if place == "latest":
            return reader.end
        if isinstance(place, str):
            return first_since(reader, datetime.fromisoformat(place))
        self.require_end(source, place)
        return place

    def start(self, source: str, place: int | str) -> int:
        """Return the current position of a place where a query starts for the first time; as `position`.

        It raises `LocalError` if the place is a time, no row was received since, and the options require one.
        """
        position = self.position(source, place)
        strict = self._options.require_rows_since and isinstance(place, str) and is_time(place)
        if strict and position == self.readers[source].end:
            raise LocalError(
                f"source {source!r} has no row that was received since {place}, and "
                "startingOffsetsByTimestampStrategy is error; start earlier, or set it to latest"
            )
        return position

    def require_end(self, source: str, position: int) -> None:
        """Check that a source is long enough for a position; `DataLost` if it ends before it."""
        reaches(self._options.journal, self.readers[source], position)

    def ends(self) -> dict[str, int]:
        """Return the position after the last row of each source."""
        return {source: reader.end for source, reader in self.readers.items()}

    def size(self, source: str, first: int, end: int) -> int:
        """Estimate the bytes between two positions of a source."""
        return self.readers[source].bytes_between(first, end)

    def segments(self, source: str) -> list[Extent]:
        """Return the segments of a readable source, in order."""
        return self.readers[source].segments()

    def require_sources(self, places: Mapping[str, Start]) -> None:
        """Check that options name existing sources; `LocalError` if one does not exist.

        `places` has the value of each option: positions by source.
        """
        present = {*self.readers, *self.troubles, *self.awaited}
        for option, value in places.items():
            unknown = sorted(value.keys() - present) if isinstance(value, Mapping) else []
            if unknown:
                raise LocalError(
                    f'option "{option}" names source {unknown[0]!r}, which journal {self._options.journal} does not '
                    f"have; its sources are {', '.join(sorted(present))}"
                )


def reaches(journal: str, reader: LogReader, position: int) -> None:
    """Check that a log is long enough for a position; `DataLost` if it ends before it."""
    if position > reader.end:
        raise DataLost(
            f"source {reader.source!r} of journal {journal} ends at position {reader.end}, before {position}; "
            "restore the journal, or start again with another checkpoint, or other startingOffsets"
        )
