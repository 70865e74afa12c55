"""The readers that Spark drives: of one batch, and of a stream of them.

Spark makes several copies of a reader, which share nothing: one lives beside the driver and is asked for
offsets and partitions, others are pickled to the workers and read. What only the driver needs is made when it
is first asked for something, and never pickled.
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


class JournalBatchReader(DataSourceReader):
    """Reads what a journal holds between two places, once."""

    def __init__(self, options: SourceOptions, projection: Projection) -> None:
        self._options = options
        self._projection = projection

    @plain_errors()
    def partitions(self) -> list[InputPartition]:
        """Return what each task is to read. The places are looked up here, once for a query.

        Raises:
            LocalError: A source that is to be read is not there, or the options are those of a stream.
            JournalError: The journal cannot be read.

        """
        if self._options.url is not None:
            raise LocalError('a batch reads what is in the journal; the option "url" is for streams')
        view = JournalView(self._options)
        Troubles(self._options, view).look(bounded=True)
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
        # Spark makes a partition of None out of none at all.
        return [*parts] or [JournalPartition([])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition; see :func:`penstock.spark.reading.read`."""
        assert isinstance(partition, JournalPartition)
        return read(self._options, self._projection, partition)


class JournalStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a journal as it grows, a micro-batch at a time."""

    def __init__(self, options: SourceOptions, projection: Projection) -> None:
        self._options = options
        self._projection = projection
        self._driver: SourceDriver | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_driver": None}

    def initialOffset(self) -> dict[str, Any]:
        """Return where to begin, unresolved: Spark calls this twice, and does not keep what it returns."""
        return Offset(self._options.starting).json()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit that the options set; of two, Spark passes on but one, and `latestOffset` knows both."""
        if self._options.max_rows is not None:
            return ReadMaxRows(self._options.max_rows)
        return ReadMaxBytes(self._options.max_bytes)

    @plain_errors()
    def prepareForTriggerAvailableNow(self) -> None:
        """Read no further than what is there now."""
        self._beside_driver().stop_here()

    @plain_errors()
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return where the next micro-batch ends; `start` if there is nothing to read, or no way to know.

        What lies before `start` is committed: Spark has it in its commit log before it asks.
        """
        driver = self._beside_driver()
        end = driver.advance(Offset.parse(start), self._limits(limit))
        return start if end is None else end.json()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Return how far the journal goes, for the query's progress."""
        view = self._beside_driver().view
        return Offset("earliest", view.ends(), view.logs()).json() if view.readers else None

    @plain_errors()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Return what each task is to read between two offsets."""
        driver = self._beside_driver()
        ranges = driver.plan(Offset.parse(start), Offset.parse(end))
        return [*split(ranges, self._options.partitions, self._options.rows_per_partition)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition; see :func:`penstock.spark.reading.read`."""
        assert isinstance(partition, JournalPartition)
        return read(self._options, self._projection, partition)

    @plain_errors()
    def commit(self, end: dict[str, Any]) -> None:
        """Let go of what a finished micro-batch has read: the second way to learn it, and the later one."""
        self._beside_driver().commit(Offset.parse(end))

    def stop(self) -> None:
        """End what runs in the background."""
        if self._driver is not None:
            self._driver.stop()

    def _beside_driver(self) -> SourceDriver:
        if self._driver is None:
            self._driver = SourceDriver(self._options)
        return self._driver

    def _limits(self, limit: ReadLimit) -> tuple[int | None, int | None]:
        """Return the most rows and bytes of the next micro-batch; None for any number."""
        if isinstance(limit, ReadAllAvailable):
            # THREATS 79 has no say here: the trigger "once" takes all there is in one batch.
            return None, None
        max_rows = limit.max_rows if isinstance(limit, ReadMaxRows) else self._options.max_rows
        max_bytes = limit.max_bytes if isinstance(limit, ReadMaxBytes) else self._options.max_bytes
        return max_rows, max_bytes


def _place(places: Start, source: str, otherwise: str) -> int | str:
    return places if isinstance(places, str) else places.get(source, otherwise)
