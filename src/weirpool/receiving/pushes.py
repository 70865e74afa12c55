"""Rows that publishers push, gathered so that many of them share one write to the disk."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from ..aio.shares import Client, Shares
from ..aio.threads import in_thread

__all__ = ["Pushes"]

MAX_BYTES: Final = 16 * 1024 * 1024
"""Bytes that are appended together."""
MAX_WAITING_BYTES: Final = 64 * 1024 * 1024
"""Bytes of rows that wait for the disk: clients have shares. Above its share, a client waits."""
REQUEST_BYTES: Final = 1_024
"""What a waiting request takes besides its rows."""


@dataclass(frozen=True, slots=True)
class _Push:
    """Rows that wait."""

    batch: pa.RecordBatch
    client: Client
    size: int
    """What they count in the client's share."""
    done: asyncio.Future[None]


class Pushes:
    """Appends rows of many requests, each of which waits until its own are on disk.

    Each write has rows of all clients that wait: nobody waits until the rows of somebody else are written.

    Args:
        append: Appends a batch; it is called in a thread, once at a time.

    """

    def __init__(self, append: Callable[[pa.RecordBatch], object]) -> None:
        self._shares = Shares("bytes that wait for the disk", MAX_WAITING_BYTES)
        self._append = append
        # By client, in the order of their next turns.
        self._waiting: OrderedDict[Client, deque[_Push]] = OrderedDict()
        self._task: asyncio.Task[None] | None = None

    @property
    def waiting_bytes(self) -> int:
        """Bytes of rows that are not on disk yet, and of their requests."""
        return self._shares.used

    async def push(self, client: Client, batch: pa.RecordBatch) -> None:
        """Append rows of a client; they are on disk when this returns. A canceled call may append them nevertheless.

        Raises:
            JournalError: They could not be appended.

        """
        size = self._size(batch)
        await self._shares.wait(client, size)
        await self._pushed(client, batch, size)

    async def push_now(self, client: Client, batch: pa.RecordBatch) -> bool:
        """Append rows as `push` does, and return True; return False at once if the client had to wait."""
        size = self._size(batch)
        if not self._shares.take(client, size):
            return False
        await self._pushed(client, batch, size)
        return True

    async def close(self) -> None:
        """Wait until all rows are on disk."""
        if self._task is not None:
            await asyncio.wait([self._task])

    def _size(self, batch: pa.RecordBatch) -> int:
        return self._shares.fitting(batch.nbytes + REQUEST_BYTES)

    async def _pushed(self, client: Client, batch: pa.RecordBatch, size: int) -> None:
        """Append rows that were counted, and uncount them when they are on disk, also if the caller is canceled."""
        push = _Push(batch, client, size, asyncio.get_running_loop().create_future())
        self._waiting.setdefault(client, deque()).append(push)
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        await push.done

    async def _run(self) -> None:
        while self._waiting:
            taken = self._take()
            error: Exception | None = None
            try:
                await in_thread(self._append, pa.concat_batches([each.batch for each in taken]))
            except Exception as failure:
                error = failure
            for each in taken:
                self._shares.give_back(each.client, each.size)
                if each.done.done():
                    continue
                if error is None:
                    each.done.set_result(None)
                else:
                    each.done.set_exception(error)
        self._task = None

    def _take(self) -> list[_Push]:
        """Remove and return some of the waiting batches, at least one: a batch of each client in turn."""
        taken: list[_Push] = []
        size = 0
        while self._waiting:
            client, queue = next(iter(self._waiting.items()))
            size += queue[0].batch.nbytes
            if taken and size > MAX_BYTES:
                break
            taken.append(queue.popleft())
            if queue:
                self._waiting.move_to_end(client)
            else:
                del self._waiting[client]
        return taken
