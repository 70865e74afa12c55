"""Micro-batches for a log that receives them."""

from __future__ import annotations

import pyarrow as pa

from weirpool.journal.format import ITEMS
from weirpool.receiving.log import ReceivedLog
from weirpool.receiving.messages import Stage

__all__ = ["data_of", "rows", "staged"]


def rows(data: list[bytes]) -> pa.RecordBatch:
    """Return items without metadata."""
    return pa.record_batch([pa.array(data, pa.binary()), pa.nulls(len(data), pa.binary())], schema=ITEMS)


def data_of(query: str, batch: int, part: int, count: int = 4) -> list[bytes]:
    """Return the rows of one stage, which say where they belong."""
    return [b"%s %d %d %d" % (query.encode(), batch, part, number) for number in range(count)]


def staged(log: ReceivedLog, query: str, batch: int, parts: int = 2) -> list[Stage]:
    """Stage a micro-batch, each stage in two pieces."""
    found = []
    for part in range(parts):
        writer = log.stages.begin(query, batch, "c")
        try:
            data = data_of(query, batch, part)
            writer.append(rows(data[:1]))
            writer.append(rows(data[1:]))
            found.append(writer.finish())
        finally:
            writer.discard()
    return found
