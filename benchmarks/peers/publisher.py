"""A publisher for collectors: the streams of `ours`, and streams that take their time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator

import pyarrow as pa

from weirpool import Payload

from . import BATCH_ROWS, PAYLOAD
from .ours import service, serving

__all__ = ["EVENT_BYTES", "TICK", "serving"]

EVENT_BYTES = 8
"""The size of the time at the start of an event's data: microseconds since 1970, big-endian."""
TICK = 0.005
"""Seconds between two writes of a paced stream: an item or two of a slow feed each."""


@service.stream("ticks")
async def ticks(request: Payload) -> AsyncIterator[Payload]:
    """Send so many events, with so many milliseconds before each."""
    count, milliseconds = map(int, request.data.split())
    for _ in range(count):
        await asyncio.sleep(milliseconds / 1e3)
        event = (time.time_ns() // 1_000).to_bytes(EVENT_BYTES, "big")
        yield Payload(event + PAYLOAD[EVENT_BYTES:])


@service.stream("columns")
def columns(request: Payload) -> Iterator[pa.RecordBatch]:
    """Send so many items as record batches, as a source does that has columns."""
    batch = pa.record_batch({"data": pa.array([PAYLOAD] * BATCH_ROWS, pa.binary())})
    for left in range(int(request.data), 0, -BATCH_ROWS):
        yield batch.slice(0, left)


@service.stream("paced")
async def paced(request: Payload) -> AsyncIterator[Payload]:
    """Send so many items per second for ever."""
    rate = int(request.data)
    loop = asyncio.get_running_loop()
    begun, sent = loop.time(), 0
    while True:
        due = int((loop.time() - begun) * rate)
        for _ in range(due - sent):
            yield Payload(PAYLOAD)
        sent = due
        await asyncio.sleep(TICK)
