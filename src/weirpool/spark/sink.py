"""The writers used by Spark: each task sends its rows to a peer, and is done when the peer has accepted them.

Delivery is at least once: a failed task, and a micro-batch that was not committed, are sent again, with the same
metadata for the same rows. With `delivery=transactional`, the tasks only stage rows, and the driver commits them.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from ..errors import LocalError, WeirpoolError
from .dead_letters import keep
from .delivery import Delivered, publish
from .items import Origin, Packer
from .shown import plain_errors
from .sink_options import SinkOptions
from .staging import abort, commit

__all__ = ["BatchSink", "Sent", "StreamSink"]

logger = logging.getLogger("weirpool.spark")

# Spark sets them for its own foreach sinks; a task has no other way to find out its micro-batch.
QUERY_PROPERTY: Final = "sql.streaming.queryId"
BATCH_PROPERTY: Final = "streaming.sql.batchId"


@dataclass
class Sent(WriterCommitMessage):
    """What a task has sent."""

    origin: Origin
    """The task."""
    delivered: Delivered
    """What has become of its rows."""


class _Sink:
    """The work of a task, and what the driver does when all tasks are done."""

    _single = False
    """There is one micro-batch."""

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        self._options = options
        self._packer = Packer.of(options, schema)

    def _send(self, query: str, batch: int, partition: int, rows: Iterator[pa.RecordBatch]) -> Sent:
        origin = Origin(query, batch, partition)
        return Sent(origin, publish(self._options, self._packer, origin, rows))

    def _commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Complete a micro-batch of which all rows were sent. A repetition has no other effect than the first time."""
        sent = _in_order(messages)
        if not sent:
            return
        origin, options = sent[0].origin, self._options
        if options.dead_letters is not None:
            rejections = [rejection for each in sent for rejection in each.delivered.rejections]
            keep(options.dead_letters, options.max_dead_letters, origin.query, origin.batch, rejections)
        if options.transactional and any(each.delivered.rows for each in sent):
            stages = [stage for each in sent for stage in each.delivered.stages]
            committed = commit(options, origin.query, origin.batch, stages, single=self._single)
            if committed.repeated:
                rows = sum(each.delivered.rows for each in sent)
                logger.log(
                    logging.INFO if committed.rows == rows else logging.WARNING,
                    "micro-batch %d of query %s had been committed before, and has %s rows in the log; %d were dropped",
                    origin.batch, origin.query, "unknown" if committed.rows is None else committed.rows, rows,
                )  # fmt: skip

    def _abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Drop what the tasks of a failed micro-batch have staged. What is not dropped here expires."""
        sent = _in_order(messages)
        stages = [stage for each in sent for stage in each.delivered.stages]
        if stages:
            try:
                abort(self._options, sent[0].origin.query, sent[0].origin.batch, stages)
            except WeirpoolError as error:
                logger.info("the receiver could not drop the staged rows: %s", error)


class BatchSink(_Sink, DataSourceArrowWriter):
    """Sends the rows of a DataFrame, once each if no task fails."""

    _single = True

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        super().__init__(options, schema)
        # Created once, when the write is planned: a repeated task sends the same id.
        self._query = uuid.uuid4().hex

    @plain_errors()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Sent:
        """Send the rows of one task."""
        return self._send(self._query, 0, _task().partitionId(), iterator)

    @plain_errors()
    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Complete the write."""
        self._commit(messages)

    @plain_errors()
    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Drop what was staged, after a task has failed."""
        self._abort(messages)


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
                "this version of Spark does not pass the micro-batch to a sink; Weirpool needs Spark 4.2 or newer"
            )
        return self._send(query, int(batch), task.partitionId(), iterator)

    @plain_errors()
    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Complete a micro-batch; after a crash, Spark may do this again."""
        self._commit(messages)

    @plain_errors()
    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Drop what was staged, after a task has failed."""
        self._abort(messages)


def _in_order(messages: Sequence[WriterCommitMessage | None]) -> list[Sent]:
    sent = [message for message in messages if isinstance(message, Sent)]
    return sorted(sent, key=lambda each: each.origin.partition)


def _task() -> TaskContext:
    task = TaskContext.get()
    if task is None:
        raise LocalError("a sink can only write inside a Spark task")
    return task
