"""What a task does: the rows of a partition, from the journal's files to record batches for Spark."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import lru_cache

import pyarrow as pa

from ..errors import DataLost, JournalCorrupt
from ..journal.reader import JournalReader
from .options import SourceOptions
from .partitions import JournalPartition, Range
from .schema import Projection

__all__ = ["read"]

logger = logging.getLogger("penstock.spark")

MAX_READERS = 64
"""Readers that a worker keeps: each has looked through its segments' headers, and need not do it again."""


def read(options: SourceOptions, projection: Projection, partition: JournalPartition) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a partition: the same for the same partition, in any process.

    Raises:
        DataLost: Rows are gone, and that ends the query.
        JournalCorrupt: Rows are damaged, and that ends the query.

    """
    rows = _whole if options.fail_on_data_loss else _what_is_left
    for part in partition.ranges:
        for batch in rows(options.journal, part):
            yield projection.apply(batch, part.source)


@lru_cache(MAX_READERS)
def _reader(journal: str, source: str) -> JournalReader:
    return JournalReader(journal, source)


def _whole(journal: str, part: Range) -> Iterator[pa.RecordBatch]:
    at = part.first
    try:
        for batch in _reader(journal, part.source).read(at, part.end):
            yield batch
            at += batch.num_rows
    except (DataLost, JournalCorrupt):
        # Worker processes live long: this one may remember a journal that was replaced since.
        _reader.cache_clear()
        yield from _reader(journal, part.source).read(at, part.end)


def _what_is_left(journal: str, part: Range) -> Iterator[pa.RecordBatch]:
    """Yield the rows that can be read, and log which are skipped."""
    reader = JournalReader(journal, part.source)
    at = part.first
    while at < part.end:
        try:
            for batch in reader.read(at, part.end):
                yield batch
                at += batch.num_rows
        except (DataLost, JournalCorrupt):
            # Sound batches may wait before the damaged one, to be merged: take them one by one.
            behind = min(part.end, max(at + 1, _batch_end(reader, at, part.end)))
            yield from _sound(reader, at, behind)
            at = behind


def _sound(reader: JournalReader, first: int, end: int) -> list[pa.RecordBatch]:
    try:
        return list(reader.read(first, end))
    except (DataLost, JournalCorrupt) as error:
        logger.warning("skipped positions %d to %d of source %r: %s", first, end - 1, reader.source, error)
        return []


def _batch_end(reader: JournalReader, position: int, end: int) -> int:
    """Return where reading may go on, at the latest, behind a loss at or after a position."""
    try:
        return reader.locate(position)[1]
    except DataLost:
        return reader.first if position < reader.first else end
    except JournalCorrupt:
        return min((extent.first for extent in reader.segments() if extent.first > position), default=end)
