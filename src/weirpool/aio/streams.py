"""Streams that this side opens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple

from ..errors import ApplicationError, LeaseMissing, LocalError, SessionClosed
from ..functions import check_plain
from ..kinds import Kind
from ..payload import Payload
from .connectors import MAX_REFUSALS, Connector
from .exchanges import Exchanges
from .handlers import Interceptor, Request, chain, close_items, items_of
from .holds import GATHER
from .inbound import NEVER, ReceiveBuffer
from .item_errors import ReportedErrors
from .items import Items
from .outgoing import Outgoing
from .sources import Source, check_source

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Stream", "StreamRequest"]


class StreamRequest(NamedTuple):
    """The request of a STREAM or CHANNEL that is not open yet; see :meth:`weirpool.Peer.stream` and `channel`.

    `routed` is True if the metadata of `payload` already contains the route.
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
    allowed: int = NEVER


class Stream(Items):
    """A stream or channel that this side opens; :meth:`weirpool.Peer.stream` and `channel` return one.

    Use it as an async context manager and iterate over it. It is opened when the block is entered, or without a block
    when the first item is requested. Exiting the block, or the loop if there is no block, cancels the stream if it has
    not completed. If several tasks consume the stream, use a block. Opening and iterating raise the errors listed at
    :class:`~weirpool.Peer`.

    Args:
        connector: Finds the connection.
        wanted: The request, before interceptors change it.
        request: The request that interceptors receive; None without interceptors.
        interceptors: Functions around the opening of the stream, the outermost first.

    Raises:
        LocalError: The requested credit is less than 1, the source of outgoing items is not iterable, or `on_push` is a
            coroutine function.

    """

    __slots__ = (
        "_again", "_chain", "_connector", "_credit", "_entered", "_errors", "_limit", "_opening", "_outgoing", "_plain",
        "_refusals", "_request", "_wanted", "_wrapped"
    )  # fmt: skip

    def __init__(
        self,
        connector: Connector,
        wanted: StreamRequest,
        request: Request | None = None,
        interceptors: Iterable[Interceptor] = (),
    ) -> None:
        settings = connector.settings
        credit = wanted.credit
        # Only a window that the user has not set may grow.
        self._limit = 0 if wanted.manual or credit is not None else settings.max_credit
        if credit is None:
            credit = settings.credit
        elif credit < 1:
            raise LocalError(f"credit is {credit}; a stream needs at least 1")
        if wanted.outgoing is not None:
            check_source(wanted.outgoing)
        if wanted.on_push is not None:
            check_plain(wanted.on_push, "on_push")
        super().__init__(settings)
        self._connector = connector
        self._wanted = wanted
        self._credit = credit
        self._entered = False
        self._errors: ReportedErrors | None = None
        # Futures of tasks that wait while another one opens the stream; None if none does.
        self._opening: list[asyncio.Future[None]] | None = None
        self._refusals = 0
        self._outgoing: Outgoing | None = None
        # The exchanges in whose queue to wait after a refusal, and the first stream id there; see `RequestQueue.add`.
        self._again: tuple[Exchanges | None, int] = None, 0
        self._request = request
        self._chain = None if request is None else chain(interceptors, self._open_plain)
        # The stream that the last interceptor opened, and its items if an interceptor has wrapped them.
        self._plain: Stream | None = None
        self._wrapped: AsyncIterator[Payload] | None = None

    async def __aenter__(self) -> Stream:
        await self._opened()
        self._entered = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._end()

    def __aiter__(self) -> AsyncIterator[Payload]:
        return self._items() if self._entered else self._items_until_exit()

    @classmethod
    def adopted(cls, connector: Connector, inbound: ReceiveBuffer) -> Stream:
        """Return a stream that another process opened. It requests no items until :meth:`grant` is called."""
        stream = cls(connector, StreamRequest(Kind.STREAM, "", Payload(), credit=1, manual=True))
        stream._inbound = inbound
        return stream

    @property
    def stream_id(self) -> int:
        """The stream id on the wire; 0 before the stream is open."""
        return 0 if self._inbound is None else self._inbound.stream_id

    @property
    def over(self) -> bool:
        """True if no more items will arrive. Items that have arrived may not be consumed yet."""
        return self._inbound is not None and self._inbound.over

    @property
    def error(self) -> Exception | None:
        """The error that failed the stream; None while it is open, or if it completed."""
        return None if self._inbound is None else self._inbound.error

    def with_errors(self) -> AsyncIterator[Payload | ApplicationError]:
        """Return an iterator of the items, and of the errors between them, in order. An error there is not raised.

        Only River has errors that do not end their stream. The error that ends the stream is raised, as always. Once
        it was called, it can be called again for another loop.

        Raises:
            LocalError: The stream is open already, or interceptors are installed.
            UnsupportedKind: While iterating: the protocol has no errors between items. Nothing was sent.

        """
        return self.report_errors().items(self)

    def report_errors(self) -> ReportedErrors:
        """Receive errors between items as items, and return what tells them from values; see :meth:`with_errors`."""
        if self._errors is None:
            if self._inbound is not None or self._chain is not None:
                raise LocalError("with_errors() must be called before the stream is open, and not with interceptors")
            self._errors = ReportedErrors()
        return self._errors

    def grant(self, count: int) -> None:
        """Request `count` more items on a stream that was opened with `manual=True`. No effect after its end.

        Args:
            count: The number of items, at least 1.

        Raises:
            LocalError: The stream is not open yet, or `count` is less than 1.

        """
        if self._inbound is None:
            raise LocalError("grant() on a stream that is not open; enter its block first")
        if not self._inbound.over:
            self._inbound.exchanges.request(self._inbound.stream_id, count)

    def cancel(self, metadata: bytes | None = None) -> None:
        """Cancel the stream. Items that have arrived can still be consumed. No effect after its end.

        Args:
            metadata: Metadata of the cancellation, which only ReactiveSocket 0.0 and 0.2 support.

        Raises:
            LocalError: The protocol does not support `metadata` here.

        """
        if self._plain is not None:
            self._plain.cancel(metadata)
        elif self._inbound is not None:
            self._inbound.exchanges.cancel_stream(self._inbound.stream_id, metadata)

    def push(self, metadata: bytes) -> None:
        """Send metadata that concerns this stream (ReactiveSocket 0.0), in order with its items.

        Args:
            metadata: Bytes of the connection's metadata MIME type.

        Raises:
            LocalError: The stream is not open yet.
            UnsupportedKind: The protocol does not support it.

        """
        if self._inbound is None:
            raise LocalError("push() on a stream that is not open; enter its block first")
        exchanges = self._inbound.exchanges
        exchanges.session.push(metadata, self._inbound.stream_id)
        exchanges.flow.schedule_write()

    def pause(self) -> None:
        """Read no more from the connection, which may have other streams, until :meth:`resume`. For a moment only.

        The peer's heartbeats wait, too. Nothing is paused on another link.
        """
        if self._inbound is not None:
            self._inbound.exchanges.flow.stop_reading(GATHER)

    def resume(self) -> None:
        """Read from the connection again."""
        if self._inbound is not None:
            self._inbound.exchanges.flow.resume_reading(GATHER)

    async def next_items(self) -> list[Payload]:
        """Wait for items, and return those that have arrived; see :meth:`Items.next_items`.

        Items that an interceptor wraps are returned one by one, and this must not be canceled meanwhile.
        """
        if self._chain is not None:
            await self._opened()
        if self._wrapped is None:
            return await super().next_items()
        item = await anext(self._wrapped, None)
        return [] if item is None else [item]

    async def arrival(self) -> bool:
        """Wait until there are items to take; see :meth:`Items.arrival`. Not available if interceptors wrap items."""
        if self._chain is not None:
            await self._opened()
        if self._wrapped is not None:
            raise LocalError("arrival() on a stream whose items an interceptor wraps; iterate over it instead")
        return await super().arrival()

    def _items(self) -> AsyncGenerator[Payload, None]:
        return super()._items() if self._chain is None else self._intercepted_items()

    def _batches(self, max_rows: int, max_bytes: int) -> AsyncGenerator[pyarrow.RecordBatch, None]:
        batches = super()._batches if self._chain is None else self._intercepted_batches
        return batches(max_rows, max_bytes)

    async def _items_until_exit(self) -> AsyncGenerator[Payload, None]:
        items = self._items()
        try:
            async for payload in items:
                yield payload
        finally:
            await items.aclose()
            await self._end()

    async def end(self) -> None:
        """Cancel the stream if it is used without a block."""
        if not self._entered:
            await self._end()

    async def _end(self) -> None:
        """Cancel the stream, and close the items of interceptors."""
        self.cancel()
        await close_items(self._wrapped)

    async def _opened(self) -> ReceiveBuffer:
        while self._inbound is None and self._opening is not None:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._opening.append(waiter)
            await waiter
        if self._inbound is not None:
            return self._inbound
        self._opening = []
        try:
            return await (self._open() if self._chain is None else self._open_intercepted())
        finally:
            waiters, self._opening = self._opening, None
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)

    async def _open(self) -> ReceiveBuffer:
        driver = self._connector.current
        if driver is None or driver.flow.paused:
            driver = await self._connector.driver()
        wanted = self._wanted
        if self._errors is not None:
            self._errors.check(driver.session)
        source = wanted.outgoing
        if source is not None and self._outgoing is None:
            self._outgoing = Outgoing(source)
        route = "" if wanted.routed else wanted.route
        first = min(self._credit, wanted.allowed)
        opening = (wanted.kind, route, wanted.payload, first, source is None, wanted.endless)
        refused_by, order = self._again
        try:
            try:
                if refused_by is not driver.exchanges:
                    order = 0
                    return self._own(driver.exchanges, driver.session.open(*opening))
            except (LeaseMissing, SessionClosed) as error:
                driver = await self._connector.another(driver, error)
            inbound: ReceiveBuffer = await self._connector.opened(driver, opening, self._own, order)
            return inbound
        except asyncio.CancelledError:
            # The lease may have arrived just before.
            self.cancel()
            raise

    def _own(self, exchanges: Exchanges, stream_id: int) -> ReceiveBuffer:
        """Become the owner of a stream that was opened."""
        wanted = self._wanted
        inbound = ReceiveBuffer(exchanges, stream_id, self._credit, self._limit, wanted.manual, wanted.allowed)
        inbound.on_push = wanted.on_push
        self._inbound = exchanges.inbound[stream_id] = inbound
        if self._errors is not None:
            self._errors.begin(exchanges, stream_id)
        if self._outgoing is not None:
            self._outgoing.begin(exchanges, stream_id)
        exchanges.flow.schedule_write(len(wanted.payload.data))
        return inbound

    async def _open_again(self, ended: ReceiveBuffer, error: Exception) -> ReceiveBuffer:
        """Open the stream again if the peer has refused it for the time being; otherwise raise `error`.

        It is opened when it is its turn, or on another connection if the server is closing.
        """
        if self._plain is not None:
            self._inbound = await self._plain._open_again(ended, error)
            return self._inbound
        if self._inbound is ended:
            self._refusals += 1
            # Items that were sent are gone, and what a user has granted was for the earlier stream.
            gone = self._outgoing is not None and not self._outgoing.repeatable
            spent = ended.began or gone or self._wanted.manual
            if spent or self._refusals > MAX_REFUSALS:
                raise error
            if ended.refused:
                exchanges, order = self._again
                self._again = ended.exchanges, order if exchanges is ended.exchanges else ended.stream_id
            elif not self._connector.replaces(ended.exchanges, error):
                raise error
            self._inbound = None
        # Another task may have opened it meanwhile, or be opening it.
        return await self._opened()

    # With interceptors.

    async def _open_plain(self, request: Request) -> Stream:
        """Open the stream with the request as interceptors have changed it, and return it."""
        if self._plain is not None:
            raise LocalError(f"an interceptor called next() twice for one {request.kind.name.lower()}; call it once")
        wanted = self._wanted._replace(
            route=request.route, payload=request.payload, routed=request.routed, outgoing=request.items
        )
        self._plain = await Stream(self._connector, wanted).__aenter__()
        return self._plain

    async def _open_intercepted(self) -> ReceiveBuffer:
        assert self._chain is not None and self._request is not None
        try:
            result = await self._chain(self._request)
            if result is not self._plain:
                self._wrapped = aiter(items_of(result))
        except BaseException:
            self.cancel()
            raise
        self._inbound = self._nothing() if self._plain is None else await self._plain._opened()
        return self._inbound

    def _nothing(self) -> ReceiveBuffer:
        """Return the receive buffer of a stream that was not opened, because an interceptor replaced its items."""
        assert self._connector.latest is not None
        inbound = ReceiveBuffer(self._connector.latest.exchanges, 0, 1, 1, True)
        inbound.ended(None)
        return inbound

    async def _intercepted_items(self) -> AsyncGenerator[Payload, None]:
        await self._opened()
        async for payload in super()._items() if self._wrapped is None else self._wrapped:
            yield payload

    async def _intercepted_batches(self, max_rows: int, max_bytes: int) -> AsyncGenerator[pyarrow.RecordBatch, None]:
        await self._opened()
        if self._wrapped is None:
            async for batch in super()._batches(max_rows, max_bytes):
                yield batch
            return
        # Only batches need pyarrow.
        from ..wire.columns import ColumnBuilder

        builder = ColumnBuilder()
        async for payload in self._wrapped:
            builder.append_payload(payload)
            if len(builder) >= max_rows or builder.size >= max_bytes or not self.ready:
                yield builder.finish()
        if len(builder):
            yield builder.finish()
