"""The journal as the driver sees it: which sources there are, and which rows each of them holds."""

from __future__ import annotations

import time
from collections.abc import Callable

from ..errors import DataLost, LocalError
from ..journal.journal import Journal
from ..journal.reader import JournalReader
from .options import SourceOptions

__all__ = ["JournalView"]

REMOTE_SECONDS = 1.0
"""Between looks at a journal that is not on this machine: Spark asks some eighty times a second."""


class JournalView:
    """The sources that a query reads. It looks at nothing before the first `refresh`.

    Args:
        options: Of the query.
        clock: Tells seconds, for the pauses between looks at a remote journal.

    Attributes:
        readers: A reader for each source, by name.

    """

    def __init__(self, options: SourceOptions, clock: Callable[[], float] = time.monotonic) -> None:
        self.readers: dict[str, JournalReader] = {}
        self._options = options
        self._journal = Journal(options.journal)
        self._clock = clock
        self._next_look = float("-inf")

    def refresh(self) -> None:
        """See what was appended since the last time, and which sources came.

        Raises:
            JournalCorrupt: The end of a log is damaged.
            JournalError: The journal cannot be reached.

        """
        if self._options.remote and self._clock() < self._next_look:
            return
        for reader in self.readers.values():
            reader.refresh()
        for source in self._sources():
            if source not in self.readers:
                self.readers[source] = self._journal.reader(source)
        self._next_look = self._clock() + REMOTE_SECONDS

    def _sources(self) -> tuple[str, ...] | list[str]:
        if self._options.sources is not None:
            return self._options.sources
        return self._journal.sources()

    def position(self, source: str, place: int | str) -> int:
        """Return the position that a place in a source means now.

        Raises:
            DataLost: The source ends before it.

        """
        reader = self.readers[source]
        if place == "earliest":
            return reader.first
        if place == "latest":
            return reader.end
        if int(place) > reader.end:
            raise DataLost(
                f"source {source!r} of journal {self._options.journal} ends at position {reader.end}, before {place}; "
                "restore the journal, or begin anew: delete the checkpoint, or change startingOffsets"
            )
        return int(place)

    def ends(self) -> dict[str, int]:
        """Return the position behind the last row of each source."""
        return {source: reader.end for source, reader in self.readers.items()}

    def size(self, source: str, first: int, end: int) -> int:
        """Estimate the bytes between two positions of a source."""
        return self.readers[source].bytes_between(first, end)

    def require_rows(self) -> None:
        """Make sure that there is something to read, for those who will not wait for it.

        Raises:
            LocalError: A source is not there, or none is.

        """
        present = self._journal.sources()
        missing = [source for source in self.readers if source not in present]
        if missing or not present:
            what = f"source {missing[0]!r}" if missing else "a source"
            there = f"; there are {', '.join(present)}" if present else ""
            raise LocalError(
                f"journal {self._options.journal} has not {what} in it{there}: check the path, "
                "or run `penstock collect` first"
            )
