"""The work of a task: the rows of a partition, from the journal's files to record batches for Spark."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import InputPartition

from ..errors import DataLost, JournalCorrupt, JournalMismatch, JournalMissing
from ..journal.opening import open_log
from ..journal.ports import LogReader
from .finding import collector_of
from .options import SourceOptions
from .partitions import JournalPartition, Range, Served
from .schema import Projection
from .shown import plain_errors

if TYPE_CHECKING:
    from .typed import TypedProjection

__all__ = ["TaskReader", "read"]

MAX_READERS = 64
"""Readers that a worker keeps: each has already read the headers of its segments."""


class TaskReader:
    """What a task has of a reader."""

    def __init__(self, options: SourceOptions, projection: Projection | TypedProjection) -> None:
        self._options = options
        self._projection = projection

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition; see :func:`read`."""
        assert isinstance(partition, JournalPartition)
        return read(self._options, self._projection, partition)


def read(
    options: SourceOptions, projection: Projection | TypedProjection, partition: JournalPartition
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a partition: the same for the same partition, in any process.

    The driver has already excluded skipped rows. An unreadable row fails the task, with either value of the option
    failOnDataLoss, because this machine may not see what another one sees.

    Raises:
        JournalMissing: The journal or a source cannot be seen from this machine.
        JournalMismatch: It is a different log than the driver's.
        DataLost: Rows are gone.
        JournalCorrupt: Rows are damaged.
        Mismatch: An item is malformed, and the option mode is FAILFAST.

    """
    with plain_errors():
        for part in partition.ranges:
            for batch in _rows(options, part, projection.needs, partition.served):
                yield from projection.batches(batch, part.source)


@lru_cache(MAX_READERS)
def _reader(journal: str, source: str, log: str, served: Served | None) -> LogReader:
    try:
        reader = open_log(journal, source)
    except JournalMissing:
        if served is None or os.path.exists(journal):
            raise
        reader = open_log(collector_of(journal, served), source)
    if reader.uuid != log:
        raise JournalMismatch(
            f"source {source!r} of journal {journal} is log {reader.uuid} on this machine, but log {log} on the "
            "driver's machine; mount the same journal on every machine"
        )
    _exempt_imports()
    return reader


@cache
def _exempt_imports() -> None:
    """Exempt what a worker has imported from its garbage collections.

    PySpark collects after each task, and would look at all modules each time: for longer than a small task takes.
    """
    if TaskContext.get() is not None:
        gc.freeze()


def _rows(options: SourceOptions, part: Range, columns: list[str], served: Served | None) -> Iterator[pa.RecordBatch]:
    at = part.first
    opened = partial(_reader, options.journal, part.source, part.log, served)
    # The driver has recorded the skipped records, which have no rows.
    skip = not options.fail_on_data_loss
    try:
        for batch in opened().read(at, part.end, columns=columns, skip_records=skip):
            yield batch
            at = batch["position"][-1].as_py() + 1
    except (DataLost, JournalCorrupt):
        # Worker processes are long-lived: this one may remember data that was trimmed or repaired since.
        _reader.cache_clear()
        yield from opened().read(at, part.end, columns=columns, skip_records=skip)
