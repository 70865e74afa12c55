"""One request that the page has made: it runs in a task, and reports what happens to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ..errors import ApplicationError, LocalError, WeirpoolError
from ..payload import Payload
from .demand import Demand
from .texts import Texts

if TYPE_CHECKING:
    from ..aio.peer import Peer, RequestMetadata
    from ..aio.streams import Stream

__all__ = ["Report", "Running", "Start"]

MAX_WAITING: Final = 100
"""Items of the user that the server has not taken."""
MAX_PENDING: Final = 200
"""Items of the server that the page has not received. Until it has, no more are taken: demand stops."""
MAX_PENDING_BYTES: Final = 1024 * 1024
SECONDS: Final = 0.05
"""How often items are sent to the page: as often as people see a difference."""
MAX_WINDOW: Final = 10_000

Report = Callable[[dict[str, Any]], Awaitable[None]]


class Start(msgspec.Struct):
    """What the page asks for.

    Attributes:
        kind: The kind, in lower case.
        route: The route.
        data: The data of the request, as text.
        demand: How many items to request at first.
        auto: Whether to request more as they arrive.

    """

    kind: str
    route: str
    data: str = ""
    demand: int = 1
    auto: bool = False


class Running:
    """One request.

    Args:
        start: What to request.
        texts: Converts data.
        metadata: Metadata of each request.
        report: Sends a message to the page; it waits while the page is slow.

    """

    def __init__(self, start: Start, texts: Texts, metadata: RequestMetadata, report: Report) -> None:
        self._start = start
        self._texts = texts
        self._metadata = metadata
        self._report = report
        self._items: asyncio.Queue[bytes | None] = asyncio.Queue(MAX_WAITING)
        self._taken = 0
        self._pending: list[dict[str, Any]] = []
        self._pending_bytes = 0
        self._demand: Demand | None = None
        self._changed = asyncio.Event()
        # Set while the page has shown everything that was sent: its pace is that of the stream.
        self._shown = asyncio.Event()
        self._shown.set()

    async def run(self, peer: Peer) -> None:
        """Make the request, report its items, and at last how it ended."""
        began = monotonic()
        flushing = asyncio.create_task(self._flush_often())
        try:
            await self._requested(peer)
            end: dict[str, Any] = {"how": "completed"}
        except asyncio.CancelledError:
            end = {"how": "canceled"}
        except WeirpoolError as error:
            end = {"how": "failed", "message": str(error), **self._error_data(error)}
        finally:
            flushing.cancel()
        # The page may be gone, so that it is not waited for.
        self._shown.set()
        await self._flush()
        await self._report({"type": "end", "seconds": round(monotonic() - began, 4), **self._counts(), **end})

    def request(self, count: int) -> None:
        """Request more items."""
        if self._demand is not None:
            self._demand.request(min(max(count, 1), MAX_WINDOW))
            self._changed.set()

    def automatic(self, on: bool) -> None:
        """Request items as they arrive, or only those that are asked for."""
        if self._demand is not None:
            self._demand.automatic(on)
            self._changed.set()

    def shown(self) -> None:
        """Note that the page has shown the items that it was sent."""
        self._shown.set()

    def send(self, text: str | None) -> None:
        """Send an item; None ends the items.

        Raises:
            LocalError: The server has not taken earlier items, or the text cannot be converted.

        """
        data = None if text is None else self._texts.outgoing(text)
        try:
            self._items.put_nowait(data)
        except asyncio.QueueFull:
            raise LocalError(f"the server has not taken the last {MAX_WAITING} items; wait for it") from None

    async def _requested(self, peer: Peer) -> None:
        start = self._start
        data = self._texts.outgoing(start.data)
        if start.kind == "call":
            self._add(await peer.call(start.route, data, metadata=self._metadata))
        elif start.kind == "fire":
            await peer.fire(start.route, data, metadata=self._metadata)
        elif start.kind == "upload":
            self._add(await peer.upload(start.route, data, self._outgoing(), metadata=self._metadata))
        else:
            await self._streamed(peer, data)

    async def _streamed(self, peer: Peer, data: bytes) -> None:
        start = self._start
        window = min(max(start.demand, 1), MAX_WINDOW)
        options: dict[str, Any] = {"metadata": self._metadata, "credit": window, "manual": True}
        if start.kind == "channel":
            items = peer.channel(start.route, data, self._outgoing(), **options)
        else:
            items = peer.stream(start.route, data, **options)
        self._demand = Demand(window, window, start.auto, items.grant)
        async with items:
            await self._consume(items, self._demand)

    async def _consume(self, items: Stream, demand: Demand) -> None:
        async for item in items:
            demand.arrived()
            self._add(item)
            while len(self._pending) >= MAX_PENDING or self._pending_bytes >= MAX_PENDING_BYTES:
                await self._flush()

    async def _outgoing(self) -> AsyncIterator[bytes]:
        while (item := await self._items.get()) is not None:
            yield item
            self._taken += 1
            self._changed.set()

    def _add(self, payload: Payload) -> None:
        shown = self._texts.incoming(payload)
        self._pending.append(shown)
        self._pending_bytes += len(shown.get("text", "")) + len(shown.get("hex", "")) + 64
        self._changed.set()

    async def _flush_often(self) -> None:
        while True:
            await self._changed.wait()
            await self._flush()
            await asyncio.sleep(SECONDS)

    async def _flush(self) -> None:
        await self._shown.wait()
        items, self._pending, self._pending_bytes = self._pending, [], 0
        self._changed.clear()
        self._shown.clear()
        await self._report({"type": "items", "items": items, **self._counts()})

    def _counts(self) -> dict[str, Any]:
        counts: dict[str, Any] = {"taken": self._taken}
        if self._demand is not None:
            outstanding = max(0, self._demand.outstanding)
            counts |= {"received": self._demand.received, "outstanding": outstanding, "auto": self._demand.auto}
        return counts

    def _error_data(self, error: WeirpoolError) -> dict[str, Any]:
        """Return the data that a server has sent with an error."""
        if not isinstance(error, ApplicationError) or error.data in (b"", error.message.encode()):
            return {}
        return {"data": self._texts.incoming(Payload(error.data))}
