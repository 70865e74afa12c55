"""Rows that publishers push, gathered so that many of them share one write to the disk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import pyarrow as pa

from ..aio.threads import in_thread

__all__ = ["Pushes"]

MAX_BYTES: Final = 16 * 1024 * 1024
"""Bytes that are appended together."""
REQUEST_BYTES: Final = 1_024
"""What a waiting request takes besides its rows."""


class Pushes:
    """Appends rows of many requests, each of which waits until its own are on disk.

    Args:
        append: Appends a batch; it is called in a thread, once at a time.

    Attributes:
        waiting_bytes: Bytes of rows that are not on disk yet, and of their requests.
    """

    def __init__(self, append: Callable[[pa.RecordBatch], object]) -> None:
        self.waiting_bytes = 0
        self._append = append
        self._waiting: list[tuple[pa.RecordBatch, asyncio.Future[None]]] = []
        self._task: asyncio.Task[None] | None = None

    async def push(self, batch: pa.RecordBatch) -> None:
        """Append rows; they are on disk when this returns. A canceled call may append them nevertheless.

        Raises:
            JournalError: They could not be appended.

        """
        done = asyncio.get_running_loop().create_future()
        self._waiting.append((batch, done))
        self.waiting_bytes += batch.nbytes + REQUEST_BYTES
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        await done

    async def close(self) -> None:
        """Wait until all rows are on disk."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        while self._waiting:
            batches, futures = self._take()
            error: Exception | None = None
            try:
                await in_thread(self._append, pa.concat_batches(batches))
            except Exception as failure:
                error = failure
            self.waiting_bytes -= sum(batch.nbytes + REQUEST_BYTES for batch in batches)
            for future in futures:
                if future.done():
                    continue
                if error is None:
                    future.set_result(None)
                else:
                    future.set_exception(error)
        self._task = None

    def _take(self) -> tuple[list[pa.RecordBatch], list[asyncio.Future[None]]]:
        """Remove and return some of the waiting batches, at least one."""
        size = count = 0
        while count < len(self._waiting) and (not count or size + self._waiting[count][0].nbytes <= MAX_BYTES):
            size += self._waiting[count][0].nbytes
            count += 1
        taken, self._waiting = self._waiting[:count], self._waiting[count:]
        return [batch for batch, _ in taken], [future for _, future in taken]
