"""The work of a task: the rows of a partition, from the journal's files to record batches for Spark."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import pyarrow as pa

from ..errors import DataLost, JournalCorrupt, JournalMismatch
from ..journal.reader import JournalReader
from .options import SourceOptions
from .partitions import JournalPartition, Range
from .schema import Projection
from .shown import plain_errors

__all__ = ["read"]

MAX_READERS = 64
"""Readers that a worker keeps: each has already read the headers of its segments."""


def read(options: SourceOptions, projection: Projection, partition: JournalPartition) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a partition: the same for the same partition, in any process.

    The driver has already excluded skipped rows. An unreadable row fails the task, with either value of the option
    failOnDataLoss, because this machine may not see what another one sees.

    Raises:
        JournalMissing: The journal or a source cannot be seen from this machine.
        JournalMismatch: It is a different log than the driver's.
        DataLost: Rows are gone.
        JournalCorrupt: Rows are damaged.

    """
    with plain_errors():
        for part in partition.ranges:
            for batch in _rows(options, part):
                yield projection.apply(batch, part.source)


@lru_cache(MAX_READERS)
def _reader(journal: str, source: str, log: str) -> JournalReader:
    reader = JournalReader(journal, source)
    if reader.uuid != log:
        raise JournalMismatch(
            f"source {source!r} of journal {journal} is log {reader.uuid} on this machine, but log {log} on the "
            "driver's machine; mount the same journal on every machine"
        )
    return reader


def _rows(options: SourceOptions, part: Range) -> Iterator[pa.RecordBatch]:
    at, journal = part.first, options.journal
    # The driver has recorded the skipped records, which have no rows.
    skip = not options.fail_on_data_loss
    try:
        for batch in _reader(journal, part.source, part.log).read(at, part.end, skip_records=skip):
            yield batch
            at = batch["position"][-1].as_py() + 1
    except (DataLost, JournalCorrupt):
        # Worker processes are long-lived: this one may remember data that was trimmed or repaired since.
        _reader.cache_clear()
        yield from _reader(journal, part.source, part.log).read(at, part.end, skip_records=skip)
