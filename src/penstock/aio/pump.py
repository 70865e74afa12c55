"""The sending half of a stream: moves what a source yields to the session, as credit and the link allow."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterable, Awaitable, Iterable, Iterator
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ..errors import LocalError, StreamClosed
from ..payload import MetadataPush, Payload, PayloadRun
from .exchanges import Exchanges
from .handlers import close_items

if TYPE_CHECKING:
    from ..wire.columns import RowBuffers, WidthRows

__all__ = ["Pump", "Source", "TaskPump", "pump"]

logger = logging.getLogger("penstock.aio")

Source: TypeAlias = AsyncIterable[Any] | Iterable[Any] | Awaitable[Any]
"""What yields items: Payload, bytes or str, or many at once as a PayloadRun, a pyarrow.RecordBatch or a pyarrow.Array;
and between them MetadataPush, which is no item."""

BURST_BYTES: Final = 60_000
"""Sent before the link is asked whether it takes more: one chunk of output."""
BURSTS: Final = 8
"""Bursts of one stream before the loop gets a turn, and with it all other streams."""
FRAME_BYTES: Final = 16
"""About what an item costs beside its data."""

_END = object()
_NOTHING = object()


def pump(exchanges: Exchanges, stream_id: int, credit: int, source: Source, name: str = "") -> None:
    """Send what `source` yields on a stream, then complete it.

    `name` is that of the handler whose items they are; empty on the side that opened the stream.

    Raises:
        LocalError: `source` is not iterable.

    """
    half: Pump | TaskPump
    if isinstance(source, AsyncIterable) or isawaitable(source):
        half = TaskPump(exchanges, stream_id, credit, source, name)
    elif not isinstance(source, bytes | str | Payload | PayloadRun) and isinstance(source, Iterable):
        half = Pump(exchanges, stream_id, credit, iter(source), name)
    else:
        raise LocalError(f"items come from an iterable or an async iterable, not from {type(source).__name__}")
    exchanges.outbound[stream_id] = half
    half.start()


def many_of(item: object) -> PayloadRun | RowBuffers | WidthRows | None:
    """Return what carries many items in a form that can be sent in parts; None for a single item."""
    if isinstance(item, PayloadRun):
        return item
    # A record batch, of pyarrow or of any library that speaks Arrow's C interface.
    if hasattr(item, "__arrow_c_array__"):
        from ..wire.columns import rows_of

        return rows_of(item)
    return None


class Half:
    """What both pumps have in common: sending one item, or many.

    Attributes:
        credit: Items that may be sent now.
        put: Sends an item; looked up once, because it is called for each.
        room: Bytes that may be sent before the link is asked again.
        many: Items that were yielded together, from index `at` on; they go before anything else.
        fragment_bytes: A larger item travels in fragments or parts.
        large: That is one item, which may travel in parts: the other streams go first when the link has room again.
        over: Nothing more is sent.

    """

    __slots__ = (
        "at", "credit", "exchanges", "flow", "fragment_bytes", "large", "many", "name", "over", "put", "room",
        "session", "source", "stream_id"
    )  # fmt: skip

    def __init__(self, exchanges: Exchanges, stream_id: int, credit: int, source: Any, name: str) -> None:
        self.exchanges = exchanges
        self.flow = exchanges.flow
        self.session = exchanges.session
        self.put = exchanges.session.send
        self.stream_id = stream_id
        self.credit = credit
        self.source = source
        self.name = name
        self.room = BURST_BYTES
        self.many: PayloadRun | RowBuffers | WidthRows | None = None
        self.at = 0
        self.large = False
        self.fragment_bytes = exchanges.flow.settings.fragment_bytes
        self.over = False

    def send(self, item: object) -> None:
        """Send an item, or a burst of many. Needs credit.

        Raises:
            StreamClosed: The peer wants no more; its event is under way.

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
            # What travels in parts is sent part by part, where the protocol lets others have their turn in between.
            self.many = PayloadRun.of((payload,))
            self.large = True
            self.send_many()
            return
        self.room -= len(payload.data) + FRAME_BYTES
        self.credit = self.put(self.stream_id, payload)

    def send_many(self) -> None:
        """Send as much of what was yielded together as there is credit for; of a record batch, a burst at most."""
        session = self.session
        many = self.many
        assert many is not None
        count = len(many)
        if isinstance(many, PayloadRun):
            if many.size > BURST_BYTES and many.width:
                # Numbers may be many: a burst at a time, as of a record batch.
                stop = min(self.at + max(BURST_BYTES // max(many.width, FRAME_BYTES // 4), 1), count)
                self.at += session.send_run(self.stream_id, many.part(self.at, stop))
            else:
                self.at += session.send_run(self.stream_id, many, self.at)
        elif count:
            # What is cut now is sent now, while the processor still has it in its cache.
            # The credit may be 2^63-1, to which nothing can be added.
            stop = self.at + min(self.credit, count - self.at)
            run = many.run(self.at, stop, BURST_BYTES, FRAME_BYTES)
            self.at += session.send_run(self.stream_id, run)
        if self.at == count:
            self.many = None
            self.large = False
            self.at = 0
        self.room = 0
        self.credit = session.credit(self.stream_id)


class Pump(Half):
    """Sends what a plain iterator yields. There is no task: each grant of credit moves it on."""

    __slots__ = ("ahead", "running")

    def __init__(self, exchanges: Exchanges, stream_id: int, credit: int, source: Iterator[Any], name: str) -> None:
        super().__init__(exchanges, stream_id, credit, source, name)
        # An item that was taken while there was no credit for it.
        self.ahead: object = _NOTHING
        # The source is being asked for an item.
        self.running = False

    def start(self) -> None:
        """Begin."""
        self.step()

    def granted(self) -> None:
        """Go on, because the peer asked for more."""
        self.credit = self.session.credit(self.stream_id)
        self.step()

    def resumed(self) -> None:
        """Go on, because the link has room again."""
        if self.large:
            # Each part fills the link: those who need a turn of the loop to go on would never find room in it.
            loop = self.flow.loop
            loop.call_soon(loop.call_soon, self.step)
        else:
            self.step()

    def canceled(self, metadata: bytes | None = None) -> None:
        """Stop: nobody wants more. The half is no longer in the table."""
        self.over = True
        if not self.running:
            self._close()

    def step(self) -> None:
        """Send what may be sent now; credit, room in the link, or another turn of the loop makes it go on."""
        if self.over or self.running:
            return
        flow = self.flow
        self.running = True
        try:
            for _ in range(BURSTS):
                if self.credit <= 0 or flow.paused or self.over:
                    break
                self.burst()
                # The end of a stream goes out with the batch.
                if not self.over:
                    flow.write()
            else:
                flow.loop.call_soon(self.step)
        except StreamClosed:
            self.over = True
        except (Exception, asyncio.CancelledError) as error:
            self.over = True
            self.exchanges.fail(self.stream_id, error, self.name)
        self.running = False
        if self.over:
            self._close()
        flow.wake()

    def burst(self) -> None:
        """Send items until a chunk of output is full, the credit is used, or they are all."""
        self.room = BURST_BYTES
        if self.many is not None:
            self.send_many()
        elif self.ahead is not _NOTHING:
            self.send(self.ahead)
            self.ahead = _NOTHING
        while self.credit > 0 and self.room > 0:
            item = next(self.source, _END)
            if item is _END:
                self._complete()
                return
            self.send(item)
        # One item is taken ahead of credit: a peer that asked for exactly as many as there are learns the end.
        if self.credit <= 0 and self.many is None:
            self.ahead = next(self.source, _END)
            if self.ahead is _END:
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
            close()
        except Exception:
            logger.exception("%s failed while it was closed", self.name or "the source of a stream")


class TaskPump(Half):
    """Sends what an async iterable yields, in a task."""

    __slots__ = ("replaced", "task", "waiter")

    def __init__(self, exchanges: Exchanges, stream_id: int, credit: int, source: Source, name: str) -> None:
        super().__init__(exchanges, stream_id, credit, source, name)
        self.task: asyncio.Future[None] | None = None
        # What the task waits for while it may not send.
        self.waiter: asyncio.Future[None] | None = None
        # A plain pump has taken over.
        self.replaced = False

    def start(self) -> None:
        """Begin."""
        self.task = self.exchanges.start(self._run(), self._finished)

    def granted(self) -> None:
        """Go on, because the peer asked for more."""
        self.credit = self.session.credit(self.stream_id)
        self.resumed()

    def resumed(self) -> None:
        """Go on, because the link has room again."""
        waiter = self.waiter
        if waiter is not None and self.credit > 0 and not self.flow.paused:
            self.waiter = None
            if not waiter.done():
                waiter.set_result(None)

    def canceled(self, metadata: bytes | None = None) -> None:
        """Stop: nobody wants more. The half is no longer in the table."""
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
                if self.credit <= 0 or self.room <= 0 or flow.paused:
                    await self._ready()
                self.send(item)
                while self.many is not None:
                    await self._ready()
                    self.send_many()
                flow.wake()
        finally:
            await close_items(items)
        self.session.complete(self.stream_id)

    async def _ready(self) -> None:
        """Wait for credit and for room in the link. Other streams get a turn between our bursts."""
        flow = self.flow
        flow.write()
        if self.room <= 0:
            await asyncio.sleep(0)
        while self.credit <= 0 or flow.paused:
            self.waiter = flow.loop.create_future()
            await self.waiter
            if self.large:
                # As in `Pump.resumed`.
                await asyncio.sleep(0)
        self.room = BURST_BYTES

    def _finished(self, task: asyncio.Future[None]) -> None:
        """Tell the peer how it ended, and clear up."""
        self.exchanges.tasks.discard(task)
        if isawaitable(self.source) and hasattr(self.source, "close"):
            # A coroutine has not ended where the task was canceled before its first step.
            self.source.close()
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        # Canceled by the peer, or about to learn that: there is nobody to tell.
        expected = isinstance(error, StreamClosed) or (self.over and task.cancelled())
        if error is not None and not expected:
            self.exchanges.fail(self.stream_id, error, self.name)
        if not self.replaced:
            self.exchanges.half_ended(self, self.stream_id, self.name)
        self.flow.wake()
