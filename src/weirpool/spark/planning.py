"""Plans the rows of a batch: ranges of positions without lost rows, and gaps that end the query."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Final

from ..errors import DataLost, JournalError, LocalError
from ..journal.coordinator import coordinator_of
from ..journal.gaps import Gap
from ..journal.journal import Journal
from ..journal.ports import LogReader
from .offsets import Offset, same_logs
from .options import SourceOptions
from .partitions import Range
from .survey import Loss, Span, losses, record, recorded, remaining
from .view import JournalView, reaches

__all__ = ["Planner"]

logger = logging.getLogger("weirpool.spark")

SHOWN: Final = 10
"""Losses of a batch that are logged one by one: a publisher that fails each second leaves thousands."""

Ranges = Mapping[str, Span]
"""First and end position by source."""


class Planner:
    """Plans the reading of a journal."""

    def __init__(self, options: SourceOptions, view: JournalView) -> None:
        self._options = options
        self._view = view
        self._journal = Journal(options.journal)
        self._coordinator = coordinator_of(options.journal)

    def before_gaps(self, ranges: Ranges, begun: Mapping[str, int | str]) -> dict[str, Span]:
        """Return the ranges, each reduced to end before the next gap; `DataLost` if one starts after a gap.

        All sources are readable. Losses before the place where the query has begun do not affect it.
        """
        cut = {}
        for source, (first, end) in ranges.items():
            at = [gap for gap in self._gaps(source, first, end) if gap.position > _position(begun[source])]
            if at and at[0].position <= first:
                raise self._gap_error(source, at[0])
            cut[source] = (first, at[0].position if at else end)
        return cut

    def plan(self, ranges: Ranges, end: Offset) -> list[Range]:
        """Return the rows of a micro-batch, without skipped ones.

        Skipped rows are recorded in the log first, so that the same batch has the same rows in another process.

        Raises:
            DataLost: The log ends before the batch, or the batch contains a gap that ends the query.
            JournalError: Rows are lost, and that cannot be recorded.

        """
        for source, (first, stop) in ranges.items():
            self._view.require_end(source, stop)
            self._report_gaps(source, first, stop, end.origin(source), end.query)
        return [
            Range(source, start, stop, end.logs[source])
            for source, span in ranges.items()
            for start, stop in self._spans(source, span, end)
        ]

    def plan_once(self, ranges: Ranges) -> list[Range]:
        """Return the rows of a batch read, without lost ones if they may be skipped, which is logged.

        It raises `DataLost` for a gap that ends the query.
        """
        parts = []
        for source, (first, end) in ranges.items():
            self._report_gaps(source, first, end, first, None)
            uuid = self._view.readers[source].uuid
            parts += [Range(source, *span, uuid) for span in self._readable(source, (first, end))]
        return parts

    def _readable(self, source: str, span: Span) -> Iterator[Span]:
        """Return the parts of a range that can be read; others are logged if they may be skipped."""
        lost = [] if self._options.fail_on_data_loss else losses(self._view.readers[source], *span)
        self._report_losses(source, lost)
        return remaining(*span, [(each.first, each.end) for each in lost])

    def _spans(self, source: str, span: Span, end: Offset) -> list[Span]:
        """Return the ranges to read of one source."""
        if self._options.fail_on_data_loss:
            return [span]
        assert end.query is not None
        coordinator = self._coordinator
        skipped = [] if coordinator is None else recorded(coordinator.recorded(source), end.query)
        # Not the view's reader, which may remember data that a worker no longer finds.
        reader = self._same_log(source, span, end)
        parts = remaining(*span, skipped)
        found = [loss for part in parts for loss in losses(reader, *part) if (loss.first, loss.end) not in skipped]
        if found:
            # THREATS 99: a log that disappears meanwhile has lost nothing.
            self._same_log(source, span, end)
            self._record(reader, found, end.query)
            self._report_losses(source, found)
        return list(remaining(*span, sorted([*skipped, *((loss.first, loss.end) for loss in found)])))

    def _same_log(self, source: str, span: Span, end: Offset) -> LogReader:
        """Return a new reader of the source, after checking that it is the batch's log and long enough."""
        reader = self._journal.reader(source)
        same_logs(self._options.journal, {source: end.logs[source]}, {source: reader.uuid})
        reaches(self._options.journal, reader, span[1])
        return reader

    def _record(self, reader: LogReader, found: list[Loss], query: str) -> None:
        loss = found[0]
        where = f"source {reader.source!r}: {loss} {'are' if loss.first < loss.end else 'is'} lost ({loss.reason})"
        if self._options.fail_on_gap:
            raise DataLost(f"{where}, and failOnGap is true; to continue without them, set it to false")
        if self._coordinator is None:
            raise LocalError(
                f"{where}, and cannot be skipped, because the journal is read-only here and cannot record that; "
                "restore the rows, or copy the journal to a disk"
            )
        name = f"{self._options.reader} ({query})" if self._options.reader is not None else query
        record(self._coordinator, reader, found, query, name)

    def _report_losses(self, source: str, found: list[Loss]) -> None:
        for loss in found[:SHOWN]:
            logger.warning("source %r: skipped %s: %s", source, loss, loss.reason)
        self._report_more(source, len(found) - SHOWN)

    def _report_gaps(self, source: str, first: int, end: int, begun: int | str, query: str | None) -> None:
        """Log the losses just before the rows of this batch; or end the query, with that option."""
        found = self._gaps(source, first, end, query)
        for gap in found:
            if self._options.fail_on_gap and gap.position > _position(begun):
                raise self._gap_error(source, gap)
        for gap in found[:SHOWN]:
            logger.warning("source %r: items were lost before position %d: %s", source, gap.position, gap.reason)
        self._report_more(source, len(found) - SHOWN)

    @staticmethod
    def _report_more(source: str, count: int) -> None:
        if count > 0:
            logger.warning("source %r: %d more losses; the option rows=gaps lists all of them", source, count)

    def _gaps(self, source: str, first: int, end: int, query: str | None = None) -> list[Gap]:
        """Return the gaps in a range. Rows skipped by other queries exist for this one."""
        reader = self._view.readers[source]
        try:
            found = reader.gaps(max(first, reader.first), end) if first < end else []
        except JournalError:
            if self._options.fail_on_gap:
                raise
            # The reader of these rows reports the problem.
            return []
        return [gap for gap in found if gap.query is None or gap.query == query]

    def _gap_error(self, source: str, gap: Gap) -> DataLost:
        return DataLost(
            f"source {source!r}: items were lost before position {gap.position} ({gap.reason}), and failOnGap is true; "
            f"to continue after the gap, set it to false, or start at "
            f'startingOffsets {{"{source}": {gap.position}}} with a new checkpoint'
        )


def _position(place: int | str) -> int:
    return place if isinstance(place, int) else 0
