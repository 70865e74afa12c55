"""The blocking stream."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Generator
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING

from ..aio import streams as aio
from ..aio.items import TABLE_BYTES
from ..errors import ApplicationError
from ..payload import Payload
from . import tables
from .loop import LoopThread
from .pull import Pull

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

__all__ = ["Batches", "Stream"]


class Stream:
    """A stream or channel; :meth:`weirpool.sync.Peer.stream` and `channel` return one.

    Use it as ``with`` and iterate over it, for single items or over :meth:`batches`. Items that you do not take are not
    requested: the peer sends at most its credit ahead. If you exit a loop early, another loop continues at the next
    item. Several threads may consume the items of one stream, each with its own loop. Without a block, a loop opens the
    stream and cancels it at its end. An iteration that waits longer than the timeout raises :exc:`TimeoutError`, and
    may be repeated. The errors are those of :class:`weirpool.Stream`.
    """

    def __init__(
        self, raw: aio.Stream, owner: object, loop: LoopThread, what: str, timeout: float | None = None
    ) -> None:
        self._raw = raw
        # A peer that is garbage closes its connection.
        self._owner = owner
        self._loop = loop
        self._what = what
        self._timeout = timeout
        self._entered = False
        self._items: deque[Payload] = deque()
        # For threads that wait for items.
        self._lock = threading.Lock()
        self._pull: Pull[list[Payload]] = Pull(loop, what, timeout)

    def __repr__(self) -> str:
        return f"<Stream {self._what}{', over' if self.over else ''}>"

    def __enter__(self) -> Stream:
        self._loop.wait(self._raw.__aenter__(), self._timeout, self._what)
        self._entered = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._end()

    def __iter__(self) -> Generator[Payload, None, None]:
        items = self._items
        try:
            while items or self._more():
                # Another thread may have taken them.
                while items:
                    try:
                        item = items.popleft()
                    except IndexError:
                        break
                    yield item
        finally:
            if not self._entered:
                self._end()

    @property
    def ready(self) -> bool:
        """True if the next item has arrived."""
        return bool(self._items) or self._raw.ready

    @property
    def stream_id(self) -> int:
        """The stream id on the wire; 0 before the stream is open."""
        return self._raw.stream_id

    @property
    def over(self) -> bool:
        """True if no more items will arrive. Items that have arrived may not be consumed yet."""
        return self._raw.over

    @property
    def error(self) -> Exception | None:
        """The error that failed the stream; None while it is open, or if it completed."""
        return self._raw.error

    def grant(self, count: int) -> None:
        """Request `count` more items on a stream with `manual=True`. See :meth:`weirpool.Stream.grant`."""
        self._loop.call(self._raw.grant, count)

    def cancel(self, metadata: bytes | None = None) -> None:
        """Cancel the stream. Items that have arrived can still be consumed. See :meth:`weirpool.Stream.cancel`."""
        self._loop.call(self._raw.cancel, metadata)

    def push(self, metadata: bytes) -> None:
        """Send metadata that concerns this stream, in order with its items. See :meth:`weirpool.Stream.push`."""
        self._loop.call(self._raw.push, metadata)

    def with_errors(self) -> Generator[Payload | ApplicationError, None, None]:
        """Return an iterator of the items, and of the errors between them. See :meth:`weirpool.Stream.with_errors`."""
        errors = self._raw.report_errors()
        return (errors.of(payload) for payload in self)

    def batches(
        self,
        max_rows: int | None = None,
        max_bytes: int | None = None,
        *,
        schema: pyarrow.Schema | None = None,
        encoding: str | None = None,
    ) -> Generator[pyarrow.RecordBatch, None, None]:
        """Return the items as record batches. Arguments are those of :meth:`weirpool.Stream.batches`."""
        return tables.batches(Batches(self), self._raw.conversion(schema, encoding), max_rows, max_bytes)

    def reader(self, *, schema: pyarrow.Schema | None = None, encoding: str | None = None) -> pyarrow.RecordBatchReader:
        """Return a reader of the items, for DuckDB, Polars, pandas and others, which request items as they read.

        Arguments are those of :meth:`batches`.
        """
        return tables.reader(Batches(self), self._raw.conversion(schema, encoding))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.reader().__arrow_c_stream__(requested_schema)

    def to_arrow(
        self,
        limit: int | None = None,
        *,
        max_bytes: int = TABLE_BYTES,
        schema: pyarrow.Schema | None = None,
        encoding: str | None = None,
    ) -> pyarrow.Table:
        """Return the items as a table. Arguments are those of :meth:`weirpool.Stream.to_arrow`."""
        return tables.table(Batches(self), self._raw.conversion(schema, encoding), limit, max_bytes)

    def to_polars(
        self,
        limit: int | None = None,
        *,
        max_bytes: int = TABLE_BYTES,
        schema: pyarrow.Schema | None = None,
        encoding: str | None = None,
    ) -> polars.DataFrame:
        """Return the items as a DataFrame of Polars. Arguments are those of :meth:`weirpool.Stream.to_arrow`."""
        from ..frames.tables import frame_of

        return frame_of(self.to_arrow(limit, max_bytes=max_bytes, schema=schema, encoding=encoding))

    def to_pandas(
        self,
        limit: int | None = None,
        *,
        max_bytes: int = TABLE_BYTES,
        schema: pyarrow.Schema | None = None,
        encoding: str | None = None,
    ) -> pandas.DataFrame:
        """Return the items as a DataFrame of pandas. Arguments are those of :meth:`weirpool.Stream.to_arrow`."""
        return self.to_arrow(limit, max_bytes=max_bytes, schema=schema, encoding=encoding).to_pandas()

    def _more(self) -> bool:
        """Wait for items; return False at the end."""
        with self._lock:
            return bool(self._items) or self._more_locked()

    def _more_locked(self) -> bool:
        self._items.extend(self._pull.wait(self._raw.next_items()))
        return bool(self._items)

    def _end(self, batches: Pull[pyarrow.RecordBatch | None] | None = None) -> None:
        """Cancel the stream, and who waits for its items or `batches`."""
        self._loop.finish(partial(self._ended, batches))

    async def _ended(self, batches: Pull[pyarrow.RecordBatch | None] | None) -> None:
        await self._pull.stop()
        if batches is not None:
            await batches.stop()
        await self._raw.__aexit__(None, None, None)


class Batches:
    """Takes the items of a stream as record batches with the columns `data` and `metadata`."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._pull: Pull[pyarrow.RecordBatch | None] = Pull(stream._loop, stream._what, stream._timeout)

    def __call__(self, max_rows: int | None = None, max_bytes: int | None = None) -> pyarrow.RecordBatch | None:
        """Return the next batch; None at the end."""
        stream = self._stream
        if stream._items or stream._pull.pending:
            batch = self._of_single_items(max_rows)
            if batch is not None:
                return batch
        return self._pull.wait(stream._raw.next_batch(max_rows, max_bytes))

    def close(self) -> None:
        """Cancel a stream that is used without a block."""
        if not self._stream._entered:
            self._stream._end(self._pull)

    def _of_single_items(self, max_rows: int | None) -> pyarrow.RecordBatch | None:
        """Return items that an iteration has received and not consumed."""
        from ..wire.columns import ColumnBuilder

        stream = self._stream
        builder = ColumnBuilder()
        with stream._lock:
            if not stream._items and stream._pull.pending:
                stream._more_locked()
            while stream._items and (max_rows is None or len(builder) < max_rows):
                builder.append_payload(stream._items.popleft())
        return builder.finish() if len(builder) else None
