"""The part of a streaming query that runs next to Spark's driver: it plans micro-batches and commits positions."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ..errors import JournalError, LocalError
from ..journal.coordinator import coordinator_of
from .cursor import Cursor
from .lag import report
from .minimum import MinimumRows
from .offsets import Offset, same_logs
from .options import SourceOptions
from .partitions import JournalPartition, Range, limit_bytes, limit_rows, split
from .places import STARTS
from .planning import Planner
from .polling import Poll
from .troubles import Troubles, is_temporary
from .view import JournalView

if TYPE_CHECKING:
    from .embedded import EmbeddedCollector

__all__ = ["SourceDriver"]

logger = logging.getLogger("weirpool.spark")

T = TypeVar("T")

Limits = tuple[int | None, int | None]
"""Rows and bytes."""
ALL_ROWS: Final[Limits] = (None, None)
"""The limits of a batch that ends the query."""


class SourceDriver:
    """Decides where micro-batches end, and which rows are in them.

    Temporary trouble, such as a disk or network that does not respond, never ends a query: there are then no new rows,
    and Spark asks again.
    """

    def __init__(self, options: SourceOptions) -> None:
        self.view = JournalView(options)
        self._options = options
        self._troubles = Troubles(options, self.view)
        self._planner = Planner(options, self.view)
        self._minimum = MinimumRows(options.min_rows, options.max_delay)
        self._poll = Poll(self.view.may_have_changed)
        self._cursor: Cursor | None = None
        self._coordinator = coordinator_of(options.journal)
        if options.reader is not None and options.trim and self._coordinator is not None:
            self._cursor = Cursor(options.journal, options.reader, options.retain_bytes)
        self._collector = _collector(options)
        self._targets: Mapping[str, int] | None = None
        self._planned: Mapping[str, int] = {}
        # A query without an id gets one: Spark stores it with the end of the first batch.
        self._id = uuid.uuid4().hex
        self._warned: str | None = None

    def stop_here(self) -> None:
        """Read only the rows that exist now, and no sources that appear later.

        A query that collects raises `LocalError`, because it would stop before the stream completes.
        """
        if self._collector is not None:
            raise LocalError(
                'with the option "url" a query collects while it runs, so it cannot end with the available rows: '
                "run it without an end, or run `weirpool collect` first and omit the option"
            )
        self._troubles.refresh(bounded=True)
        self._targets = self.view.ends()

    def latest(self, start: Offset, limits: Limits) -> Offset | None:
        """Do what `advance` does, and wait for a moment if there is nothing to read; see :mod:`.polling`."""
        end = self.advance(start, limits)
        if end is None and self._targets is None and limits != ALL_ROWS:
            for _ in self._poll.changes():
                end = self.advance(start, limits)
                if end is not None:
                    break
        if end is not None:
            self._poll.progress()
        self._planned = (end or start).positions
        return end

    def report(self) -> dict[str, Any] | None:
        """Return how far the query is behind the journal after the last planned micro-batch; None if unknown."""
        return report(self.view.readers, self._planned) if self.view.readers else None

    def advance(self, start: Offset, limits: Limits) -> Offset | None:
        """Return the end of the next micro-batch; None if there is nothing to read, or if this is unknown.

        Rows before `start` are committed, which is reported to the journal.

        Raises:
            JournalMismatch: The checkpoint belongs to another journal, or the reader's name to another query.
            JournalError: Rows are damaged or gone, and that ends the query.
            WeirpoolError: The collector inside the query has stopped.
            LocalError: Options name sources that do not exist.

        """
        opened = start.opened(datetime.now(UTC).isoformat())
        try:
            end = self._advance(start, opened, limits)
        except JournalError as error:
            # A run that ends with the data would take a missing answer for its end.
            if self._targets is not None or not is_temporary(error):
                raise
            self._troubles.wait_for(error)
            return self._unknown(start, opened)
        self._troubles.responds()
        return end

    def _advance(self, start: Offset, opened: Offset, limits: Limits) -> Offset | None:
        readable = self._refresh(start.positions)
        first = start.query is None
        self._collect(start)
        if not readable or not self.view.readers:
            return self._unknown(start, opened)
        if not start.positions and self._collector is None:
            self.view.require_sources({STARTS.name_of(self._options.starting): start.begun})
        position = self.view.start if first else self.view.position
        begun = {source: position(source, start.place(source)) for source in self._sources()}
        self._claim(start.query or self._id, begun, first=first, settled=not first)
        self.commit(start)
        ranges = self._next_ranges(begun, limits)
        if not self._options.fail_on_data_loss:
            ranges = {source: self._recordable(source, span) for source, span in ranges.items()}
        if self._options.fail_on_gap:
            ranges = self._planner.before_gaps(ranges, {**begun, **self._origins(start)})
        end = self._end(opened, begun, ranges)
        return None if end == start else end

    def _unknown(self, start: Offset, opened: Offset) -> Offset | None:
        """Return the end of a micro-batch if the journal cannot be read."""
        # The meaning of "latest" must not depend on when the journal appears: Spark stores the query's start.
        return self._end(opened, {}, {}) if start.query is None and _begins_latest(start) else None

    def _next_ranges(self, begun: Mapping[str, int], limits: Limits) -> dict[str, tuple[int, int]]:
        """Return the rows of the next micro-batch, as far as limits allow; empty ranges if it has to wait for more."""
        ends = self.view.ends() if self._targets is None else self._targets
        available = {source: (at, max(at, ends[source])) for source, at in sorted(begun.items())}
        ranges = self._limited(available, limits)
        if self._targets is None and limits != ALL_ROWS and self._minimum.holds_back(available, ranges):
            return {source: (at, at) for source, at in begun.items()}
        return ranges

    def _recordable(self, source: str, span: tuple[int, int]) -> tuple[int, int]:
        """Return a range, which is empty if losses in it could not be recorded."""
        if span[0] < span[1] and self._coordinator is not None:
            try:
                self._coordinator.recorded(source)
            except JournalError as error:
                self._troubles.skip_gaps(source, error, bounded=self._targets is not None)
                return span[0], span[0]
        return span

    def partitions(self, start: Offset, end: Offset) -> list[JournalPartition]:
        """Return the tasks that read the rows between two offsets; see `plan`."""
        ranges = self.plan(start, end)
        return self._insist(lambda: split(ranges, self._options.tasks, self.view.segments))

    def plan(self, start: Offset, end: Offset) -> list[Range]:
        """Return the rows between two offsets, without skipped ones, after waiting for a disk or network if necessary.

        Raises:
            JournalMismatch: The checkpoint belongs to another journal, or the reader's name to another query.
            JournalError: Rows are damaged or gone, or the journal is, and that ends the query.
            LocalError: These are not two offsets of one query.

        """
        return self._insist(lambda: self._plan(start, end))

    def _insist(self, work: Callable[[], T]) -> T:
        return self._troubles.insist(work, bounded=self._targets is not None)

    def _plan(self, start: Offset, end: Offset) -> list[Range]:
        ranges = start.ranges(end)
        self.view.expected = end.positions
        self._troubles.wait_until_readable(ranges)
        self._collect(end)
        places = {source: start.positions.get(source, end.origin(source)) for source in end.positions}
        standing = {source: int(at) for source, at in places.items() if source in self.view.readers}
        if end.query is not None:
            self._claim(end.query, standing, first=start.query is None, settled=True)
        return self._planner.plan(ranges, end)

    def commit(self, end: Offset) -> None:
        """Report to the journal that the query no longer needs the rows before this offset."""
        if self._cursor is None or not self._cursor.claimed:
            return
        try:
            self._cursor.commit(end.positions)
            self._warned = None
        except JournalError as error:
            if self._warned != str(error):
                logger.warning("%s; the journal is trimmed later", error)
            self._warned = str(error)

    def progress(self) -> None:
        """Note that the query has finished a micro-batch, perhaps of another source."""
        self._poll.progress()

    def stop(self) -> None:
        """Stop background work."""
        if self._collector is not None:
            self._collector.stop()
        if self._cursor is not None:
            self._cursor.release()

    def _refresh(self, expected: Collection[str]) -> bool:
        """Update the view of the journal; return whether it was readable."""
        self.view.expected = expected
        readable = self._troubles.refresh(bounded=self._targets is not None)
        if self._cursor is None and self.view.readers:
            self._warn_if_budget_is_not_freed()
        return readable

    def _collect(self, known: Offset) -> None:
        """Check that the logs are those of the checkpoint, and that the collector inside the query runs.

        The collector is not started if the checkpoint has a log that cannot be seen: it would create another one.
        """
        same_logs(self._options.journal, known.logs, self.view.logs())
        if self._collector is not None and known.logs.keys() <= self.view.readers.keys():
            self._collector.run()

    def _claim(self, query: str, positions: Mapping[str, int], *, first: bool, settled: bool) -> None:
        if self._cursor is not None:
            self._cursor.claim(query, positions, first=first, settled=settled)

    def _end(self, start: Offset, begun: Mapping[str, int], ranges: Mapping[str, tuple[int, int]]) -> Offset:
        """Return the end of a micro-batch, with "latest" resolved: it must not be resolved again after a crash."""
        resolved = {source: at for source, at in begun.items() if source not in start.positions}
        # A log that is not readable yet keeps the option's value.
        places = start.begun if isinstance(start.begun, dict) else {}
        logs = {source: self.view.readers[source].uuid for source in begun}
        return Offset(
            {**places, **self._origins(start), **resolved},
            {**start.positions, **{source: end for source, (_, end) in ranges.items()}},
            {**start.logs, **logs},
            start.query or self._id,
            start.since,
        )

    def _origins(self, start: Offset) -> dict[str, int | str]:
        return {source: start.origin(source) for source in start.positions}

    def _sources(self) -> list[str]:
        """Return the sources to read: all existing ones; in a bounded run, those that existed at its start."""
        return [source for source in self.view.readers if self._targets is None or source in self._targets]

    def _limited(self, ranges: dict[str, tuple[int, int]], limits: Limits) -> dict[str, tuple[int, int]]:
        max_rows, max_bytes = limits
        if max_rows is not None:
            ranges = limit_rows(ranges, max_rows)
        if max_bytes is not None:
            ranges = limit_bytes(ranges, max_bytes, self.view.size)
        return ranges

    def _warn_if_budget_is_not_freed(self) -> None:
        """Warn once if no reader frees the collector's budget."""
        if self._warned is not None or self._coordinator is None or not self._options.trim:
            return
        self._warned = ""
        try:
            read = any(chain.from_iterable(map(self._coordinator.cursors, self.view.readers)))
        except JournalError:
            return
        if not read:
            logger.warning(
                "journal %s: no query on it has a reader's name, so nothing is trimmed, and its collector stops when "
                'its budget is used up; name this query with the option "reader"',
                self._options.journal,
            )


def _collector(options: SourceOptions) -> EmbeddedCollector | None:
    if options.url is None:
        return None
    # Few queries collect, and it takes asyncio.
    from .embedded import EmbeddedCollector

    return EmbeddedCollector(options)


def _begins_latest(start: Offset) -> bool:
    return "latest" in ([start.begun] if isinstance(start.begun, str) else start.begun.values())
