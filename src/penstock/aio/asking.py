"""What every peer can be asked for: the signatures and what they mean, once for all who offer them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from ..kinds import Kind
from ..payload import Payload
from .pump import Source
from .streams import Stream, Wanted

__all__ = ["Addressable", "Asking"]

# Members of an enumeration cost a look-up each time.
_CALL = Kind.CALL
_FIRE = Kind.FIRE


class Addressable(Protocol):
    """Metadata that holds a route beside other things, such as :class:`penstock.Metadata`."""

    def addressed(self, route: str) -> bytes:
        """Return the metadata of a request for `route`."""


def request_of(route: str, data: bytes | str | Payload, metadata: bytes | Addressable | None) -> tuple[Payload, bool]:
    """Return what a request carries, and whether its metadata holds the route already; then no other is left.

    Args:
        route: The handler.
        data: The request.
        metadata: Metadata of the request, unless `data` has its own.

    """
    routed = False
    if metadata is not None and not isinstance(metadata, bytes | str):
        metadata = metadata.addressed(route)
        routed = True
    return data if isinstance(data, Payload) else Payload(data, metadata), routed


class Asking:
    """Asks another side for things, in one way for all who do: a peer, and what stands before one or several.

    Data may be bytes, a string (sent as UTF-8) or a :class:`~penstock.Payload`. Metadata beside it becomes an
    entry beside the route, as the protocol has it; a :class:`~penstock.Metadata` becomes as many as it has. All of
    the methods raise

    * :exc:`~penstock.ApplicationError` when the other side failed what was asked of it,
    * :exc:`~penstock.SessionClosed`, or the error that closed it, when the connection is closed,
    * :exc:`~penstock.ConnectError` when there is no connection, and none came in time: nothing was sent,
    * :exc:`~penstock.UnsupportedKind` when the protocol cannot carry it,
    * :exc:`~penstock.LeaseMissing` when the connection works with leases, and none came in time.

    Each subclass says what becomes of a request: in `_ask` where at most one item comes back, in `_stream` where many
    may.
    """

    __slots__ = ()

    @property
    def closed(self) -> bool:
        """Whether it is closed for good: nothing can be asked for any more."""
        raise NotImplementedError

    @property
    def data_mime(self) -> str:
        """The MIME type of the data, as `Settings.data_mime` has it."""
        raise NotImplementedError

    def call(
        self, route: str, data: bytes | str | Payload = b"", *, metadata: bytes | Addressable | None = None
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
        self, route: str, data: bytes | str | Payload = b"", *, metadata: bytes | Addressable | None = None
    ) -> Coroutine[Any, Any, None]:
        """Send one item, of which nobody learns what became: await it, which takes until the link takes more output.

        Args:
            route: The handler.
            data: The item.
            metadata: Metadata of the request, unless `data` has its own.

        """
        payload, routed = request_of(route, data, metadata)
        return self._ask(_FIRE, route, payload, routed, None)

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
        return self._stream(Wanted(Kind.STREAM, route, payload, routed, credit, manual, None, endless, on_push))

    def channel(
        self,
        route: str,
        data: bytes | str | Payload,
        outgoing: Source,
        *,
        metadata: bytes | Addressable | None = None,
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
        return self._stream(Wanted(Kind.CHANNEL, route, payload, routed, credit, outgoing=outgoing))

    def upload(
        self, route: str, data: bytes | str | Payload, outgoing: Source, *, metadata: bytes | Addressable | None = None
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
        """Send metadata that belongs to the connection as a whole. Nobody learns what became of it.

        Args:
            metadata: In the form of the connection's metadata MIME type.

        Raises:
            UnsupportedKind: The protocol has no such thing.

        """
        raise NotImplementedError

    async def close(self, grace: float | None = None) -> None:
        """Close the connection, once what is open has ended, or `grace` seconds later. Twice is fine.

        Args:
            grace: Else `Settings.close_grace`; 0 fails at once what is open.

        """
        raise NotImplementedError

    def _ask(
        self, kind: Kind, route: str, payload: Payload, routed: bool, outgoing: Source | None
    ) -> Coroutine[Any, Any, Any]:
        """Ask for what has at most one item for an answer; what is awaited for it begins with the first step.

        Args:
            kind: CALL, FIRE or UPLOAD.
            route: The handler.
            payload: The request.
            routed: Its metadata holds the route already.
            outgoing: For UPLOAD: the items that follow it.

        Returns:
            Something to await for the item that comes back; for FIRE for None.

        """
        raise NotImplementedError

    def _stream(self, wanted: Wanted) -> Stream:
        """Return a stream or channel that is not open yet."""
        raise NotImplementedError
