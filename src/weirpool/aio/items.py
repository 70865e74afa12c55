"""The items of one stream, for their consumer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from operator import length_hint
from typing import TYPE_CHECKING, Final

from ..errors import LocalError
from ..payload import Payload, PayloadRun
from ..settings import Settings
from .inbound import NEVER, ReceiveBuffer

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from ..frames.tables import Conversion
    from ..wire.columns import ColumnBuilder

__all__ = ["TABLE_BYTES", "Items", "collected", "converted"]

TABLE_BYTES: Final = 1 << 30
"""Bytes of a table: most fit, and a stream without an end does not fill the memory."""

PAUSE_TURNS: Final = 2
"""Turns of the loop without an item after which a batch is returned: a read runs one turn after its poll."""


class Items:
    """Items that the peer sends on one stream.

    Iterate over it asynchronously for single items, each a :class:`~weirpool.Payload`, or over :meth:`batches` for
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

    def _allow(self, total: int) -> None:
        """Let no more than `total` items be requested, counted from the first, however fast they are consumed.

        For items that were received without leave to request any, as those of a bridge are.
        """
        if self._inbound is not None:
            self._inbound.allow(total)

    def batches(
        self,
        max_rows: int | None = None,
        max_bytes: int | None = None,
        *,
        schema: pyarrow.Schema | None = None,
        encoding: str | None = None,
    ) -> AsyncIterator[pyarrow.RecordBatch]:
        """Return the items as record batches; needs pyarrow. No Python object of yours is created for an item.

        Without a schema and an encoding, the columns are `data` and `metadata`. A batch is yielded when it is full,
        when the stream ends, or when the network pauses. If a task is canceled while it waits for a batch, the rows so
        far go to the next consumer.

        Args:
            max_rows: The maximum number of items of a batch; `Settings.batch_rows` by default.
            max_bytes: Payload bytes after which a batch gets no more items; `Settings.batch_bytes` by default.
            schema: The columns: items are decoded, and their fields become columns. A field that is missing in an item
                is null, and other fields are ignored.
            encoding: How items are encoded: "json", "msgpack", "cbor", or "arrow", whose items are Arrow IPC streams of
                any number of rows and need no schema. The default is the connection's data MIME type.

        Raises:
            LocalError: Items of this encoding cannot be decoded, or need a schema.
            Mismatch: An item does not match the schema.

        """
        conversion = self.conversion(schema, encoding)
        batches = self._batches(*self._batch_limits(max_rows, max_bytes))
        return batches if conversion is None else converted(batches, conversion)

    async def to_arrow(
        self,
        limit: int | None = None,
        *,
        max_bytes: int = TABLE_BYTES,
        schema: pyarrow.Schema | None = None,
        encoding: str | None = None,
    ) -> pyarrow.Table:
        """Return the items as a table, once the stream has completed; needs pyarrow.

        Args:
            limit: Rows after which the table is returned without waiting for the end. In a block, the rest can still be
                consumed; otherwise the stream is canceled.
            max_bytes: The most bytes that the table may have.
            schema: The columns; see :meth:`batches`.
            encoding: How items are encoded; see :meth:`batches`.

        Raises:
            LimitExceeded: The table would have more than `max_bytes`.

        """
        return await collected(self, self.conversion(schema, encoding), limit, max_bytes)

    async def to_polars(
        self,
        limit: int | None = None,
        *,
        max_bytes: int = TABLE_BYTES,
        schema: pyarrow.Schema | None = None,
        encoding: str | None = None,
    ) -> polars.DataFrame:
        """Return the items as a DataFrame of Polars. Arguments are those of :meth:`to_arrow`."""
        from ..frames.tables import frame_of

        return frame_of(await self.to_arrow(limit, max_bytes=max_bytes, schema=schema, encoding=encoding))

    async def to_pandas(
        self,
        limit: int | None = None,
        *,
        max_bytes: int = TABLE_BYTES,
        schema: pyarrow.Schema | None = None,
        encoding: str | None = None,
    ) -> pandas.DataFrame:
        """Return the items as a DataFrame of pandas. Arguments are those of :meth:`to_arrow`."""
        table = await self.to_arrow(limit, max_bytes=max_bytes, schema=schema, encoding=encoding)
        return table.to_pandas()

    def conversion(self, schema: pyarrow.Schema | None, encoding: str | None) -> Conversion | None:
        """Return how items become rows; None if their columns are `data` and `metadata`. See :meth:`batches`."""
        if schema is None and encoding is None:
            return None
        from ..frames.items import ItemColumns, encoding_of

        return ItemColumns(encoding or encoding_of(self._settings.data_mime), schema)

    async def next_batch(self, max_rows: int | None = None, max_bytes: int | None = None) -> pyarrow.RecordBatch | None:
        """Return the next of :meth:`batches`, with the columns `data` and `metadata`; None at the end of the stream."""
        async with aclosing(self._batches(*self._batch_limits(max_rows, max_bytes))) as batches:
            return await anext(batches, None)

    async def end(self) -> None:
        """Ignore the rest of a stream that is used without a block."""

    def _batch_limits(self, max_rows: int | None, max_bytes: int | None) -> tuple[int, int]:
        return max_rows or self._settings.batch_rows, max_bytes or self._settings.batch_bytes

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

    async def next_items(self) -> list[Payload]:
        """Wait for items, and return those that have arrived: at most half a window, and none at the end of the stream.

        They count as consumed, so that more are requested, when this is called again. It may be canceled: no item is
        lost.

        Raises:
            WeirpoolError: The error that failed the stream, after all its items were returned.

        """
        inbound = await self._opened()
        while not length_hint(inbound.ready) and not inbound.prepare():
            if not inbound.over:
                await inbound.arrival()
            elif inbound.error is None:
                return []
            else:
                inbound = await self._open_again(inbound, inbound.error)
        return list(inbound.ready)

    async def arrival(self) -> bool:
        """Wait until there are items for :meth:`take`; return False at the end of the stream.

        Raises:
            WeirpoolError: The error that failed the stream, after all its items were taken.

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


async def converted(
    batches: AsyncGenerator[pyarrow.RecordBatch, None], conversion: Conversion
) -> AsyncGenerator[pyarrow.RecordBatch, None]:
    """Yield the rows of batches of items."""
    async with aclosing(batches):
        async for batch in batches:
            for rows in conversion.convert(batch):
                yield rows


async def collected(items: Items, conversion: Conversion | None, limit: int | None, max_bytes: int) -> pyarrow.Table:
    """Return the rows of a stream as a table; see :meth:`Items.to_arrow`."""
    from ..frames.tables import TableBuilder

    table = TableBuilder(limit, max_bytes, conversion)
    try:
        while (room := table.room()) and (batch := await items.next_batch(room)) is not None:
            table.add(batch)
    finally:
        await items.end()
    return table.finish()


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
