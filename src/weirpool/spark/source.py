"""The readers used by Spark: for a batch, and for a stream of micro-batches.

Spark makes several independent copies of a reader. One lives next to the driver and provides offsets and partitions.
Others are pickled to the workers, where they are a :class:`weirpool.spark.reading.TaskReader`. Objects that only the
driver needs are created on first use.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

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
from .batch import plan
from .driver import SourceDriver
from .finding import with_collector
from .offsets import Offset
from .options import SourceOptions
from .places import ENDS
from .reading import TaskReader
from .schema import Projection
from .shown import plain_errors

if TYPE_CHECKING:
    from .typed import TypedProjection

__all__ = ["JournalBatchReader", "JournalStreamReader"]

logger = logging.getLogger("weirpool.spark")


class _JournalReader:
    """A reader that only reads once it is pickled."""

    def __init__(self, options: SourceOptions, projection: Projection | TypedProjection) -> None:
        self._options = options
        self._projection = projection

    def __reduce__(self) -> tuple[type[TaskReader], tuple[SourceOptions, Projection | TypedProjection]]:
        # A worker would otherwise import all that plans batches, for longer than a small task takes.
        return TaskReader, (self._options, self._projection)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition; see :func:`weirpool.spark.reading.read`."""
        return TaskReader(self._options, self._projection).read(partition)


class JournalBatchReader(_JournalReader, DataSourceReader):
    """Reads a range of a journal, once.

    It must not exclude rows by filters of the query. Spark 4.3 stores the partitions of one plan in the relation
    (`readInfo` of `PythonDataSourceV2`) and uses them for every later plan of the same DataFrame, with other filters.
    """

    @plain_errors()
    def partitions(self) -> list[InputPartition]:
        """Return the partitions; see :func:`weirpool.spark.batch.plan`."""
        return plan(self._options)


class JournalStreamReader(_JournalReader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a journal as a stream of micro-batches. `LocalError` if the options say where it ends."""

    def __init__(self, options: SourceOptions, projection: Projection | TypedProjection) -> None:
        super().__init__(options, projection)
        if options.ending != ENDS.default:
            # It would be read as if there were no end.
            raise LocalError(f"a stream has no end; the options {', '.join(ENDS.names)} are for batches")
        self._driver: SourceDriver | None = None

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
        end = self._source_driver().latest(Offset.parse(start), self._limits(limit))
        return start if end is None else end.json()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Return the end of the journal and the query's lag, for its progress; see :mod:`weirpool.spark.lag`."""
        return self._source_driver().report()

    @plain_errors()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Return the partitions between two offsets."""
        parts = self._source_driver().partitions(Offset.parse(start), Offset.parse(end))
        return [*with_collector(self._options, parts)]

    @plain_errors()
    def commit(self, end: dict[str, Any]) -> None:
        """Commit a finished micro-batch. `latestOffset` does so too, usually earlier."""
        driver = self._source_driver()
        driver.commit(Offset.parse(end))
        driver.progress()

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
