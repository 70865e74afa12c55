"""Sends the rows of one task to a peer, as its credit allows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Final

import msgspec
import pyarrow as pa

from ..errors import Canceled, PenstockError
from .items import Origin, Packer
from .options import SinkOptions

if TYPE_CHECKING:
    from ..aio.peer import Peer

__all__ = ["publish"]

RUN_ROWS: Final = 10_000
"""Rows that are packed together; the default size of Spark's batches."""


def publish(options: SinkOptions, packer: Packer, origin: Origin, batches: Iterator[pa.RecordBatch]) -> int:
    """Send rows, and return their number when the peer has accepted them.

    On a channel, this is when the peer has completed its side. With fire-and-forget, the rows have been written to the
    network, and nothing more is known.

    Raises:
        ConnectError: The peer cannot be reached.
        ApplicationError: The peer rejected the rows, or failed.
        SessionError: The connection broke.

    """
    from ..aio.loop import run

    return run(_publish(options, Feed(packer, origin, batches)))


class Feed:
    """The rows of a task as items. Spark computes the batches during iteration, which may take long.

    Attributes:
        count: Rows that were sent.
        error: The error that ended the rows early.
        over: Set when no more rows are sent.
        complete: All rows were sent.
    """

    def __init__(self, packer: Packer, origin: Origin, batches: Iterator[pa.RecordBatch]) -> None:
        self.origin = origin
        self.count = 0
        self.error: Exception | None = None
        self.over = asyncio.Event()
        self.complete = False
        self._packer = packer
        self._batches = batches

    async def rows(self) -> AsyncIterator[pa.RecordBatch]:
        """Yield the items, as record batches with the columns `data` and `metadata`."""
        try:
            # In a thread, so that the connection's keepalive continues while Spark computes.
            while (batch := await asyncio.to_thread(next, self._batches, None)) is not None:
                for first in range(0, batch.num_rows, RUN_ROWS):
                    part = batch.slice(first, RUN_ROWS)
                    items = self._packer.pack(part, self.origin, self.count)
                    self.count += part.num_rows
                    yield items
            self.complete = True
        except Exception as error:
            self.error = error
            raise
        finally:
            self.over.set()


async def _publish(options: SinkOptions, feed: Feed) -> int:
    from ..aio.client import connect

    send: Callable[[Peer, str, Feed], Awaitable[None]] = _channel if options.kind == "channel" else _fire
    try:
        async with connect(options.url) as peer:
            await send(peer, options.route, feed)
    except PenstockError:
        if feed.error is not None:
            # The connection failed because the rows did.
            raise feed.error from None
        raise
    return feed.count


async def _channel(peer: Peer, route: str, feed: Feed) -> None:
    """Send all rows on one channel, as the items after an empty request, whose metadata has their origin."""
    async with peer.channel(route, b"", feed.rows(), metadata=msgspec.json.encode(feed.origin)) as answers:
        async for _ in answers.batches():
            pass
        # A peer may complete its side at once: the rows are still sent until the last one.
        await feed.over.wait()
    if not feed.complete:
        raise Canceled(
            message=f"the peer canceled route {route!r} after {feed.count} rows of partition {feed.origin.partition}; "
            "its handler must take all items, including those that it drops"
        )


async def _fire(peer: Peer, route: str, feed: Feed) -> None:
    async for items in feed.rows():
        for data, metadata in zip(items.column("data"), items.column("metadata"), strict=True):
            await peer.fire(route, data.as_py(), metadata=metadata.as_py())
