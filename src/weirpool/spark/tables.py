"""Serves a DataFrame, or the result of a streaming query, to the clients of a service.

Spark's tasks send the rows to this process, which appends them to a journal, each exactly once; clients read that. No
row is collected on Spark's driver: it passes from a task to the disk here, and each client reads at its own pace, as
often as it likes.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame

from ..access.admission import require
from ..errors import ApplicationError, JournalError, LocalError
from ..journal.layout import check_name, log_folder
from ..journal.reader import JournalReader
from ..journal.retention import trim
from ..protocols import EXAMPLE_URL
from ..urls import parse_url
from .given import FORMAT

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from ..aio.service import Service
    from ..aio.setup import Setup
    from ..payload import Payload

__all__ = ["Published", "publish"]

logger = logging.getLogger("weirpool.spark")

SOURCE: Final = "rows"
CHECKPOINT: Final = "_checkpoint"
READER: Final = "published"
DEFAULT_KEEP_BYTES: Final = 1 << 30
TRIM_SECONDS: Final = 1.0
UNLIMITED: Final = 1 << 62
LOCAL: Final = str(parse_url(EXAMPLE_URL).with_port(0))
"""An address on the loopback interface."""


def publish(
    frame: DataFrame,
    service: Service,
    route: str,
    *,
    folder: str | os.PathLike[str],
    form: str = "json",
    listen: str | None = None,
    address: str | None = None,
    keep_bytes: int = DEFAULT_KEEP_BYTES,
) -> Published:
    """Register a stream of the rows of a DataFrame: ``async with publish(frame, service, "delays", folder=…)``.

    A client without a request gets all rows of a table, then the end of the stream; of a streaming DataFrame, the rows
    from now on. It may ask for others: `docs/how-to/share-journals.md` has the requests.

    Args:
        frame: The DataFrame. If it is a streaming one, each row of its result is appended once, also after a restart
            with the same folder.
        service: The service; serve it as usual.
        route: The name of the stream.
        folder: Where the rows are kept. A folder that has the rows of a table already is served as it is.
        form: "json" for a JSON object per row, or "arrow" for an Arrow IPC stream of many rows per item.
        listen: Where Spark's tasks send the rows; None: a port of this machine that others cannot reach. On a cluster
            it must be an address that tasks reach, with TLS: ``rsocket+tls://:7900?cert=…&key=…``. They show a token
            that is chosen at random.
        address: The URL by which tasks reach it, if that differs from `listen`.
        keep_bytes: Of a streaming DataFrame, the bytes of rows to keep for clients that ask for earlier ones.

    Returns:
        An object that computes and serves when it is entered, and stops when it is left.

    Raises:
        LocalError: The route is taken, the form is unknown, or the frame has no columns.

    """
    if form not in ("json", "arrow"):
        raise LocalError(f"form is {form!r}; it must be json or arrow")
    if not frame.columns:
        raise LocalError("a frame without columns has nothing to publish")
    check_name(route, "route")
    return Published(frame, service, route, Path(folder), form, (listen or LOCAL, address), keep_bytes)


class Published:
    """A DataFrame that is served; see `publish`.

    Attributes:
        query: The streaming query; None before it has started, and for a table.

    """

    def __init__(
        self,
        frame: DataFrame,
        service: Service,
        route: str,
        folder: Path,
        form: str,
        place: tuple[str, str | None],
        keep_bytes: int,
    ) -> None:
        from ..serving.feed import JournalFeed
        from ..serving.subscriptions import Subscription

        self.query: StreamingQuery | None = None
        self._frame = frame
        self._route = route
        self._folder = folder
        self._form = form
        self._listen, self._address = place
        self._keep_bytes = keep_bytes
        self._token = secrets.token_urlsafe(32)
        self._complete: asyncio.Future[None] | None = None
        self._stack = AsyncExitStack()
        streaming = frame.isStreaming
        default = Subscription() if streaming else Subscription(start="earliest", end="now")
        feed = JournalFeed(folder, SOURCE, default)
        service.stream(route)(feed if streaming else partial(self._when_complete, feed))

    async def __aenter__(self) -> Published:
        self._complete = asyncio.get_running_loop().create_future()
        async with AsyncExitStack() as stack:
            work = asyncio.create_task(self._run(await self._received(stack)))
            stack.push_async_callback(_canceled, work)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.query is not None:
            await asyncio.to_thread(self.query.stop)
        await self._stack.aclose()

    async def complete(self) -> None:
        """Wait until all rows of a table can be read, or a query has ended; raise the error that has ended it."""
        assert self._complete is not None
        await asyncio.shield(self._complete)

    async def _received(self, stack: AsyncExitStack) -> str:
        """Receive rows from Spark's tasks; return the URL to send them to."""
        from ..aio.server import serve
        from ..receiving.receiver import Receiver

        receiver = Receiver(self._folder, {self._route: SOURCE}, budget_bytes=UNLIMITED)
        await stack.enter_async_context(receiver)
        server = await stack.enter_async_context(serve(receiver.service, self._listen, acceptor=self._accept))
        return self._address or server.urls[0].partition("?")[0]

    def _accept(self, setup: Setup) -> None:
        """Admit only the tasks of this table."""
        from .. import Bearer

        require(Bearer(self._token))(setup)

    async def _run(self, url: str) -> None:
        assert self._complete is not None
        try:
            if self._frame.isStreaming:
                await self._stream(url)
            elif not await asyncio.to_thread(self._has_rows):
                await asyncio.to_thread(self._write, url)
        except Exception as error:
            logger.exception("route %r: the rows could not be computed", self._route)
            self._complete.set_exception(error)
            # Clients are told; the caller may not ask.
            self._complete.exception()
        else:
            self._complete.set_result(None)

    def _has_rows(self) -> bool:
        """Return True if an earlier process has written the table: its rows were committed at once."""
        return JournalReader(self._folder, SOURCE).end > 0

    def _write(self, url: str) -> None:
        """Send the rows of a table."""
        _activate(self._frame)
        writer = self._items().write.format(FORMAT).options(**self._options(url))
        writer.mode("append").save()

    async def _stream(self, url: str) -> None:
        """Send the rows of a streaming query until it ends, and delete old ones."""
        self.query = query = await asyncio.to_thread(self._start, url)
        ended = asyncio.create_task(asyncio.to_thread(query.awaitTermination))
        while not ended.done():
            await asyncio.wait([ended], timeout=TRIM_SECONDS)
            await asyncio.to_thread(self._trim)
        await ended

    def _start(self, url: str) -> StreamingQuery:
        _activate(self._frame)
        writer = self._items().writeStream.format(FORMAT).options(**self._options(url))
        return writer.option("checkpointLocation", str(self._folder / CHECKPOINT)).start()

    def _trim(self) -> None:
        """Keep the newest rows alone. It is tried again if that fails."""
        with suppress(JournalError):
            end = JournalReader(self._folder, SOURCE).end
            trim(log_folder(self._folder, SOURCE), end, reader=READER, retain_bytes=self._keep_bytes)

    def _options(self, url: str) -> dict[str, str]:
        return {"url": url, "route": self._route, "delivery": "transactional", "token": self._token}

    def _items(self) -> DataFrame:
        """Return the frame with the data of items as its only column, computed by Spark."""
        if self._form == "json":
            return self._frame.selectExpr("CAST(to_json(struct(*)) AS BINARY) AS data")
        return self._frame.mapInArrow(_arrow_items, "data binary")

    async def _when_complete(self, feed: Any, request: Payload) -> AsyncIterator[Any]:
        """Yield the rows of a table when all of them can be read."""
        try:
            await self.complete()
        except Exception as error:
            raise ApplicationError(message="the table could not be computed; see the server's log") from error
        async for items in feed(request):
            yield items


def _activate(frame: DataFrame) -> None:
    """Make the session of a frame the active one of this thread: otherwise Spark does not find formats in Python."""
    frame.sparkSession.createDataFrame([], "nothing INT")


def _arrow_items(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return each batch of a task as one item."""
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        yield pa.RecordBatch.from_arrays([pa.array([sink.getvalue().to_pybytes()], pa.binary())], ["data"])


async def _canceled(work: asyncio.Task[None]) -> None:
    work.cancel()
    with suppress(asyncio.CancelledError):
        await work
