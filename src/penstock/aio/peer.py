"""The other side of a connection, as users see it."""

from __future__ import annotations

from asyncio import CancelledError, Future
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Protocol, TypeAlias

from ..errors import LeaseMissing, LocalError, SessionClosed
from ..kinds import Kind
from ..payload import Payload
from .connectors import Connector
from .driver import Driver
from .handlers import Interceptor, Request, chain
from .pump import Source, pump
from .streams import Stream, StreamRequest

__all__ = ["Peer", "RequestMetadata", "RoutableMetadata"]

# Members of an enumeration cost a look-up each time.
_CALL = Kind.CALL
_FIRE = Kind.FIRE


class RoutableMetadata(Protocol):
    """Metadata that holds a route beside other things, such as :class:`penstock.Metadata`."""

    def addressed(self, route: str) -> bytes:
        """Return the metadata of a request for `route`."""


RequestMetadata: TypeAlias = "bytes | RoutableMetadata | None"
"""Metadata beside a request: an entry beside the route, or what holds the route itself."""


def request_of(route: str, data: bytes | str | Payload, metadata: RequestMetadata) -> tuple[Payload, bool]:
    """Return what a request carries, and whether its metadata holds the route already."""
    routed = False
    if metadata is not None and not isinstance(metadata, bytes | str):
        metadata = metadata.addressed(route)
        routed = True
    return data if isinstance(data, Payload) else Payload(data, metadata), routed


def _ready(connector: Connector) -> Driver | None:
    """Return the driver that takes output now, if there is one."""
    driver = connector.current
    return None if driver is None or driver.flow.paused else driver


def _pending(driver: Driver, stream_id: int) -> Future[Payload]:
    """Return the future of a call that was opened, and have its request written."""
    future: Future[Payload] = driver.loop.create_future()
    driver.exchanges.calls[stream_id] = future
    driver.flow.wake()
    return future


class Peer:
    """Asks the other side of a connection for things. :func:`penstock.connect` makes one.

    Data may be bytes, a string (sent as UTF-8) or a :class:`~penstock.Payload`. Metadata beside it becomes an
    entry beside the route, as the protocol has it; a :class:`~penstock.Metadata` becomes as many as it has. All of
    the methods raise

    * :exc:`~penstock.ApplicationError` when the other side failed what was asked of it,
    * :exc:`~penstock.SessionClosed`, or the error that closed it, when the connection is closed,
    * :exc:`~penstock.ConnectError` when there is no connection, and none came in time: nothing was sent,
    * :exc:`~penstock.UnsupportedKind` when the protocol cannot carry it,
    * :exc:`~penstock.LeaseMissing` when the connection works with leases, and none came in time.
    """

    __slots__ = ("_connector", "_interceptors", "_plain")

    def __init__(self, connector: Connector, interceptors: Iterable[Interceptor] = ()) -> None:
        self._connector = connector
        self._interceptors = list(interceptors)
        # What asks the other side after the last interceptor.
        self._plain: Peer | None = Peer(connector) if self._interceptors else None

    def __repr__(self) -> str:
        return f"<Peer {self._driver.flow.name}{', closed' if self.closed else ''}>"

    @property
    def closed(self) -> bool:
        """Whether it is closed for good: nothing can be asked for any more."""
        return self._connector.closed

    @property
    def outstanding(self) -> int:
        """How many streams are open, calls included, of both sides."""
        return self._connector.outstanding

    @property
    def data_mime(self) -> str:
        """The MIME type of the data, as `Settings.data_mime` has it."""
        return self._connector.settings.data_mime

    def call(
        self, route: str, data: bytes | str | Payload = b"", *, metadata: RequestMetadata = None
    ) -> Coroutine[Any, Any, Payload]:
        """Send one item and return the one that comes back: await it. Canceling the task cancels the call.

        Args:
            route: The handler.
            data: The request.
            metadata: Metadata of the request, unless `data` has its own.

        Returns:
            The answer; an empty payload where the other side completed without one.

        """
        payload, routed = request_of(route, data, metadata)
        return self._ask(_CALL, route, payload, routed, None)

    def fire(
        self, route: str, data: bytes | str | Payload = b"", *, metadata: RequestMetadata = None
    ) -> Coroutine[Any, Any, None]:
        """Send one item without waiting for a response: await it, which takes until the link takes more output.

        The arguments are those of :meth:`call`.
        """
        payload, routed = request_of(route, data, metadata)
        return self._ask(_FIRE, route, payload, routed, None)

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
        """Return the items that come back for one: use it as ``async with``, and iterate over it.

        Nothing is sent before the block is entered, or the first item is asked for. Leaving the block cancels what
        has not come.

        Args:
            route: The handler.
            data: The request.
            metadata: Metadata of the request, unless `data` has its own.
            credit: Items that may be under way; else `Settings.credit`, which grows to `Settings.max_credit` while
                they are taken fast.
            manual: Ask for no more than `credit` items, but for what :meth:`Stream.grant` says.
            endless: Ask for a stream that is not expected to complete, where the protocol tells the two apart
                (ReactiveSocket 0.0: REQUEST_SUB).
            on_push: Gets metadata that the other side pushes between the items, when its turn comes
                (ReactiveSocket 0.0); else it is ignored.

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
    ) -> Stream:
        """Send items and take items at once. Returns what comes back, to be used as :meth:`stream` says.

        Args:
            route: The handler.
            data: The request, which is also the first item that travels.
            outgoing: The items that follow it: an iterable or async iterable of what `data` may be, or of
                ``pyarrow.RecordBatch``. The other side's credit sets its pace.
            metadata: Metadata of the request, unless `data` has its own.
            credit: Items that may be under way to us; else as for `stream`.

        Raises:
            LocalError: `credit` is less than 1.

        """
        payload, routed = request_of(route, data, metadata)
        return self._stream(StreamRequest(Kind.CHANNEL, route, payload, routed, credit, outgoing=outgoing))

    def upload(
        self,
        route: str,
        data: bytes | str | Payload,
        outgoing: Source,
        *,
        metadata: RequestMetadata = None,
    ) -> Coroutine[Any, Any, Payload]:
        """Send items and return the one that comes back for all of them: await it.

        Args:
            route: The handler.
            data: The request, which is also the first item that travels.
            outgoing: The items that follow it; see :meth:`channel`. What is left of them when the answer
                comes early is not sent.
            metadata: Metadata of the request, unless `data` has its own.

        Returns:
            The answer.

        """
        payload, routed = request_of(route, data, metadata)
        return self._ask(Kind.UPLOAD, route, payload, routed, outgoing)

    async def push(self, metadata: bytes) -> None:
        """Send metadata that belongs to the connection as a whole, without waiting for a response.

        No interceptor sees it.

        Args:
            metadata: In the form of the connection's metadata MIME type.

        Raises:
            UnsupportedKind: The protocol has no such thing.

        """
        await self._connector.push(metadata)

    async def close(self, grace: float | None = None) -> None:
        """Close the connection, once what is open has ended, or `grace` seconds later. Twice is fine.

        Args:
            grace: Else `Settings.close_grace`; 0 fails at once what is open.

        """
        await self._connector.close(grace)

    def reset_budget(self) -> None:
        """Let River connect again when its retry budget is used up.

        It has five tries in a row, of which one is given back for each 200 ms that a connection holds. While it is used
        up, requests fail with a :exc:`~penstock.ConnectError`. Where there is no budget, nothing happens.
        """
        self._connector.reset_budget()

    # For the collector, which resumes sessions across processes.

    @property
    def secret(self) -> bytes:
        """What another process needs, beside a checkpoint, to resume this session; see `Session.secret`."""
        return self._driver.session.secret

    def checkpoint(self, stream: Stream, count: int) -> bytes | None:
        """Return what another process needs to resume this session; see `Session.checkpoint`.

        Args:
            stream: The stream of which :meth:`commit` will request more.
            count: How many items.

        """
        return self._driver.session.checkpoint(stream.stream_id, count)

    def commit(self) -> None:
        """Tell the peer that all the last checkpoint covers is safe; see `Session.commit`."""
        driver = self._driver
        driver.session.commit()
        driver.flow.wake()

    def detach(self) -> None:
        """Give up the connection without ending the session, which the peer keeps for the process that resumes it."""
        self._connector.detach()

    def adopt(self) -> Stream | None:
        """Return the next stream that the session had open at its checkpoint; None when there are no more.

        All that has arrived since the session was resumed is in it, and so is its end, if that has come. No interceptor
        sees it.
        """
        restored = self._driver.exchanges.restored
        return Stream.adopted(self._connector, restored.pop(0)) if restored else None

    @property
    def _driver(self) -> Driver:
        """The driver of the peer's own session."""
        driver = self._connector.latest
        if driver is None:
            raise LocalError("a balancer has no session of its own; ask one of its nodes by connect()")
        return driver

    # Requests.

    async def _ask(self, kind: Kind, route: str, payload: Payload, routed: bool, outgoing: Source | None) -> Any:
        """Ask for what has at most one item for an answer, and return that; for FIRE None.

        `routed` says that the metadata of `payload` holds the route already; only an UPLOAD has `outgoing` items.
        """
        if self._interceptors:
            return await self._intercepted(kind, route, payload, routed, outgoing)
        driver = _ready(self._connector) or await self._connector.driver()
        if routed:
            route = ""
        try:
            try:
                stream_id = driver.session.open(kind, route, payload, 1)
            except LeaseMissing:
                stream_id = await driver.exchanges.leases.open(kind, route, payload, 1)
        except SessionClosed as error:
            raise driver.error or error from None
        if kind is _FIRE:
            driver.flow.wake()
            return None
        future = _pending(driver, stream_id)
        if outgoing is not None:
            pump(driver.exchanges, stream_id, 0, outgoing)
        try:
            return await future
        except CancelledError:
            driver.exchanges.abandon(stream_id)
            raise
        finally:
            if outgoing is not None:
                driver.exchanges.cancel_stream(stream_id)

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
            raise LocalError(f"an interceptor returned {what}; it returns the Payload that is the answer")
        return result

    async def _last(self, request: Request) -> Any:
        assert self._plain is not None
        return await self._plain._ask(request.kind, request.route, request.payload, request.routed, request.items)

    def _request(self, kind: Kind, route: str, payload: Payload, routed: bool, items: Source | None) -> Request:
        request = Request(kind, route, payload, self._driver.connection, items)
        request.routed = routed
        return request
