"""A journal that collectors serve, in the form of `Journal` and `JournalReader`: for the drivers and tasks of Spark."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import lru_cache

import pyarrow as pa

from ..errors import JournalCorrupt, JournalMismatch
from ..journal.bounds import lost_rows
from ..journal.counts import check_span
from ..journal.gaps import Gap
from ..journal.layout import Extent, bytes_between, is_source
from .collectors import Collectors
from .messages import Describe, Description, LogState
from .mirror import Mirror
from .rows import read_rows

__all__ = ["RemoteJournal", "RemoteReader"]

MAX_JOURNALS = 64


class RemoteJournal:
    """A journal behind one collector or several, each with logs of its own."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.collectors = Collectors(url)
        self.mirror = Mirror(self.collectors)

    @classmethod
    def at(cls, url: str) -> RemoteJournal:
        """Return the journal at these URLs, separated by commas: the same object for the same URLs."""
        return _at(url)

    def sources(self) -> list[str]:
        """Return the names of the logs, in order; `JournalError` if a collector cannot be reached."""
        states = self.mirror.states().items()
        # Names are printed, and become folders of copies.
        return sorted(source for source, state in states if not state.awaited and is_source(source))

    def is_awaited(self, source: str) -> bool:
        """Return True if the log `source` has a collector that has received nothing yet."""
        state = self.mirror.states().get(source)
        return state is not None and state.awaited

    def reader(self, source: str) -> RemoteReader:
        """Return a reader of the log `source`."""
        return RemoteReader(self, source)


@lru_cache(MAX_JOURNALS)
def _at(url: str) -> RemoteJournal:
    return RemoteJournal(url)


# A child process has connections of its own, and locks that nobody holds.
os.register_at_fork(after_in_child=_at.cache_clear)


class RemoteReader:
    """A view of one log, as of its last `refresh`; it has the methods and errors of `JournalReader`. Not thread-safe.

    A refresh asks the collector the first time only. From then on, the collector tells what has changed.

    Attributes:
        uuid: The log's UUID.

    """

    def __init__(self, journal: RemoteJournal, source: str) -> None:
        self.source = source
        self._journal = journal
        self._extents: list[Extent] = []
        found = self._describe(Describe(source=source))
        self.uuid = found.uuid
        self.first = found.first
        self.end = found.end

    def refresh(self) -> None:
        """Take over what was appended and trimmed since the last time; errors as for `JournalReader.refresh`."""
        self._take(self._journal.mirror.state(self.source))

    def _take(self, state: LogState) -> None:
        if state.uuid != self.uuid:
            raise JournalMismatch(
                f"{self._journal.url}: the log {self.source!r} with the UUID {self.uuid} was deleted, and another one, "
                f"{state.uuid}, has its name; read that one from its beginning"
            )
        if state.end < self.end and self._describe().end < self.end:
            raise JournalCorrupt(
                f"{self._journal.url}: the log {self.source!r} ended at position {self.end} and now ends at "
                f"{state.end}: rows were removed; restore its files, or read it again from its beginning"
            )
        self.first, self.end = max(self.first, state.first), max(self.end, state.end)

    def read(
        self, start: int, end: int, *, columns: Sequence[str] | None = None, skip_records: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """Return the rows from `start` to before `end`, as `JournalReader.read` does.

        Each batch is checked here against the checksum that its writer computed. After the loss of a connection,
        reading continues where it was.
        """
        self._check(start, end)
        return read_rows(self._journal.collectors, self.source, self.uuid, (start, end), columns, skip_records)

    def locate(self, position: int) -> tuple[int, int]:
        """Return the first and the end position of the batch that contains a row; `DataLost` if it does not exist."""
        self._check(position, position + 1)
        batch = self._describe(locate=position).batch
        assert batch is not None
        return batch

    def segments(self, *, timed: bool = False) -> list[Extent]:
        """Return the rows and bytes of each segment, in order; the collector is asked for new ones only.

        With `timed` it is asked for all of them, with their times.
        """
        if timed:
            found = self._describe(segments=self.first, timed=True).segments or []
            return [Extent(*each) for each in found]
        if not self._extents or self._extents[-1].end < self.end:
            known = self._extents[:-1]
            found = self._describe(segments=known[-1].end if known else 0).segments or []
            self._extents = [*known, *(Extent(*each) for each in found)]
        return [extent for extent in self._extents if extent.end > self.first]

    def bytes_between(self, start: int, end: int) -> int:
        """Estimate the bytes of the rows from `start` to before `end`."""
        return bytes_between(self.segments(), start, end)

    def split(
        self, start: int, end: int, *, max_rows: int | None = None, max_bytes: int | None = None
    ) -> list[tuple[int, int]]:
        """Split a range into consecutive parts for workers, as `JournalReader.split` does."""
        self._check(start, end)
        return self._describe(split=(start, end, max_rows, max_bytes)).parts or []

    def gaps(self, start: int | None = None, end: int | None = None) -> list[Gap]:
        """Return the losses just before the rows from `start` to before `end`."""
        return self._describe(gaps=(start, end)).gaps or []

    def damage(
        self, start: int | None = None, end: int | None = None, *, records: bool = False
    ) -> list[tuple[int, int]]:
        """Return the damaged or missing positions from `start` to before `end` whose loss was not accepted."""
        return self._describe(damage=(start, end, records)).damage or []

    def _check(self, start: int, end: int) -> None:
        where = f"{self._journal.url}: source {self.source!r}"
        check_span(where, start, end)
        if end > self.end:
            found = self._describe()
            self.first, self.end = found.first, found.end
        if start < min(self.first, end):
            raise lost_rows(self, where, start, min(self.first, end))
        if end > self.end:
            raise lost_rows(self, where, max(start, self.end), end)

    def _describe(self, question: Describe | None = None, **parts: object) -> Description:
        asked = question or Describe(source=self.source, uuid=self.uuid, **parts)  # type: ignore[arg-type]
        found: Description = self._journal.collectors.call(self.source, "describe", asked, Description)
        return found
