"""The items of one stream, for their consumer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from operator import length_hint
from typing import TYPE_CHECKING, Final

from ..errors import LocalError
from ..payload import Payload, PayloadRun
from ..settings import Settings
from .inbound import NEVER, ReceiveBuffer

if TYPE_CHECKING:
    import pyarrow

    from ..wire.columns import ColumnBuilder

__all__ = ["Items"]

PAUSE_TURNS: Final = 2
"""Turns of the loop without an item after which a batch is returned: a read runs one turn after its poll."""


class Items:
    """Items that the peer sends on one stream.

    Iterate over it asynchronously for single items, each a :class:`~penstock.Payload`, or over :meth:`batches` for
    many at once. If you exit a loop early, another loop continues at the next item. More items are requested as items
    are consumed. Both raise the error that failed the stream after its last item.

    Several tasks may consume the items of one stream, each with its own loop: each item goes to one of them.
    """

    __slots__ = ("_inbound", "_settings")

    def __init__(self, settings: Settings, inbound: ReceiveBuffer | None = None) -> None:
        self._settings = settings
        self._inbound = inbound

    def __aiter__(self) -> AsyncIterator[Payload]:
        return self._items()

    @property
    def ready(self) -> bool:
        """True if the next item has arrived."""
        return self._inbound is not None and _has_items(self._inbound)

    def batches(self, max_rows: int | None = None, max_bytes: int | None = None) -> AsyncIterator[pyarrow.RecordBatch]:
        """Return the items as record batches with the columns `data` and `metadata`; needs pyarrow.

        No Python object is created for an item. A batch is yielded when it is full, when the stream ends, or when the
        network pauses. If a task is canceled while it waits for a batch, the rows so far go to the next consumer.

        Args:
            max_rows: The maximum number of rows of a batch; `Settings.batch_rows` by default.
            max_bytes: Payload bytes after which a batch gets no more rows; `Settings.batch_bytes` by default.

        """
        settings = self._settings
        return self._batches(max_rows or settings.batch_rows, max_bytes or settings.batch_bytes)

    async def _items(self) -> AsyncGenerator[Payload, None]:
        inbound = await self._opened()
        while True:
            ready = inbound.ready
            for payload in ready:
                yield payload
            # Another task may have taken the rest, and be at the next items.
            if ready is not inbound.ready or inbound.prepare():
                continue
            if not inbound.over:
                await inbound.arrival()
            elif inbound.error is None:
                return
            else:
                inbound = await self._open_again(inbound, inbound.error)

    async def _batches(self, max_rows: int, max_bytes: int) -> AsyncGenerator[pyarrow.RecordBatch, None]:
        # Only batches need pyarrow.
        from ..wire.columns import ColumnBuilder

        inbound = await self._opened()
        builder = ColumnBuilder()
        while True:
            # A builder that is not full has everything that has arrived.
            if inbound.fill(builder, max_rows, max_bytes):
                yield builder.finish()
            elif inbound.over and not len(builder):
                if inbound.error is None:
                    return
                inbound = await self._open_again(inbound, inbound.error)
            elif inbound.over or not await self._more(inbound, builder, max_rows, max_bytes):
                yield builder.finish()

    @staticmethod
    async def _more(inbound: ReceiveBuffer, builder: ColumnBuilder, max_rows: int, max_bytes: int) -> bool:
        """Wait for more rows, but only briefly if there are some; return False if none arrived."""
        rows = len(builder)
        inbound.gather(builder, max_rows, max_bytes)
        try:
            if not rows:
                await inbound.arrival()
                return True
            for _ in range(PAUSE_TURNS):
                await asyncio.sleep(0)
                if inbound.over or inbound.pending or len(builder) > rows:
                    return True
        except BaseException:
            _restore(inbound, builder)
            raise
        finally:
            inbound.stop_gathering(builder)
        return False

    async def arrival(self) -> bool:
        """Wait until there are items for :meth:`take`; return False at the end of the stream.

        Raises:
            PenstockError: The error that failed the stream, after all its items were taken.

        """
        inbound = await self._opened()
        while not _has_items(inbound):
            if not inbound.over:
                await inbound.arrival()
            elif inbound.error is None:
                return False
            else:
                inbound = await self._open_again(inbound, inbound.error)
        return True

    def waiter(self) -> asyncio.Future[None] | None:
        """Return a future that is done when something arrives or the stream ends; None if that is so now.

        It costs less than :meth:`arrival`, and may also be completed by the caller.

        Raises:
            LocalError: The stream is not open yet.

        """
        inbound = self._inbound
        if inbound is None:
            raise LocalError("waiter() on a stream that is not open; enter its block first")
        return None if inbound.over or _has_items(inbound) else inbound.arrival()

    def take(self, builder: ColumnBuilder) -> None:
        """Move all items that have arrived to `builder`, without waiting. Use :meth:`arrival` to wait for items."""
        if self._inbound is not None:
            self._inbound.fill(builder, NEVER, NEVER)

    async def _opened(self) -> ReceiveBuffer:
        assert self._inbound is not None
        return self._inbound

    async def _open_again(self, ended: ReceiveBuffer, error: Exception) -> ReceiveBuffer:
        """Open the stream again if no item of `ended` was lost; otherwise raise `error`."""
        raise error


def _has_items(inbound: ReceiveBuffer) -> bool:
    """Return True if there are items that were not consumed, also those that a loop has prepared."""
    return length_hint(inbound.ready) > 0 or len(inbound.pending) > 0


def _restore(inbound: ReceiveBuffer, builder: ColumnBuilder) -> None:
    """Put back the rows of a consumer that was canceled, so that the next one gets them."""
    if not len(builder):
        return
    batch = builder.finish()
    rows = zip(batch.column("data").to_pylist(), batch.column("metadata").to_pylist(), strict=True)
    inbound.put_back(PayloadRun.of([Payload(data, metadata) for data, metadata in rows]))
    if inbound.over:
        inbound.exchanges.ended_unread(inbound)
    inbound.wake_consumers()
