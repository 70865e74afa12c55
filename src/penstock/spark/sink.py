"""The writers used by Spark: each task sends its rows to a peer, and is done when the peer has accepted them.

Delivery is at least once: a failed task, and a micro-batch that was not committed, are sent again, with the same
metadata for the same rows.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from ..errors import LocalError
from .items import Origin, Packer
from .options import SinkOptions
from .publish import publish
from .shown import plain_errors

__all__ = ["BatchSink", "Sent", "StreamSink"]

# Spark sets them for its own foreach sinks; a task has no other way to find out its micro-batch.
QUERY_PROPERTY = "sql.streaming.queryId"
BATCH_PROPERTY = "streaming.sql.batchId"


@dataclass
class Sent(WriterCommitMessage):
    """The number of rows that a task has sent."""

    partition: int
    rows: int


class _Sink:
    """The work of a task."""

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        self._options = options
        self._packer = Packer.of(options, schema)

    def _send(self, query: str, batch: int, partition: int, rows: Iterator[pa.RecordBatch]) -> Sent:
        return Sent(partition, publish(self._options, self._packer, Origin(query, batch, partition), rows))


class BatchSink(_Sink, DataSourceArrowWriter):
    """Sends the rows of a DataFrame, once each if no task fails."""

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        super().__init__(options, schema)
        # Created once, when the write is planned: a repeated task sends the same id.
        self._query = uuid.uuid4().hex

    @plain_errors()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Sent:
        """Send the rows of one task."""
        return self._send(self._query, 0, _task().partitionId(), iterator)


class StreamSink(_Sink, DataSourceStreamArrowWriter):
    """Sends the rows of each micro-batch."""

    @plain_errors()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Sent:
        """Send the rows of one task of a micro-batch."""
        task = _task()
        batch = task.getLocalProperty(BATCH_PROPERTY)
        # Not the run's id: with that, a new checkpoint would count batches from 0 again.
        query = task.getLocalProperty(QUERY_PROPERTY)
        if batch is None or query is None:
            raise LocalError(
                "this version of Spark does not pass the micro-batch to a sink; Penstock needs Spark 4.2 or newer"
            )
        return self._send(query, int(batch), task.partitionId(), iterator)


def _task() -> TaskContext:
    task = TaskContext.get()
    if task is None:
        raise LocalError("a sink can only write inside a Spark task")
    return task
