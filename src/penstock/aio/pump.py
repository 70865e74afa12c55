"""The sending half of a stream: passes items of a source to the session as credit and the link allow."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterable, Iterator
from contextvars import Context, copy_context
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final

from ..errors import CreditExceeded, StreamClosed
from ..payload import MetadataPush, Payload, PayloadRun
from .exchanges import FATAL, Exchanges
from .handlers import close_items
from .scheduler import QUANTUM, SLOW_SECONDS
from .sources import Source, check_source, many_of

if TYPE_CHECKING:
    from ..wire.columns import RowBuffers, WidthRows

__all__ = ["Pump", "TaskPump", "pump"]

logger = logging.getLogger("penstock.aio")


FIRST_BYTES: Final = 4_000
"""Bytes that the task of an async source sends before it waits for its turn."""
FRAME_BYTES: Final = 16
"""The approximate overhead of an item on the wire."""
SHORT_BYTES: Final = 2_000
"""The maximum size of a stream's last burst that is written with its batch. A batch of several such streams is written
before it has much more than a burst; see `FLUSH_AFTER` in `flow`."""

_END = object()
_NOTHING = object()


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
    if type(source) is tuple and len(source) == 1 and not exchanges.flow.paused:
        # The response to a call does not wait for its turn.
        half.step()
    else:
        half.start()


class Half:
    """The common part of both pumps: sends one item, or many.

    Attributes:
        credit: Items that may be sent now.
        put: The session's `send`, which is called for each item.
        burst_left: Bytes that may be sent before other halves have their turn; negative: what was sent too much.
        given: The value of `burst_left` when this turn began.
        quantum: Bytes that each turn adds to it: less than `QUANTUM` if the source is slow.
        many: Items that were yielded together, to be sent from index `offset` on before any others.
        part_bytes: The approximate size of the parts of the first of these items that were sent.
        fragment_bytes: The size above which an item is sent in fragments or parts.
        context: The context in which the source runs.
        over: Nothing more is sent.

    """

    __slots__ = (
        "burst_left", "context", "credit", "exchanges", "flow", "fragment_bytes", "given", "held", "lane", "many",
        "name", "offset", "over", "part_bytes", "put", "quantum", "session", "source", "stream_id"
    )  # fmt: skip

    def __init__(
        self, exchanges: Exchanges, stream_id: int, credit: int, source: Any, name: str, context: Context
    ) -> None:
        self.exchanges = exchanges
        self.flow = exchanges.flow
        self.lane = exchanges.flow.lane
        self.session = exchanges.session
        self.put = exchanges.session.send
        self.stream_id = stream_id
        self.credit = credit
        self.source = source
        self.name = name
        self.context = context
        self.burst_left = self.given = self.held = 0
        self.quantum = QUANTUM
        self.many: PayloadRun | RowBuffers | WidthRows | None = None
        self.offset = 0
        self.part_bytes = 0
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
            self.send_many()
            return
        self.burst_left -= len(payload.data) + FRAME_BYTES
        try:
            self.credit = self.put(self.stream_id, payload)
        except CreditExceeded:
            # Another stream has used what all streams of a River session share.
            self.many, self.credit = PayloadRun.of((payload,)), 0

    def send_many(self) -> None:
        """Send as much of `many` as credit allows; at most a chunk of a record batch."""
        session = self.session
        many = self.many
        assert many is not None
        count = len(many)
        if isinstance(many, PayloadRun):
            if many.size > QUANTUM and many.width:
                # A run of numbers may be large, so it is sent a chunk at a time, like a record batch.
                stop = min(self.offset + max(QUANTUM // max(many.width, FRAME_BYTES // 4), 1), count)
                sent = session.send_run(self.stream_id, many.part(self.offset, stop))
            else:
                sent = session.send_run(self.stream_id, many, self.offset)
            if sent:
                self.burst_left -= max(many.size * sent // count - self.part_bytes, 0)
                self.part_bytes = 0
            elif count:
                # A part of a large item.
                self.burst_left -= self.fragment_bytes
                self.part_bytes += self.fragment_bytes
        elif count:
            # Only a chunk is encoded, and sent while cached. Adding to the credit could overflow: it may be 2^63-1.
            stop = self.offset + min(self.credit, count - self.offset)
            run = many.run(self.offset, stop, QUANTUM, FRAME_BYTES)
            sent = session.send_run(self.stream_id, run)
            self.burst_left -= run.size
        else:
            sent = 0
        self.burst_left -= sent * FRAME_BYTES
        self.offset += sent
        if self.offset == count:
            self.many = None
            self.offset = 0
        elif self.burst_left > 0:
            # The next chunk is for the next turn.
            self.given -= self.burst_left
            self.burst_left = 0
        self.credit = session.credit(self.stream_id)

    def begin_turn(self) -> bool:
        """Add the quantum of a turn; return False if it only pays for what was sent before."""
        self.quantum = min(2 * self.quantum, QUANTUM)
        self.burst_left = self.given = min(self.burst_left, 0) + self.quantum
        return self.burst_left > 0

    def slow(self, seconds: float) -> None:
        """Make the next burst smaller, because this one took long."""
        self.quantum = max(int(self.given * SLOW_SECONDS / seconds) // 2, 1)


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
        if self.credit > 0:
            self.lane.ready(self, True)

    def granted(self) -> None:
        """Continue, because the peer requested more items."""
        self.credit = self.session.credit(self.stream_id)
        if not self.over and not self.running:
            self.lane.ready(self)

    def canceled(self, metadata: bytes | None = None) -> None:
        """Stop. The half is no longer in the table."""
        self.over = True
        self.lane.remove(self)
        if not self.running:
            self._close()

    def step(self) -> int:
        """Send a burst, then wait for the next turn, or for credit; return its bytes."""
        if self.over or self.running or self.credit <= 0:
            return 0
        if not self.begin_turn():
            self.lane.queue(self)
            return 0
        flow = self.flow
        self.running = True
        try:
            self.context.run(self.burst)
            if self.given - self.burst_left > SHORT_BYTES or not self.over:
                flow.write()
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
        elif self.credit > 0:
            self.lane.queue(self)
        flow.schedule_write()
        return self.given - self.burst_left

    def burst(self) -> None:
        """Send items until a chunk of output is full, the credit is used, or the source ends."""
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

    __slots__ = ("replaced", "task", "turn", "waiter")

    def __init__(
        self, exchanges: Exchanges, stream_id: int, credit: int, source: Source, name: str, context: Context
    ) -> None:
        super().__init__(exchanges, stream_id, credit, source, name, context)
        self.burst_left = self.given = FIRST_BYTES
        self.task: asyncio.Future[None] | None = None
        self.turn = -1  # The turn in which it was woken.
        # The task waits for it while it may not send.
        self.waiter: asyncio.Future[None] | None = None
        self.replaced = False  # A plain pump has taken over.

    def start(self) -> None:
        """Begin."""
        self.task = self.exchanges.start(self._run(), self._finished, self.context)

    def granted(self) -> None:
        """Continue, because the peer requested more items."""
        self.credit = self.session.credit(self.stream_id)
        if self.waiter is not None and self.credit > 0:
            self.lane.ready(self)

    def canceled(self, metadata: bytes | None = None) -> None:
        """Stop. The half is no longer in the table."""
        self.over = True
        self.lane.remove(self)
        if self.task is not None:
            self.task.cancel(metadata)

    def step(self) -> int:
        """Let the task send a burst; return the bytes of the one before."""
        waiter = self.waiter
        if waiter is None:
            self.lane.wait_for(self, self.turn)
            return 0
        if self.credit <= 0:
            return 0
        sent = self.given - self.burst_left
        if not self.begin_turn():
            self.lane.queue(self)
        elif not waiter.done():
            self.waiter = None
            waiter.set_result(None)
            self.turn = self.lane.woke(self)
        return sent

    async def _run(self) -> None:
        flow = self.flow
        source = await self.source if isawaitable(self.source) else self.source
        if not isinstance(source, AsyncIterable):
            pump(self.exchanges, self.stream_id, self.session.credit(self.stream_id), source, self.name)
            self.replaced = self.exchanges.outbound.get(self.stream_id) is not self
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
        """Wait for credit, a writable link, and a turn."""
        flow = self.flow
        flow.write()
        while self.credit <= 0 or flow.paused or self.burst_left <= 0:
            self.waiter = flow.loop.create_future()
            if self.credit > 0:
                self.lane.queue(self, self.turn < 0)
            await self.waiter

    def _finished(self, task: asyncio.Future[None]) -> None:
        """Report a failure to the peer, and remove this half."""
        self.exchanges.tasks.discard(task)
        # The traceback of its exception refers to this half: both would live until the next garbage collection.
        self.task = None
        self.lane.remove(self)
        if isawaitable(self.source) and hasattr(self.source, "close"):
            # The coroutine is still open if the task was canceled before its first step.
            self.source.close()
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        # The peer has canceled, so it needs no error.
        expected = isinstance(error, StreamClosed) or (self.over and task.cancelled())
        if error is not None and not expected:
            self.exchanges.fail(self.stream_id, error, self.name)
        if self.replaced:
            self.exchanges.half_replaced(self, self.stream_id)
        else:
            self.exchanges.half_ended(self, self.stream_id, self.name)
        self.flow.schedule_write()
