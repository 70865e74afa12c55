"""The peer: the other side of a connection, to which users send requests."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from typing import Any, Protocol, TypeAlias

from ..errors import LeaseMissing, LocalError, Rejected, SessionClosed, SetupRejected
from ..kinds import Kind
from ..payload import Payload
from .connectors import Connector
from .driver import Driver
from .handlers import Interceptor, Request, chain
from .outgoing import Outgoing
from .replies import Reply
from .sources import Source, check_source
from .streams import Stream, StreamRequest

__all__ = ["Peer", "RequestMetadata", "RoutableMetadata"]

# A global is faster to read than a member of an enumeration.
_CALL = Kind.CALL
_FIRE = Kind.FIRE
_UPLOAD = Kind.UPLOAD


class RoutableMetadata(Protocol):
    """Metadata that can include a route, such as :class:`weirpool.Metadata`."""

    def addressed(self, route: str) -> bytes:
        """Return the metadata of a request for `route`."""


RequestMetadata: TypeAlias = "bytes | RoutableMetadata | None"
"""Metadata of a request: bytes to send beside the route, or an object that includes the route."""


def request_of(route: str, data: bytes | str | Payload, metadata: RequestMetadata) -> tuple[Payload, bool]:
    """Return the payload of a request, and True if its metadata already contains the route."""
    routed = False
    if metadata is not None and not isinstance(metadata, bytes | str):
        metadata = metadata.addressed(route)
        routed = True
    return data if isinstance(data, Payload) else Payload(data, metadata), routed


def _ready(connector: Connector, kind: Kind) -> Driver | None:
    """Return the driver by which a request can be sent at once; None if there is none, or the request has to wait."""
    driver = connector.current
    if driver is None or driver.flow.paused:
        return None
    exchanges = driver.exchanges
    if kind is not _FIRE and (exchanges.queue.busy or len(exchanges.calls) >= exchanges.queue.limit.value):
        return None
    return driver


def _pending(driver: Driver, reply: Reply, stream_id: int, items: Outgoing | None = None, size: int = 0) -> Reply:
    """Make `reply` that of a call that was opened, prepare its items, and schedule the write of its request."""
    driver.exchanges.calls[stream_id] = reply
    if items is not None:
        items.begin(driver.exchanges, stream_id)
    driver.flow.schedule_write(size)
    return reply


def _fired(driver: Driver, reply: Reply, stream_id: int) -> None:
    """Do nothing for a FIRE that was sent: it has no response."""


class Peer:
    """The other side of a connection, to which requests are sent. :func:`weirpool.connect` returns one.

    Data may be bytes, a string (sent as UTF-8) or a :class:`~weirpool.Payload`. Metadata of a request is sent beside
    the route, in the form of the protocol; a :class:`~weirpool.Metadata` may have several entries. All requests raise

    * :exc:`~weirpool.ApplicationError` if the peer failed the request,
    * :exc:`~weirpool.SessionClosed`, or the error that closed it, if the connection is closed,
    * :exc:`~weirpool.ConnectError` if there is no connection, and none was made in time: nothing was sent,
    * :exc:`~weirpool.UnsupportedKind` if the protocol does not support the kind of request,
    * :exc:`~weirpool.LeaseMissing` if the connection uses leases, and none arrived in time.
    """

    __slots__ = ("_connector", "_interceptors", "_plain")

    def __init__(self, connector: Connector, interceptors: Iterable[Interceptor] = ()) -> None:
        self._connector = connector
        self._interceptors = list(interceptors)
        # Sends the request after the last interceptor.
        self._plain: Peer | None = Peer(connector) if self._interceptors else None

    def __repr__(self) -> str:
        return f"<Peer {self._driver.flow.name}{', closed' if self.closed else ''}>"

    @property
    def closed(self) -> bool:
        """True if the peer is closed and will not reconnect: all further requests fail."""
        return self._connector.closed

    @property
    def linked(self) -> bool:
        """True while there is a link. Without one, a session that can be resumed waits for the next."""
        return (driver := self._connector.latest) is not None and driver.link is not None

    @property
    def outstanding(self) -> int:
        """The number of open streams of both sides, including calls."""
        return self._connector.outstanding

    @property
    def data_mime(self) -> str:
        """The MIME type of data: `Settings.data_mime`, or over River that of the URL's codec."""
        return self._connector.settings.data_mime

    def call(
        self, route: str, data: bytes | str | Payload = b"", *, metadata: RequestMetadata = None
    ) -> Coroutine[Any, Any, Payload]:
        """Send a request and return its response. Await it. Canceling the task cancels the call.

        Args:
            route: The name of the handler.
            data: The request.
            metadata: Metadata of the request. Ignored if `data` is a Payload, which has its own.

        Returns:
            The response; an empty payload if the peer completed without one.

        """
        payload, routed = request_of(route, data, metadata)
        return self._send(_CALL, route, payload, routed, None)

    def fire(
        self, route: str, data: bytes | str | Payload = b"", *, metadata: RequestMetadata = None
    ) -> Coroutine[Any, Any, None]:
        """Send a request that has no response. Await it; this waits only until the link accepts output.

        The arguments are those of :meth:`call`.
        """
        payload, routed = request_of(route, data, metadata)
        return self._send(_FIRE, route, payload, routed, None)

    def stream(
        self,
        route: str,
        data: bytes | str | Payload = b"",
        *,
        metadata: RequestMetadata = None,
        credit: int | None = None,
        manual: bool = False,
        endless: bool = False,
        on_push: Callable[[bytes], None] | None = None,
    ) -> Stream:
        """Return a stream of response items, to use as ``async with`` and iterate over.

        It is not open yet: the request is sent when the block is entered, or the first item is requested. Exiting the
        block cancels the stream if it has not completed.

        Args:
            route: The name of the handler.
            data: The request.
            metadata: Metadata of the request. Ignored if `data` is a Payload, which has its own.
            credit: The window: how many items the peer may send ahead. The default is `Settings.credit`, which grows
                up to `Settings.max_credit` while items are consumed fast.
            manual: Request only the first `credit` items. Request more with :meth:`Stream.grant`.
            endless: Request a stream that is not expected to complete, if the protocol has a separate kind for it
                (ReactiveSocket 0.0: REQUEST_SUB).
            on_push: A plain function that is called with metadata that the peer pushes, in order with the items
                (ReactiveSocket 0.0). Without it, pushed metadata is ignored.

        Raises:
            LocalError: `credit` is less than 1.

        """
        payload, routed = request_of(route, data, metadata)
        return self._stream(StreamRequest(Kind.STREAM, route, payload, routed, credit, manual, None, endless, on_push))

    def channel(
        self,
        route: str,
        data: bytes | str | Payload,
        outgoing: Source,
        *,
        metadata: RequestMetadata = None,
        credit: int | None = None,
        manual: bool = False,
    ) -> Stream:
        """Send items and receive items at the same time. The result is a stream like that of :meth:`stream`.

        Args:
            route: The name of the handler.
            data: The request, which is also the first item that is sent.
            outgoing: The items that follow it: an iterable or async iterable of payloads, bytes, strings, or
                ``pyarrow.RecordBatch``. It is read only as fast as the peer requests items.
            metadata: Metadata of the request. Ignored if `data` is a Payload, which has its own.
            credit: The window for items from the peer; see :meth:`stream`.
            manual: Request only the first `credit` items from the peer; see :meth:`stream`.

        Raises:
            LocalError: `credit` is less than 1, or `outgoing` is not iterable. Nothing was sent.

        """
        payload, routed = request_of(route, data, metadata)
        return self._stream(StreamRequest(Kind.CHANNEL, route, payload, routed, credit, manual, outgoing))

    def upload(
        self,
        route: str,
        data: bytes | str | Payload,
        outgoing: Source,
        *,
        metadata: RequestMetadata = None,
    ) -> Coroutine[Any, Any, Payload]:
        """Send items and return the single response to all of them. Await it.

        Args:
            route: The name of the handler.
            data: The request, which is also the first item that is sent.
            outgoing: The items that follow it; see :meth:`channel`. If the response arrives early, the rest is not
                sent.
            metadata: Metadata of the request. Ignored if `data` is a Payload, which has its own.

        Returns:
            The response.

        Raises:
            LocalError: `outgoing` is not iterable. Nothing was sent.

        """
        payload, routed = request_of(route, data, metadata)
        return self._send(Kind.UPLOAD, route, payload, routed, outgoing)

    async def push(self, metadata: bytes) -> None:
        """Send metadata that concerns the whole connection. There is no response, and interceptors do not see it.

        Args:
            metadata: Bytes of the connection's metadata MIME type.

        Raises:
            UnsupportedKind: The protocol does not support it.

        """
        await self._connector.push(metadata)

    async def close(self, grace: float | None = None) -> None:
        """Close the connection after all open streams have ended. May be called more than once.

        Args:
            grace: Seconds after which open streams fail; `Settings.close_grace` by default; 0 fails them at once, as
                canceling the task does.

        """
        try:
            await self._connector.close(grace)
        except CancelledError:
            await self._connector.close(0)
            raise

    def reset_budget(self) -> None:
        """Refill River's retry budget, so that a peer that has used it up reconnects.

        The budget has five attempts, and each 200 ms of a live connection restore one. While it is used up, requests
        fail with :exc:`~weirpool.ConnectError`. Does nothing if there is no budget.
        """
        self._connector.reset_budget()

    # For the collector, which resumes sessions across processes.

    @property
    def secret(self) -> bytes:
        """The secret that another process needs with a checkpoint to resume this session; see `Session.secret`."""
        return self._driver.session.secret

    def checkpoint(self, stream: Stream, count: int) -> bytes | None:
        """Return the state that another process needs to resume this session; see `Session.checkpoint`.

        Args:
            stream: The stream for which :meth:`commit` will request more items.
            count: How many items it will request.

        Returns:
            The checkpoint; None if the session cannot be resumed.

        """
        return self._driver.session.checkpoint(stream.stream_id, count)

    def commit(self) -> None:
        """Confirm to the peer that all data covered by the last checkpoint is stored; see `Session.commit`."""
        driver = self._driver
        driver.session.commit()
        driver.flow.schedule_write()

    def detach(self) -> None:
        """Drop the connection without closing the session: the peer keeps it for the process that resumes it."""
        self._connector.detach()

    def adopt(self) -> Stream | None:
        """Return the next stream that was open at the checkpoint of the session; None if there are no more.

        It has all items that have arrived since the session was resumed, and the end if that has arrived. Interceptors
        do not see it.
        """
        restored = self._driver.exchanges.restored
        return Stream.adopted(self._connector, restored.pop(0)) if restored else None

    @property
    def _driver(self) -> Driver:
        """The driver of the peer's own session."""
        driver = self._connector.latest
        if driver is None:
            raise LocalError("a balancer has no session of its own; use connect() for one of its nodes")
        return driver

    # Requests.

    async def _send(self, kind: Kind, route: str, payload: Payload, routed: bool, outgoing: Source | None) -> Any:
        """Send a request that has at most one response item, and return that; None for FIRE.

        `routed` is True if the metadata of `payload` already contains the route. Only an UPLOAD has `outgoing` items.
        """
        if self._interceptors:
            return await self._intercepted(kind, route, payload, routed, outgoing)
        items = Outgoing(check_source(outgoing)) if kind is _UPLOAD else None
        if routed:
            route = ""
        connector = self._connector
        driver = _ready(connector, kind)
        if driver is None:
            return await self._wait(kind, route, payload, items)
        try:
            stream_id = driver.session.open(kind, route, payload, 1)
        except (LeaseMissing, SessionClosed) as error:
            return await self._queued(await connector.another(driver, error), kind, route, payload, items)
        if kind is _FIRE:
            driver.flow.schedule_write(len(payload.data))
            return None
        reply = _pending(driver, driver.exchanges.new_reply(), stream_id, items, len(payload.data))
        try:
            await reply
            return reply.result()
        except CancelledError:
            driver.exchanges.abandon(stream_id)
            raise
        except (Rejected, SetupRejected) as error:
            if items is not None and not items.repeatable:
                raise
            again = driver.exchanges.queue.repeats(error)
            if not (again or connector.replaces(driver.exchanges, error)):
                raise
        finally:
            if items is not None:
                driver.exchanges.cancel_stream(stream_id)
        if again:
            return await self._queued(driver, kind, route, payload, items, stream_id)
        return await self._queued(await connector.driver(), kind, route, payload, items)

    async def _wait(self, kind: Kind, route: str, payload: Payload, items: Outgoing | None) -> Any:
        """Wait for a driver, or in its queue if it has one, and send a request."""
        driver = self._connector.current
        if driver is None or driver.link is None or kind is _FIRE:
            driver = await self._connector.driver()
        return await self._queued(driver, kind, route, payload, items)

    def _queued(
        self, driver: Driver, kind: Kind, route: str, payload: Payload, items: Outgoing | None, order: int = 0
    ) -> Coroutine[Any, Any, Any]:
        """Send a request through the queue; the peer has refused it before if `order` is its stream id."""
        own = _fired if kind is _FIRE else partial(_pending, items=items)
        return self._connector.queued(driver, (kind, route, payload, 1), own, items, order)

    def _stream(self, wanted: StreamRequest) -> Stream:
        """Return a stream or channel that is not open yet."""
        if not self._interceptors:
            return Stream(self._connector, wanted)
        request = self._request(wanted.kind, wanted.route, wanted.payload, wanted.routed, wanted.outgoing)
        return Stream(self._connector, wanted, request, self._interceptors)

    # Interceptors.

    async def _intercepted(
        self, kind: Kind, route: str, payload: Payload, routed: bool, outgoing: Source | None
    ) -> Any:
        request = self._request(kind, route, payload, routed, outgoing)
        result = await chain(self._interceptors, self._last)(request)
        if kind is _FIRE:
            return None
        if not isinstance(result, Payload):
            what = type(result).__name__
            raise LocalError(f"an interceptor returned {what}; it must return the Payload of the response")
        return result

    async def _last(self, request: Request) -> Any:
        assert self._plain is not None
        return await self._plain._send(request.kind, request.route, request.payload, request.routed, request.items)

    def _request(self, kind: Kind, route: str, payload: Payload, routed: bool, items: Source | None) -> Request:
        request = Request(kind, route, payload, self._driver.connection, items)
        request.routed = routed
        return request
