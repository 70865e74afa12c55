"""Streams of items as their consumers see them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from operator import length_hint
from types import TracebackType
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from ..errors import LeaseMissing, LocalError, SessionClosed
from ..kinds import Kind
from ..payload import Payload
from ..settings import Settings
from .inbound import NEVER, Inbound
from .pump import Source, pump

if TYPE_CHECKING:
    import pyarrow

    from ..wire.columns import ColumnBuilder
    from .driver import Driver

__all__ = ["Items", "LateStream", "NoDriver", "Stream", "Wanted"]

PAUSE_TURNS: Final = 2
"""Turns of the loop without an item after which a batch is handed out: a read comes one turn after its poll."""


class Items:
    """Items that the peer sends on one stream, for one consumer.

    Iterate over it for single items, or over :meth:`batches` for many at once. Leaving a loop early and
    beginning another goes on where the first one stopped. The peer gets leave to send more as items are taken.
    """

    __slots__ = ("_driver", "_inbound")

    def __init__(self, driver: Driver, inbound: Inbound | None = None) -> None:
        self._driver = driver
        self._inbound = inbound

    def __aiter__(self) -> AsyncIterator[Payload]:
        return self._items()

    @property
    def ready(self) -> bool:
        """Whether the next item has arrived already."""
        inbound = self._inbound
        return inbound is not None and (length_hint(inbound.cut) > 0 or len(inbound.pending) > 0)

    def batches(self, max_rows: int | None = None, max_bytes: int | None = None) -> AsyncIterator[pyarrow.RecordBatch]:
        """Return the items as record batches with the columns `data` and `metadata`; needs pyarrow.

        No object is made for an item. A batch is handed out when it is full, when the stream ends, or when the
        network pauses.

        Args:
            max_rows: Rows of a batch at most; else `Settings.batch_rows`.
            max_bytes: Payload bytes of a batch, after which it gets no more rows; else `Settings.batch_bytes`.

        """
        settings = self._driver.settings
        return self._batches(max_rows or settings.batch_rows, max_bytes or settings.batch_bytes)

    async def _items(self) -> AsyncGenerator[Payload, None]:
        inbound = await self._opened()
        while True:
            for payload in inbound.cut:
                yield payload
            if not inbound.cut_more():
                if inbound.over:
                    break
                await inbound.arrival()
        if inbound.error is not None:
            raise inbound.error

    async def _batches(self, max_rows: int, max_bytes: int) -> AsyncGenerator[pyarrow.RecordBatch, None]:
        # pyarrow is needed by those alone who ask for batches.
        from ..wire.columns import ColumnBuilder

        inbound = await self._opened()
        builder = ColumnBuilder()
        while True:
            # What is not full has everything that came.
            if inbound.fill(builder, max_rows, max_bytes):
                yield builder.finish()
            elif inbound.over and not len(builder):
                break
            elif inbound.over or not await self._more(inbound, builder, max_rows, max_bytes):
                yield builder.finish()
        if inbound.error is not None:
            raise inbound.error

    @staticmethod
    async def _more(inbound: Inbound, builder: ColumnBuilder, max_rows: int, max_bytes: int) -> bool:
        """Wait for rows, where there are some not for long; return whether anything happened."""
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
        finally:
            inbound.gather(None, 0, 0)
        return False

    async def arrival(self) -> bool:
        """Wait until there are items that nobody took yet; return False when no more come.

        Raises:
            PenstockError: What failed the stream, once all its items were taken.

        """
        inbound = await self._opened()
        while not inbound.pending and not inbound.over:
            await inbound.arrival()
        if not inbound.pending and inbound.error is not None:
            raise inbound.error
        return bool(inbound.pending)

    def take(self, builder: ColumnBuilder) -> None:
        """Move all items that have arrived to `builder`, without waiting; see :meth:`arrival` for that."""
        if self._inbound is not None:
            self._inbound.fill(builder, NEVER, NEVER)

    async def _opened(self) -> Inbound:
        assert self._inbound is not None
        return self._inbound


class Wanted(NamedTuple):
    """What a stream shall be opened with.

    Attributes:
        kind: STREAM or CHANNEL.
        route: The handler.
        payload: The request.
        routed: The request's metadata holds the route already: no other is put beside it.
        credit: Items that may be under way; None: `Settings.credit`, which grows.
        manual: Ask for no more than that, but for what is granted.
        outgoing: For a CHANNEL: the items that follow the request.
        endless: It is not expected to complete.
        on_push: Gets metadata that is pushed between the items; None: nobody does.

    """

    kind: Kind
    route: str
    payload: Payload
    routed: bool = False
    credit: int | None = None
    manual: bool = False
    outgoing: Source | None = None
    endless: bool = False
    on_push: Callable[[bytes], None] | None = None


class Stream(Items):
    """A stream or channel that this side opens: an async context manager, and iterable.

    It is opened when the block is entered, or else when the first item is asked for. Leaving the block,
    or a loop that stands alone, cancels what has not come.

    Args:
        driver: Over which connection it goes.
        wanted: What to open it with.

    Raises:
        LocalError: The credit that is wanted is less than 1.

    """

    __slots__ = ("_credit", "_entered", "_most", "_wanted")

    def __init__(self, driver: Driver, wanted: Wanted) -> None:
        settings = driver.settings
        credit = wanted.credit
        # A window that somebody chose is theirs; ours may grow.
        self._most = 0 if wanted.manual or credit is not None else settings.max_credit
        if credit is None:
            credit = settings.credit
        elif credit < 1:
            raise LocalError(f"credit is {credit}; a stream needs at least 1")
        super().__init__(driver)
        self._wanted = wanted
        self._credit = credit
        self._entered = False

    async def __aenter__(self) -> Stream:
        await self._opened()
        self._entered = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._leave()

    def __aiter__(self) -> AsyncIterator[Payload]:
        return self._items() if self._entered else self._items_until_left()

    @classmethod
    def adopted(cls, inbound: Inbound) -> Stream:
        """Return a stream that another process opened, for the one that takes it over.

        Args:
            inbound: Its receiving half. It asks for nothing by itself: :meth:`grant` does.

        """
        stream = cls(inbound.driver, Wanted(Kind.STREAM, "", Payload(), credit=1, manual=True))
        stream._inbound = inbound
        return stream

    @property
    def stream_id(self) -> int:
        """Its number on the wire; 0 before it is open."""
        return 0 if self._inbound is None else self._inbound.stream_id

    @property
    def over(self) -> bool:
        """Whether no more items come; some that came may still wait to be taken."""
        return self._inbound is not None and self._inbound.over

    @property
    def error(self) -> Exception | None:
        """What failed the stream, once it is over."""
        return None if self._inbound is None else self._inbound.error

    def grant(self, count: int) -> None:
        """Let the peer send `count` more items: for streams that were opened with `manual=True`.

        A stream that is over is left alone.

        Args:
            count: At least 1.

        Raises:
            LocalError: The stream is not open yet, or `count` is less than 1.

        """
        if self._inbound is None:
            raise LocalError("grant() on a stream that is not open; enter its block first")
        if not self._inbound.over:
            self._driver.request(self._inbound.stream_id, count)

    def cancel(self, metadata: bytes | None = None) -> None:
        """Want no more items; those that have arrived can still be taken. A stream that is over is left alone.

        Args:
            metadata: What to tell the other side about it (ReactiveSocket 0.0 and 0.2); None: nothing.

        Raises:
            LocalError: The protocol has no room for `metadata` there.

        """
        if self._inbound is not None:
            self._driver.leave(self._inbound.stream_id, metadata)

    def push(self, metadata: bytes) -> None:
        """Send metadata that concerns this stream (ReactiveSocket 0.0), in order with its items.

        Args:
            metadata: In the form of the connection's metadata MIME type.

        Raises:
            LocalError: The stream is not open yet.
            UnsupportedKind: The protocol has no such thing.

        """
        if self._inbound is None:
            raise LocalError("push() on a stream that is not open; enter its block first")
        self._driver.session.push(metadata, self._inbound.stream_id)
        self._driver.wake()

    async def _items_until_left(self) -> AsyncGenerator[Payload, None]:
        items = self._items()
        try:
            async for payload in items:
                yield payload
        finally:
            await items.aclose()
            await self._leave()

    async def _leave(self) -> None:
        """End what is still open."""
        self.cancel()

    async def _opened(self) -> Inbound:
        if self._inbound is None:
            driver = self._driver
            if driver.paused:
                await driver.writable()
            wanted = self._wanted
            outgoing = wanted.outgoing
            route = "" if wanted.routed else wanted.route
            opening = (wanted.kind, route, wanted.payload, self._credit, outgoing is None, wanted.endless)
            try:
                try:
                    stream_id = driver.session.open(*opening)
                except LeaseMissing:
                    stream_id = await driver.lessees.open(*opening)
            except SessionClosed as error:
                raise driver.error or error from None
            self._inbound = driver.inbound[stream_id] = Inbound(
                driver, stream_id, self._credit, self._most, wanted.manual
            )
            self._inbound.on_push = wanted.on_push
            if outgoing is not None:
                pump(driver, stream_id, 0, outgoing)
            driver.wake()
        return self._inbound


class LateStream(Stream):
    """A stream of which is known only when it is opened, over which connection it goes.

    Args:
        find: Returns the driver of that connection, ready to send.
        settings: The limits of all connections that `find` may return.
        wanted: What to open it with.

    """

    __slots__ = ("_find",)

    def __init__(self, find: Callable[[], Awaitable[Driver]], settings: Settings, wanted: Wanted) -> None:
        # Before it is open, a stream asks its driver for nothing but the settings.
        super().__init__(cast("Driver", NoDriver(settings)), wanted)
        self._find = find

    async def _opened(self) -> Inbound:
        if self._inbound is None:
            self._driver = await self._find()
        return await super()._opened()


class NoDriver(NamedTuple):
    """What a stream has before its driver is known."""

    settings: Settings
