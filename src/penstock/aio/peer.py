"""The other side of a connection, as this side's users see it."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable
from typing import Protocol

from ..errors import LeaseMissing, SessionClosed
from ..kinds import Kind
from ..payload import Payload
from .driver import Driver
from .pump import Source, pump
from .streams import Stream

__all__ = ["Addressable", "Peer", "addressed"]

# Members of an enumeration cost a look-up each time.
_CALL = Kind.CALL
_FIRE = Kind.FIRE


class Addressable(Protocol):
    """Metadata that holds a route beside other things, such as :class:`penstock.Metadata`."""

    def addressed(self, route: str) -> bytes:
        """Return the metadata of a request for `route`."""


def addressed(route: str, metadata: bytes | Addressable) -> tuple[str, bytes]:
    """Return a request's route and metadata; where the metadata holds the route as well, no other is left."""
    return (route, metadata) if isinstance(metadata, bytes | str) else ("", metadata.addressed(route))


class Peer:
    """Asks the other side of a connection for things. :func:`penstock.connect` makes one.

    Data may be bytes, a string (sent as UTF-8) or a :class:`~penstock.Payload`. Metadata beside it becomes an
    entry beside the route, as the protocol has it; a :class:`~penstock.Metadata` becomes as many as it has. All of
    the methods raise

    * :exc:`~penstock.ApplicationError` when the other side failed what was asked of it,
    * :exc:`~penstock.SessionClosed`, or the error that closed it, when the connection is closed,
    * :exc:`~penstock.UnsupportedKind` when the protocol cannot carry it,
    * :exc:`~penstock.LeaseMissing` when the connection works with leases, and none came in time.
    """

    __slots__ = ("_driver",)

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def __repr__(self) -> str:
        return f"<Peer {self._driver.name}{', closed' if self.closed else ''}>"

    @property
    def closed(self) -> bool:
        """Whether the connection is closed for good."""
        return self._driver.closed

    @property
    def outstanding(self) -> int:
        """How many streams are open, calls included, of both sides."""
        return self._driver.session.open_streams

    @property
    def data_mime(self) -> str:
        """What the data of the connection is."""
        return self._driver.settings.data_mime

    async def call(
        self, route: str, data: bytes | str | Payload = b"", *, metadata: bytes | Addressable | None = None
    ) -> Payload:
        """Send one item and return the one that comes back. Canceling the task cancels the call.

        Args:
            route: The handler.
            data: The request.
            metadata: Metadata of the request, unless `data` has its own.

        """
        driver = self._driver
        if metadata is not None:
            route, metadata = addressed(route, metadata)
        payload = data if type(data) is Payload else Payload(data, metadata)  # type: ignore[arg-type]
        if driver.paused:
            await driver.writable()
        try:
            stream_id = driver.session.open(_CALL, route, payload, 1)
        except SessionClosed as error:
            raise self._closed(error) from None
        except LeaseMissing:
            stream_id = await self._leased(_CALL, route, payload, 1)
        future = driver.loop.create_future()
        driver.calls[stream_id] = future
        driver.wake()
        try:
            return await future  # type: ignore[no-any-return]
        except CancelledError:
            driver.abandon(stream_id)
            raise

    async def fire(
        self, route: str, data: bytes | str | Payload = b"", *, metadata: bytes | Addressable | None = None
    ) -> None:
        """Send one item, of which nobody learns what became. Returns once the link takes more output."""
        driver = self._driver
        if metadata is not None:
            route, metadata = addressed(route, metadata)
        payload = data if type(data) is Payload else Payload(data, metadata)  # type: ignore[arg-type]
        if driver.paused:
            await driver.writable()
        try:
            driver.session.open(_FIRE, route, payload)
        except SessionClosed as error:
            raise self._closed(error) from None
        except LeaseMissing:
            await self._leased(_FIRE, route, payload, 0)
        driver.wake()

    def stream(
        self,
        route: str,
        data: bytes | str | Payload = b"",
        *,
        metadata: bytes | Addressable | None = None,
        credit: int | None = None,
        manual: bool = False,
        endless: bool = False,
        on_push: Callable[[bytes], None] | None = None,
    ) -> Stream:
        """Return the items that come back for one: use it as ``async with``, and iterate over it.

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

        """
        stream = self._stream(Kind.STREAM, route, data, metadata, credit, manual, None)
        stream.endless = endless
        stream.on_push = on_push
        return stream

    def channel(
        self,
        route: str,
        data: bytes | str | Payload,
        outgoing: Source,
        *,
        metadata: bytes | Addressable | None = None,
        credit: int | None = None,
    ) -> Stream:
        """Send items and take items at once. Returns what comes back, as :meth:`stream` does.

        Args:
            route: The handler.
            data: The request, which is also the first item that travels.
            outgoing: The items that follow it: an iterable or async iterable of what `data` may be, or of
                ``pyarrow.RecordBatch``. The other side's credit sets its pace.
            metadata: Metadata of the request, unless `data` has its own.
            credit: Items that may be under way to us; else as for `stream`.

        """
        return self._stream(Kind.CHANNEL, route, data, metadata, credit, False, outgoing)

    async def upload(
        self, route: str, data: bytes | str | Payload, outgoing: Source, *, metadata: bytes | Addressable | None = None
    ) -> Payload:
        """Send items and return the one that comes back for all of them.

        Args:
            route: The handler.
            data: The request, which is also the first item that travels.
            outgoing: The items that follow it; see :meth:`channel`. What is left of them when the answer
                comes early is not sent.
            metadata: Metadata of the request, unless `data` has its own.

        """
        driver = self._driver
        if metadata is not None:
            route, metadata = addressed(route, metadata)
        payload = data if type(data) is Payload else Payload(data, metadata)  # type: ignore[arg-type]
        if driver.paused:
            await driver.writable()
        try:
            stream_id = driver.session.open(Kind.UPLOAD, route, payload, 1)
        except SessionClosed as error:
            raise self._closed(error) from None
        except LeaseMissing:
            stream_id = await self._leased(Kind.UPLOAD, route, payload, 1)
        future = driver.loop.create_future()
        driver.calls[stream_id] = future
        pump(driver, stream_id, 0, outgoing)
        driver.wake()
        try:
            return await future  # type: ignore[no-any-return]
        finally:
            driver.abandon(stream_id)
            driver.leave(stream_id)

    async def push(self, metadata: bytes) -> None:
        """Send metadata that belongs to the connection as a whole.

        Raises:
            UnsupportedKind: The protocol has no such thing.

        """
        driver = self._driver
        if driver.paused:
            await driver.writable()
        driver.session.push(metadata)
        driver.wake()

    async def close(self, grace: float | None = None) -> None:
        """Close the connection, once what is open has ended, or `grace` seconds later.

        Args:
            grace: Else `Settings.close_grace`; 0 fails at once what is open.

        """
        await self._driver.close(grace)

    def reset_budget(self) -> None:
        """Let River connect again when its retry budget is used up.

        It has five tries in a row, of which one is given back for each 200 ms that a connection holds. While it is used
        up, what is asked for fails with a :exc:`~penstock.ConnectError`. Where there is no budget, nothing happens.
        """

    # For the collector, which resumes sessions across processes.

    def checkpoint(self, stream: Stream, count: int) -> bytes | None:
        """Return what another process needs to resume this session; see `Session.checkpoint`.

        Args:
            stream: The stream of which :meth:`commit` will ask for more.
            count: How many items.

        """
        return self._driver.session.checkpoint(stream.stream_id, count)

    def commit(self) -> None:
        """Tell the peer that all the last checkpoint covers is safe; see `Session.commit`."""
        self._driver.session.commit()
        self._driver.wake()

    def detach(self) -> None:
        """Let go of the connection without ending the session, which the peer keeps for whoever resumes it."""
        self._driver.detach()

    def adopt(self) -> Stream | None:
        """Return the stream that a resumed session has open, for its new owner; None when it has none."""
        ids = self._driver.session.streams()
        return Stream.adopted(self._driver, ids[0]) if ids else None

    def _stream(
        self,
        kind: Kind,
        route: str,
        data: bytes | str | Payload,
        metadata: bytes | Addressable | None,
        credit: int | None,
        manual: bool,
        outgoing: Source | None,
    ) -> Stream:
        driver = self._driver
        if metadata is not None:
            route, metadata = addressed(route, metadata)
        payload = data if isinstance(data, Payload) else Payload(data, metadata)
        return Stream(driver, kind, route, payload, credit, manual, outgoing)

    async def _leased(self, kind: Kind, route: str, payload: Payload, credit: int) -> int:
        """Open a stream once there is leave for it."""
        try:
            return await self._driver.lessees.open(kind, route, payload, credit)
        except SessionClosed as error:
            raise self._closed(error) from None

    def _closed(self, error: SessionClosed) -> Exception:
        """Return why nothing can be opened any more."""
        return self._driver.error or error
