"""A peer with interceptors around what it is asked for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from ..errors import LocalError
from ..kinds import Kind
from ..payload import Payload
from ..settings import Settings
from .dialer import Dialer
from .inbound import Inbound
from .intercept import Interceptor, Request, chain
from .peer import Peer
from .pump import Source
from .streams import NoDriver, Stream, Wanted

if TYPE_CHECKING:
    import pyarrow

    from .driver import Driver

__all__ = ["InterceptedPeer"]


# Members of an enumeration cost a look-up each time.
_FIRE = Kind.FIRE


class InterceptedPeer(Peer):
    """Asks another peer for things, through interceptors.

    Args:
        peer: The one that asks the other side.
        interceptors: The first is the outermost.
        dialer: Knows the connection that they are told of.

    """

    __slots__ = ("_dialer", "_interceptors", "_peer")

    def __init__(self, peer: Peer, interceptors: list[Interceptor], dialer: Dialer) -> None:
        # What a base class does with its driver is all done by the other peer.
        super().__init__(cast("Driver", None))
        self._peer = peer
        self._interceptors = interceptors
        self._dialer = dialer

    def __repr__(self) -> str:
        return repr(self._peer)

    @property
    def closed(self) -> bool:
        """Whether the connection is closed for good."""
        return self._peer.closed

    @property
    def outstanding(self) -> int:
        """How many streams are open, calls included."""
        return self._peer.outstanding

    @property
    def data_mime(self) -> str:
        """What the data of its connections is."""
        return self._dialer.settings.data_mime

    async def push(self, metadata: bytes) -> None:
        """Send metadata that belongs to the connection as a whole; no interceptor sees it. See :meth:`Peer.push`."""
        await self._peer.push(metadata)

    async def close(self, grace: float | None = None) -> None:
        """Close the connection. See :meth:`Peer.close`."""
        await self._peer.close(grace)

    @property
    def secret(self) -> bytes:
        """What another process needs to resume this session. See :attr:`Peer.secret`."""
        return self._peer.secret

    def checkpoint(self, stream: Stream, count: int) -> bytes | None:
        """Return what another process needs to resume this session. See :meth:`Peer.checkpoint`."""
        return self._peer.checkpoint(stream, count)

    def commit(self) -> None:
        """Tell the peer that all the last checkpoint covers is safe. See :meth:`Peer.commit`."""
        self._peer.commit()

    def reset_budget(self) -> None:
        """Let it be tried again. See :meth:`Peer.reset_budget`."""
        self._peer.reset_budget()

    def detach(self) -> None:
        """Let go of the connection without ending the session. See :meth:`Peer.detach`."""
        self._peer.detach()

    def adopt(self) -> Stream | None:
        """Return the stream that a resumed session has open; no interceptor sees it. See :meth:`Peer.adopt`."""
        return self._peer.adopt()

    async def _ask(self, kind: Kind, route: str, payload: Payload, routed: bool, outgoing: Source | None) -> Any:
        request = self._request(kind, route, payload, routed, outgoing)
        result = await chain(self._interceptors, self._last)(request)
        if kind is _FIRE:
            return None
        if not isinstance(result, Payload):
            what = type(result).__name__
            raise LocalError(f"an interceptor returned {what}; it returns the Payload that is the answer")
        return result

    async def _last(self, request: Request) -> Any:
        """Ask the other side, behind the last interceptor."""
        return await self._peer._ask(request.kind, request.route, request.payload, request.routed, request.items)

    def _stream(self, wanted: Wanted) -> Stream:
        request = self._request(wanted.kind, wanted.route, wanted.payload, wanted.routed, wanted.outgoing)
        return _Stream(self._peer, self._dialer.settings, request, self._interceptors, wanted)

    def _request(self, kind: Kind, route: str, payload: Payload, routed: bool, items: Source | None) -> Request:
        request = Request(kind, route, payload, self._dialer.connection, items)
        request.routed = routed
        return request


class _Stream(Stream):
    """A stream that is opened through interceptors, which may have put something around its items.

    Args:
        peer: Opens it.
        settings: Of the connection.
        request: What is asked for.
        interceptors: The first is the outermost.
        wanted: As the user wants it, whatever interceptors make of the request.

    """

    __slots__ = ("_around", "_ask", "_peer", "_plain", "_request")

    def __init__(
        self,
        peer: Peer,
        settings: Settings,
        request: Request,
        interceptors: list[Interceptor],
        wanted: Wanted,
    ) -> None:
        # Before it is open, a stream asks its driver for nothing but the settings.
        super().__init__(cast("Driver", NoDriver(settings)), wanted)
        self._peer = peer
        self._request = request
        self._ask = chain(interceptors, self._open)
        # The stream as it comes, and what interceptors made of its items, unless they left them alone.
        self._plain: Stream | None = None
        self._around: AsyncIterator[Payload] | None = None

    def cancel(self, metadata: bytes | None = None) -> None:
        """Want no more items. See :meth:`Stream.cancel`."""
        if self._plain is not None:
            self._plain.cancel(metadata)

    async def arrival(self) -> bool:
        """Wait until there are items that nobody took yet. See :meth:`Items.arrival`."""
        await self._opened()
        if self._around is not None:
            raise LocalError("arrival() on a stream whose items go through an interceptor; iterate over it")
        return await super().arrival()

    async def _open(self, request: Request) -> Stream:
        """Open it as the interceptors want it, and return what yields the items as they come."""
        if self._plain is not None:
            raise LocalError(f"an interceptor asked twice for one {request.kind.name.lower()}; ask the peer anew")
        wanted = self._wanted._replace(
            route=request.route, payload=request.payload, routed=request.routed, outgoing=request.items
        )
        self._plain = await self._peer._stream(wanted).__aenter__()
        self._driver = self._plain._driver
        return self._plain

    async def _opened(self) -> Inbound:
        if self._inbound is None:
            try:
                result = await self._ask(self._request)
                if result is not self._plain:
                    self._around = aiter(_items_of(result))
            except BaseException:
                if self._plain is not None:
                    self._plain.cancel()
                raise
            self._inbound = _nothing() if self._plain is None else await self._plain._opened()
        return self._inbound

    async def _items(self) -> AsyncGenerator[Payload, None]:
        await self._opened()
        async for payload in super()._items() if self._around is None else self._around:
            yield payload

    async def _batches(self, max_rows: int, max_bytes: int) -> AsyncGenerator[pyarrow.RecordBatch, None]:
        await self._opened()
        if self._around is None:
            async for batch in super()._batches(max_rows, max_bytes):
                yield batch
            return
        # pyarrow is needed by those alone who ask for batches.
        from ..wire.columns import ColumnBuilder

        builder = ColumnBuilder()
        async for payload in self._around:
            builder.append_payload(payload)
            if len(builder) >= max_rows or builder.size >= max_bytes or not self.ready:
                yield builder.finish()
        if len(builder):
            yield builder.finish()

    async def _leave(self) -> None:
        self.cancel()
        close = getattr(self._around, "aclose", None)
        if close is not None:
            await close()


def _items_of(result: object) -> AsyncIterable[Payload]:
    if not isinstance(result, AsyncIterable):
        raise LocalError(f"an interceptor returned {type(result).__name__}; it returns an async iterable of items")
    return result


def _nothing() -> Inbound:
    """Return the receiving half of a stream that was never opened, because an interceptor answered itself."""
    inbound = Inbound(cast("Driver", _Nobody(asyncio.get_running_loop())), 0, 1, 1, True)
    inbound.ended(None)
    return inbound


class _Nobody(NamedTuple):
    """What such a receiving half has for a driver."""

    loop: asyncio.AbstractEventLoop
