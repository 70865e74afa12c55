"""What runs beside Spark's driver for a streaming query: it watches the journal, and tells it what is committed."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from ..errors import DataLost, JournalCorrupt, JournalError, LocalError
from .cursor import Cursor
from .embedded import EmbeddedCollector
from .limits import limit_bytes, limit_rows
from .offsets import Offset
from .options import SourceOptions
from .view import JournalView

__all__ = ["SourceDriver"]

logger = logging.getLogger("penstock.spark")

Limits = tuple[int | None, int | None]
"""Rows and bytes."""


class SourceDriver:
    """Decides where micro-batches end.

    Trouble that may pass, such as a disk or network that does not answer, never ends a query: there is then
    nothing new to read, and Spark asks again.

    Args:
        options: Of the query.

    Attributes:
        view: The journal.

    """

    def __init__(self, options: SourceOptions) -> None:
        self.view = JournalView(options)
        self._options = options
        self._cursor = Cursor(options.journal, options.reader, options.retain_bytes)
        self._trims = options.trim and not options.remote
        self._collector = EmbeddedCollector(options) if options.url is not None else None
        self._targets: Mapping[str, int] | None = None
        self._troubled = False

    def stop_here(self) -> None:
        """Read no further than what is there now, and no sources that come later.

        Raises:
            JournalError: The journal cannot be read.
            LocalError: The query collects: what is there now is not what there is to read.

        """
        if self._collector is not None:
            raise LocalError(
                'with the option "url" a query collects while it runs, so it cannot end with what is there now: '
                "let it run, or run `penstock collect` first and leave the option out"
            )
        self.view.refresh()
        self._targets = self.view.ends()

    def begin(self, start: Offset) -> None:
        """Start what runs in the background, and take the query's name, unless that was done before.

        Raises:
            JournalLocked: Another query has the name.

        """
        if self._collector is not None:
            self._collector.run()
        if self._trims and not self._cursor.claimed and self._look():
            places = {source: start.place(source) for source in self.view.readers}
            self._cursor.claim({source: self.view.position(source, place) for source, place in places.items()})

    def advance(self, start: Offset, limits: Limits) -> Offset | None:
        """Return where the next micro-batch ends; None if there is nothing to read, or no way to know.

        Raises:
            JournalError: Rows are damaged or gone, and that ends the query.

        """
        if not self._look():
            return None
        try:
            begun = {source: self.view.position(source, start.place(source)) for source in self._sources(start)}
        except DataLost:
            if self._options.fail_on_data_loss:
                raise
            return None
        ends = self.view.ends() if self._targets is None else self._targets
        ranges = {source: (first, max(first, ends[source])) for source, first in sorted(begun.items())}
        ranges = self._limited(ranges, limits)
        # What "latest" has come to is kept even if nothing is there yet: it must not be looked up anew after a crash.
        settled = "latest" not in (start.begun if isinstance(start.begun, str) else start.begun.values())
        if settled and all(first == end for first, end in ranges.values()):
            return None
        origins = {source: start.origin(source) for source in start.positions}
        resolved = {source: first for source, first in begun.items() if source not in start.positions}
        positions = {source: end for source, (_, end) in ranges.items()}
        return Offset({**origins, **resolved}, {**start.positions, **positions})

    def commit(self, end: Offset) -> None:
        """Tell the journal that the query needs nothing before this offset any more."""
        if not self._trims or not self._cursor.claimed:
            return
        try:
            self._cursor.commit(end.positions)
        except JournalError as error:
            logger.warning("%s; the journal is trimmed later", error)

    def report_gaps(self, ranges: Mapping[str, tuple[int, int]]) -> None:
        """Log what the collector has lost just before the rows that are read now."""
        if not self._look():
            return
        for source, (first, end) in ranges.items():
            reader = self.view.readers.get(source)
            try:
                gaps = reader.gaps(max(first, reader.first), end) if reader is not None else []
            except JournalError:
                # Whoever reads these rows tells what is wrong with them.
                continue
            for gap in gaps:
                logger.warning("source %r: items were lost before position %d: %s", source, gap.position, gap.reason)

    def stop(self) -> None:
        """End what runs in the background, and give the query's name back."""
        if self._collector is not None:
            self._collector.stop()
        self._cursor.release()

    def _sources(self, start: Offset) -> list[str]:
        """Return the sources to read: all that are there; in a bounded run, those that were there at its start."""
        return [source for source in self.view.readers if self._targets is None or source in self._targets]

    def _limited(self, ranges: dict[str, tuple[int, int]], limits: Limits) -> dict[str, tuple[int, int]]:
        max_rows, max_bytes = limits
        if max_rows is not None:
            ranges = limit_rows(ranges, max_rows)
        if max_bytes is not None:
            ranges = limit_bytes(ranges, max_bytes, self.view.size)
        return ranges

    def _look(self) -> bool:
        """See what is new in the journal; return whether it could be looked at."""
        try:
            self.view.refresh()
        except JournalError as error:
            if self._targets is not None or (isinstance(error, JournalCorrupt) and self._options.fail_on_data_loss):
                # A bounded run would take "nothing new" for its end.
                raise
            if not self._troubled:
                logger.warning("%s; the query waits", error)
            self._troubled = True
            return False
        self._troubled = False
        return True
