"""The readers used by Spark: for a batch, and for a stream of micro-batches.

Spark makes several independent copies of a reader. One lives next to the driver and provides offsets and partitions.
Others are pickled to the workers and read. Objects that only the driver needs are created on first use, and never
pickled.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from ..errors import LocalError
from .driver import SourceDriver
from .offsets import Offset
from .options import SourceOptions, Start
from .partitions import JournalPartition, split
from .planning import Planner
from .reading import read
from .schema import Projection
from .shown import plain_errors
from .troubles import Troubles
from .view import JournalView

__all__ = ["JournalBatchReader", "JournalStreamReader"]

logger = logging.getLogger("penstock.spark")


class _JournalReader:
    """The work of a task."""

    def __init__(self, options: SourceOptions, projection: Projection) -> None:
        self._options = options
        self._projection = projection

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition; see :func:`penstock.spark.reading.read`."""
        assert isinstance(partition, JournalPartition)
        return read(self._options, self._projection, partition)


class JournalBatchReader(_JournalReader, DataSourceReader):
    """Reads a range of a journal, once."""

    @plain_errors()
    def partitions(self) -> list[InputPartition]:
        """Return the partitions. The start and end are resolved here, once per query.

        Raises:
            LocalError: A source to read does not exist, or the options are those of a stream.
            JournalError: The journal cannot be read.

        """
        if self._options.url is not None:
            raise LocalError('a batch reads what is in the journal; the option "url" is for streams')
        view = JournalView(self._options)
        Troubles(self._options, view).refresh(bounded=True)
        view.require_sources(startingOffsets=self._options.starting, endingOffsets=self._options.ending)
        ranges = {}
        for source in sorted(view.readers):
            first = view.position(source, _place(self._options.starting, source, "earliest"))
            end = view.position(source, _place(self._options.ending, source, "latest"))
            if end < first:
                raise LocalError(f"source {source!r}: endingOffsets is {end}, before startingOffsets, which is {first}")
            ranges[source] = (first, end)
        planned = Planner(self._options, view).plan_once(ranges)
        parts = split(planned, self._options.partitions, self._options.rows_per_partition)
        # For an empty list, Spark creates a partition that is None.
        return [*parts] or [JournalPartition([])]


class JournalStreamReader(_JournalReader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a journal as a stream of micro-batches."""

    def __init__(self, options: SourceOptions, projection: Projection) -> None:
        super().__init__(options, projection)
        self._driver: SourceDriver | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_driver": None}

    def initialOffset(self) -> dict[str, Any]:
        """Return the start, unresolved: Spark calls this twice, and does not store the result."""
        return Offset(self._options.starting).json()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit that the options set; Spark passes on only one of two, and `latestOffset` knows both."""
        if self._options.max_rows is not None:
            return ReadMaxRows(self._options.max_rows)
        return ReadMaxBytes(self._options.max_bytes)

    @plain_errors()
    def prepareForTriggerAvailableNow(self) -> None:
        """Read only the rows that exist now."""
        self._source_driver().stop_here()

    @plain_errors()
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return the end of the next micro-batch; `start` if there is nothing to read, or if this is unknown.

        Rows before `start` are committed: Spark has that in its commit log before it calls this.
        """
        driver = self._source_driver()
        end = driver.advance(Offset.parse(start), self._limits(limit))
        return start if end is None else end.json()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Return the end of the journal, for the query's progress."""
        view = self._source_driver().view
        return Offset("earliest", view.ends(), view.logs()).json() if view.readers else None

    @plain_errors()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Return the partitions between two offsets."""
        driver = self._source_driver()
        ranges = driver.plan(Offset.parse(start), Offset.parse(end))
        return [*split(ranges, self._options.partitions, self._options.rows_per_partition)]

    @plain_errors()
    def commit(self, end: dict[str, Any]) -> None:
        """Commit a finished micro-batch. `latestOffset` does so too, usually earlier."""
        self._source_driver().commit(Offset.parse(end))

    def stop(self) -> None:
        """Stop background work."""
        if self._driver is not None:
            self._driver.stop()

    def _source_driver(self) -> SourceDriver:
        if self._driver is None:
            self._driver = SourceDriver(self._options)
        return self._driver

    def _limits(self, limit: ReadLimit) -> tuple[int | None, int | None]:
        """Return the maximum rows and bytes of the next micro-batch; None: no limit."""
        if isinstance(limit, ReadAllAvailable):
            # THREATS 79 does not apply: the trigger "once" reads all available rows in one batch.
            return None, None
        max_rows = limit.max_rows if isinstance(limit, ReadMaxRows) else self._options.max_rows
        max_bytes = limit.max_bytes if isinstance(limit, ReadMaxBytes) else self._options.max_bytes
        return max_rows, max_bytes


def _place(places: Start, source: str, otherwise: str) -> int | str:
    return places if isinstance(places, str) else places.get(source, otherwise)
