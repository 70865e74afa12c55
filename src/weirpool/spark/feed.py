"""The rows of a task as items, in requests that can be repeated."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from typing import Final, NamedTuple

import msgspec
import pyarrow as pa

from .items import Origin, Packer

__all__ = ["Attempt", "Chunk", "Feed", "Part"]

RUN_ROWS: Final = 10_000
"""Rows that are packed together; the default size of Spark's batches."""
RUNS_PER_SECOND: Final = 10
"""How often rows are sent at a limited rate."""


class Part(NamedTuple):
    """Some rows, as items."""

    first: int
    """The index of the first one in the task."""
    items: pa.RecordBatch
    """The columns `data` and `metadata`."""


class Feed:
    """The rows of a task as items. Spark computes the batches during iteration, which may take long.

    Attributes:
        origin: The task.
        error: The error that ended the rows early.
    """

    def __init__(
        self, packer: Packer, origin: Origin, batches: Iterator[pa.RecordBatch], rate: int | None = None
    ) -> None:
        self.origin = origin
        self.error: Exception | None = None
        self._packer = packer
        self._batches = batches
        self._computing: asyncio.Future[pa.RecordBatch | None] | None = None
        self._parts: deque[Part] = deque()
        self._packed = 0
        self._over = False
        self._rate = rate
        self._due = 0.0
        # When rows were last handed out; None while the receiver has to wait for them.
        self._handed: float | None = 0.0

    def held(self) -> float:
        """Return until when the receiver had to wait for rows, in the loop's time."""
        return asyncio.get_running_loop().time() if self._handed is None else self._handed

    async def ready(self) -> bool:
        """Wait for the next row; return False if there are no more."""
        while not self._parts and not self._over:
            await self._compute()
        return bool(self._parts)

    async def next(self) -> Part | None:
        """Return the next rows; None if there are no more. If the task that waits for them is canceled, none are lost.

        Raises:
            Exception: What Spark, or a row that cannot be sent, failed with; `error` has it, too.

        """
        self._handed = None
        try:
            if not await self.ready():
                return None
            await self._pace(self._parts[0].items.num_rows)
            return self._parts.popleft()
        finally:
            self._handed = asyncio.get_running_loop().time()

    async def _compute(self) -> None:
        """Let Spark compute a batch, in a thread, so that the connection's keepalive continues."""
        if self._computing is None:
            self._computing = asyncio.ensure_future(asyncio.to_thread(next, self._batches, None))
        try:
            # A repeated request takes the batch that a failed one has waited for.
            batch = await asyncio.shield(self._computing)
            self._computing = None
            if batch is None:
                self._over = True
            else:
                self._pack(batch)
        except Exception as error:
            self.error = error
            raise

    def _pack(self, batch: pa.RecordBatch) -> None:
        step = RUN_ROWS if self._rate is None else max(1, min(RUN_ROWS, self._rate // RUNS_PER_SECOND))
        for first in range(0, batch.num_rows, step):
            rows = batch.slice(first, step)
            self._parts.append(Part(self._packed, self._packer.pack(rows, self.origin, self._packed)))
            self._packed += rows.num_rows

    async def _pace(self, rows: int) -> None:
        """Wait until rows may be sent at the maximum rate."""
        if self._rate is None:
            return
        loop = asyncio.get_running_loop()
        await asyncio.sleep(self._due - loop.time())
        self._due = max(self._due, loop.time()) + rows / self._rate


class Chunk:
    """The rows of one request. They are kept until it is done, so that it can be repeated.

    Args:
        feed: Where the rows come from.
        limit: Bytes after which it takes no more rows.

    Attributes:
        rows: The number of rows it has taken.
        answered: Indices of rows that need not be sent again.
    """

    def __init__(self, feed: Feed, limit: int) -> None:
        self.feed = feed
        self.rows = 0
        self.answered: set[int] = set()
        self._limit = limit
        self._kept: list[Part] = []
        self._bytes = 0

    @property
    def header(self) -> bytes:
        """The metadata of the request: the origin of its rows."""
        return msgspec.json.encode(self.feed.origin)

    def row(self, index: int) -> tuple[bytes, bytes | None] | None:
        """Return the data and metadata of a row; None if it is not in this chunk."""
        for part in self._kept:
            if part.first <= index < part.first + part.items.num_rows:
                data, metadata = (column[index - part.first].as_py() for column in part.items.columns)
                return data, metadata
        return None

    async def parts(self) -> AsyncIterator[Part]:
        """Yield the rows, first those that an earlier attempt has taken."""
        for kept in tuple(self._kept):
            yield kept
        while self._bytes < self._limit and (part := await self.feed.next()) is not None:
            self._kept.append(part)
            self._bytes += part.items.nbytes
            self.rows += part.items.num_rows
            yield part


class Attempt:
    """One attempt to send a chunk as the items of a request.

    Attributes:
        over: Set when no more rows are sent.
        complete: All rows were sent.
    """

    def __init__(self, chunk: Chunk) -> None:
        self.over = asyncio.Event()
        self.complete = False
        self._chunk = chunk

    async def items(self) -> AsyncIterator[pa.RecordBatch]:
        """Yield the items as record batches."""
        try:
            async for part in self._chunk.parts():
                yield part.items
            self.complete = True
        finally:
            self.over.set()
