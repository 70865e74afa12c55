"""The sending half of a stream: passes items of a source to the session as credit and the link allow."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterable, Callable, Iterator
from contextvars import Context, copy_context
from inspect import isawaitable
from typing import Any, Final

from ..errors import StreamClosed
from .exchanges import Exchanges, contained, failure_of
from .half import Half
from .handlers import close_items
from .sources import Source, check_source

__all__ = ["Pump", "TaskPump", "pump"]

logger = logging.getLogger("weirpool.aio")


FIRST_BYTES: Final = 4_000
"""Bytes that the task of an async source sends before it waits for its turn."""
SHORT_BYTES: Final = 2_000
"""The maximum size of a stream's last burst that is written with its batch. A batch of several such streams is written
before it has much more than a burst; see `FLUSH_AFTER` in `flow`."""

SOURCE: Final = "a source of items"
"""The name of a task on the side that opened the stream."""

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
        """Send items until a chunk of output is full, the credit or the time is used, or the source ends."""
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
            if self.credit > 0:
                self.limit_burst()
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
        except BaseException:
            logger.exception("%s failed while its items were closed", self.name or "the source of a stream")


class TaskPump(Half):
    """Sends the items of an async iterable, in a task.

    A source with a method `demanded(credit)` is told how many more items may be taken from it and sent: when it is
    begun, after each item, and with each grant of the peer. It is asked for an item even without credit, and should
    wait until it is told of some.
    """

    __slots__ = ("on_credit", "replaced", "task", "turn", "waiter")

    def __init__(
        self, exchanges: Exchanges, stream_id: int, credit: int, source: Source, name: str, context: Context
    ) -> None:
        super().__init__(exchanges, stream_id, credit, source, name, context)
        self.burst_left = self.given = FIRST_BYTES
        self.begun = self.lane.scheduler.clock()
        self.task: asyncio.Future[None] | None = None
        self.turn = -1  # The turn in which it was woken.
        self.on_credit: Callable[[int], None] | None = None
        # The task waits for it while it may not send.
        self.waiter: asyncio.Future[None] | None = None
        self.replaced = False  # A plain pump has taken over.

    def start(self) -> None:
        """Begin."""
        if self.name:
            self.exchanges.slots.take(False)
        self.task = self.exchanges.start(self._run(), self._finished, self.context, self.name or SOURCE)

    def granted(self) -> None:
        """Continue, because the peer requested more items."""
        self.credit = self.session.credit(self.stream_id)
        if self.on_credit is not None:
            # While it waits, an item that was taken needs some of the credit.
            self.on_credit(self.credit - (self.waiter is not None))
        if self.waiter is not None and self.credit > 0:
            self.lane.ready(self)

    def canceled(self, metadata: bytes | None = None) -> None:
        """Stop. The half is no longer in the table."""
        if self.name and not self.over:
            self.exchanges.slots.linger()
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
        await contained(self._send_all())

    async def _send_all(self) -> None:
        flow = self.flow
        source = await self.source if isawaitable(self.source) else self.source
        if not isinstance(source, AsyncIterable):
            pump(self.exchanges, self.stream_id, self.session.credit(self.stream_id), source, self.name)
            self.replaced = self.exchanges.outbound.get(self.stream_id) is not self
            return
        items = aiter(source)
        self.on_credit = getattr(source, "demanded", None)
        if self.on_credit is not None:
            self.on_credit(self.session.credit(self.stream_id))
        try:
            async for item in items:
                if self.credit <= 0 or self.burst_left <= 0 or flow.paused:
                    await self._ready()
                left = self.burst_left
                self.send(item)
                flow.schedule_write(left - self.burst_left)
                self.limit_burst()
                while self.many is not None:
                    await self._ready()
                    self.send_many()
                    flow.schedule_write()
                if self.on_credit is not None:
                    # Streams that share what a session may send have no grants of their own.
                    self.on_credit(self.credit)
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
            # Other tasks that were woken with this one may have run first.
            self.begun = self.lane.scheduler.clock()

    def _finished(self, task: asyncio.Future[None]) -> None:
        """Report a failure to the peer, and remove this half."""
        self.exchanges.tasks.discard(task)
        if self.name:
            self.exchanges.slots.free(self.over)
        # The traceback of its exception refers to this half: both would live until the next garbage collection.
        self.task = None
        self.lane.remove(self)
        if isawaitable(self.source) and hasattr(self.source, "close"):
            # The coroutine is still open if the task was canceled before its first step.
            self.source.close()
        error = failure_of(task)
        # The peer has canceled, so it needs no error.
        expected = isinstance(error, StreamClosed) or (self.over and task.cancelled())
        if error is not None and not expected:
            self.exchanges.fail(self.stream_id, error, self.name)
        if self.replaced:
            self.exchanges.half_replaced(self, self.stream_id)
        else:
            self.exchanges.half_ended(self, self.stream_id, self.name)
        self.flow.schedule_write()
