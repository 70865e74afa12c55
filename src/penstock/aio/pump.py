"""The sending half of a stream: passes items of a source to the session as credit and the link allow."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterable, Awaitable, Iterable, Iterator
from contextvars import Context, copy_context
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ..errors import LocalError, StreamClosed
from ..payload import MetadataPush, Payload, PayloadRun
from .exchanges import FATAL, Exchanges
from .handlers import close_items

if TYPE_CHECKING:
    from ..wire.columns import RowBuffers, WidthRows

__all__ = ["Pump", "Source", "TaskPump", "check_source", "pump"]

logger = logging.getLogger("penstock.aio")

Source: TypeAlias = AsyncIterable[Any] | Iterable[Any] | Awaitable[Any]
"""Yields items: Payload, bytes or str, or many at once as a PayloadRun, a pyarrow.RecordBatch or a pyarrow.Array. It
may also yield MetadataPush, which is not an item."""

BURST_BYTES: Final = 60_000
"""Bytes to send before checking whether the link accepts more: one chunk of output."""
BURSTS: Final = 8
"""Bursts of one stream before other streams get a turn of the loop."""
FRAME_BYTES: Final = 16
"""The approximate overhead of an item on the wire."""
SHORT_BYTES: Final = 2_000
"""The maximum size of a stream's last burst that is written with its batch. A batch of several such streams is written
before it has much more than a burst; see `FLUSH_AFTER` in `flow`."""

SINGLE: Final = (bytes, str, Payload, PayloadRun)
"""Iterable types that are items, not sources of items."""

_END = object()
_NOTHING = object()


def check_source(source: object) -> None:
    """Check that items can be taken from a source.

    Raises:
        LocalError: `source` is not iterable, or is a single item.

    """
    if not (isinstance(source, AsyncIterable | Iterable) or isawaitable(source)) or isinstance(source, SINGLE):
        raise LocalError(f"a source of items is an iterable or an async iterable, not {type(source).__name__}")


def pump(
    exchanges: Exchanges,
    stream_id: int,
    credit: int,
    source: Source,
    name: str = "",
    context: Context | None = None,
) -> None:
    """Send the items of `source` on a stream, then complete it.

    `name` is the name of the handler that yields them; empty on the side that opened the stream. The source runs in
    `context`, or in a copy of the current one. An error of `iter(source)` fails the stream.

    Raises:
        LocalError: `source` is not iterable; see `check_source`.

    """
    half: Pump | TaskPump
    if context is None:
        context = copy_context()
    if isinstance(source, AsyncIterable) or isawaitable(source):
        half = TaskPump(exchanges, stream_id, credit, source, name, context)
    else:
        if type(source) is not tuple:
            check_source(source)
        try:
            items = context.run(iter, source)
        except FATAL:
            raise
        except BaseException as error:
            exchanges.fail(stream_id, error, name)
            return
        half = Pump(exchanges, stream_id, credit, items, name, context)
    exchanges.outbound[stream_id] = half
    half.start()


def many_of(item: object) -> PayloadRun | RowBuffers | WidthRows | None:
    """Return an object of many items in a form that can be sent in parts; None for a single item."""
    if isinstance(item, PayloadRun):
        return item
    # A record batch of pyarrow, or of any library that implements Arrow's C data interface.
    if hasattr(item, "__arrow_c_array__"):
        from ..wire.columns import rows_of

        return rows_of(item)
    return None


class Half:
    """The common part of both pumps: sends one item, or many.

    Attributes:
        credit: Items that may be sent now.
        put: The session's `send`; looked up once, because it is called for each item.
        burst_left: Bytes that may be sent before the link is checked again.
        many: Items that were yielded together, to be sent from index `offset` on before any others.
        fragment_bytes: The size above which an item is sent in fragments or parts.
        context: The context in which the source runs.
        large: `many` is one item that may be sent in parts: other streams go first when the link accepts output again.
        over: Nothing more is sent.

    """

    __slots__ = (
        "burst_left", "context", "credit", "exchanges", "flow", "fragment_bytes", "large", "many", "name", "offset",
        "over", "put", "session", "source", "stream_id"
    )  # fmt: skip

    def __init__(
        self, exchanges: Exchanges, stream_id: int, credit: int, source: Any, name: str, context: Context
    ) -> None:
        self.exchanges = exchanges
        self.flow = exchanges.flow
        self.session = exchanges.session
        self.put = exchanges.session.send
        self.stream_id = stream_id
        self.credit = credit
        self.source = source
        self.name = name
        self.context = context
        self.burst_left = BURST_BYTES
        self.many: PayloadRun | RowBuffers | WidthRows | None = None
        self.offset = 0
        self.large = False
        self.fragment_bytes = exchanges.flow.settings.fragment_bytes
        self.over = False

    def send(self, item: object) -> None:
        """Send an item, or a burst of many. There must be credit.

        Raises:
            StreamClosed: The peer has canceled; the event for it has not been handled yet.

        """
        if type(item) is Payload:
            payload = item
        elif type(item) is bytes or type(item) is str:
            payload = Payload(item)
        elif type(item) is MetadataPush:
            self.session.push(item.metadata, self.stream_id)
            return
        else:
            self.many = many_of(item)
            if self.many is not None:
                self.send_many()
                return
            payload = Payload(item)  # type: ignore[arg-type]
        if len(payload.data) > self.fragment_bytes:
            # A large item is sent part by part, so that other streams get turns if the protocol allows it.
            self.many = PayloadRun.of((payload,))
            self.large = True
            self.send_many()
            return
        self.burst_left -= len(payload.data) + FRAME_BYTES
        self.credit = self.put(self.stream_id, payload)

    def send_many(self) -> None:
        """Send as much of `many` as credit allows; at most a burst of a record batch."""
        session = self.session
        many = self.many
        assert many is not None
        count = len(many)
        if isinstance(many, PayloadRun):
            if many.size > BURST_BYTES and many.width:
                # A run of numbers may be large, so it is sent a burst at a time, like a record batch.
                stop = min(self.offset + max(BURST_BYTES // max(many.width, FRAME_BYTES // 4), 1), count)
                self.offset += session.send_run(self.stream_id, many.part(self.offset, stop))
            else:
                self.offset += session.send_run(self.stream_id, many, self.offset)
        elif count:
            # Only a burst is encoded, and sent while it is in the processor's cache.
            # The credit may be 2^63-1, so adding to it would overflow.
            stop = self.offset + min(self.credit, count - self.offset)
            run = many.run(self.offset, stop, BURST_BYTES, FRAME_BYTES)
            self.offset += session.send_run(self.stream_id, run)
        if self.offset == count:
            self.many = None
            self.large = False
            self.offset = 0
        self.burst_left = 0
        self.credit = session.credit(self.stream_id)


class Pump(Half):
    """Sends the items of a plain iterator. There is no task: each grant of credit continues it."""

    __slots__ = ("next_item", "running")

    def __init__(
        self, exchanges: Exchanges, stream_id: int, credit: int, source: Iterator[Any], name: str, context: Context
    ) -> None:
        super().__init__(exchanges, stream_id, credit, source, name, context)
        # An item that was taken from the source without credit to send it.
        self.next_item: object = _NOTHING
        # True while the source runs.
        self.running = False

    def start(self) -> None:
        """Begin."""
        self.step()

    def granted(self) -> None:
        """Continue, because the peer requested more items."""
        self.credit = self.session.credit(self.stream_id)
        self.step()

    def resumed(self) -> None:
        """Continue, because the link accepts output again."""
        if self.large:
            # Each part fills the link. Streams that need a turn of the loop to continue must get it first.
            loop = self.flow.loop
            loop.call_soon(loop.call_soon, self.step)
        else:
            self.step()

    def canceled(self, metadata: bytes | None = None) -> None:
        """Stop. The half is no longer in the table."""
        self.over = True
        if not self.running:
            self._close()

    def step(self) -> None:
        """Send as much as possible now; more credit, a writable link, or another turn of the loop continues."""
        if self.over or self.running:
            return
        flow = self.flow
        self.running = True
        try:
            for _ in range(BURSTS):
                if self.credit <= 0 or flow.paused or self.over:
                    break
                self.context.run(self.burst)
                if self.burst_left < BURST_BYTES - SHORT_BYTES or not self.over:
                    flow.write()
            else:
                flow.loop.call_soon(self.step)
        except StreamClosed:
            self.over = True
        except FATAL:
            raise
        except BaseException as error:
            self.over = True
            self.exchanges.fail(self.stream_id, error, self.name)
        self.running = False
        if self.over:
            self._close()
        flow.schedule_write()

    def burst(self) -> None:
        """Send items until a chunk of output is full, the credit is used, or the source ends."""
        self.burst_left = BURST_BYTES
        if self.many is not None:
            self.send_many()
        elif self.next_item is not _NOTHING:
            self.send(self.next_item)
            self.next_item = _NOTHING
        while self.credit > 0 and self.burst_left > 0:
            item = next(self.source, _END)
            if item is _END:
                self._complete()
                return
            self.send(item)
        # One item is taken ahead of credit, so that a peer that requested exactly all items gets the completion.
        if self.credit <= 0 and self.many is None:
            self.next_item = next(self.source, _END)
            if self.next_item is _END:
                self._complete()

    def _complete(self) -> None:
        self.over = True
        self.session.complete(self.stream_id)

    def _close(self) -> None:
        self.exchanges.half_ended(self, self.stream_id, self.name)
        close = getattr(self.source, "close", None)
        if close is None:
            return
        try:
            self.context.run(close)
        except FATAL:
            raise
        except BaseException:
            logger.exception("%s failed while its items were closed", self.name or "the source of a stream")


class TaskPump(Half):
    """Sends the items of an async iterable, in a task."""

    __slots__ = ("replaced", "task", "waiter")

    def __init__(
        self, exchanges: Exchanges, stream_id: int, credit: int, source: Source, name: str, context: Context
    ) -> None:
        super().__init__(exchanges, stream_id, credit, source, name, context)
        self.task: asyncio.Future[None] | None = None
        # The task waits for it while it may not send.
        self.waiter: asyncio.Future[None] | None = None
        # A plain pump has taken over.
        self.replaced = False

    def start(self) -> None:
        """Begin."""
        self.task = self.exchanges.start(self._run(), self._finished, self.context)

    def granted(self) -> None:
        """Continue, because the peer requested more items."""
        self.credit = self.session.credit(self.stream_id)
        self.resumed()

    def resumed(self) -> None:
        """Continue, because the link accepts output again."""
        waiter = self.waiter
        if waiter is not None and self.credit > 0 and not self.flow.paused:
            self.waiter = None
            if not waiter.done():
                waiter.set_result(None)

    def canceled(self, metadata: bytes | None = None) -> None:
        """Stop. The half is no longer in the table."""
        self.over = True
        if self.task is not None:
            self.task.cancel(metadata)

    async def _run(self) -> None:
        flow = self.flow
        source = await self.source if isawaitable(self.source) else self.source
        if not isinstance(source, AsyncIterable):
            pump(self.exchanges, self.stream_id, self.session.credit(self.stream_id), source, self.name)
            self.replaced = True
            return
        items = aiter(source)
        try:
            async for item in items:
                if self.credit <= 0 or self.burst_left <= 0 or flow.paused:
                    await self._ready()
                self.send(item)
                while self.many is not None:
                    await self._ready()
                    self.send_many()
                flow.schedule_write()
        finally:
            await close_items(items)
        self.session.complete(self.stream_id)

    async def _ready(self) -> None:
        """Wait for credit and a writable link. Other streams get a turn between bursts."""
        flow = self.flow
        flow.write()
        if self.burst_left <= 0:
            await asyncio.sleep(0)
        while self.credit <= 0 or flow.paused:
            self.waiter = flow.loop.create_future()
            await self.waiter
            if self.large:
                # As in `Pump.resumed`.
                await asyncio.sleep(0)
        self.burst_left = BURST_BYTES

    def _finished(self, task: asyncio.Future[None]) -> None:
        """Report a failure to the peer, and remove this half."""
        self.exchanges.tasks.discard(task)
        if isawaitable(self.source) and hasattr(self.source, "close"):
            # The coroutine is still open if the task was canceled before its first step.
            self.source.close()
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        # The peer has canceled, so it needs no error.
        expected = isinstance(error, StreamClosed) or (self.over and task.cancelled())
        if error is not None and not expected:
            self.exchanges.fail(self.stream_id, error, self.name)
        if not self.replaced:
            self.exchanges.half_ended(self, self.stream_id, self.name)
        self.flow.schedule_write()
