"""The blocking peer."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Coroutine
from functools import partial
from types import TracebackType
from typing import Any, TypeVar

from ..aio import peer as aio
from ..aio.peer import RequestMetadata
from ..aio.sources import Source
from ..payload import Payload
from .loop import Close, LoopThread
from .sources import source_of
from .stream import Stream

__all__ = ["Peer"]

T = TypeVar("T")


class Peer:
    """The other side of a connection, to which requests are sent; :func:`weirpool.sync.connect` returns one.

    It has the methods of :class:`weirpool.Peer`, which block until they are done. Use it as ``with``, or call
    :meth:`close`. Any number of threads may use it at once. Each method with a `timeout` raises :exc:`TimeoutError` if
    it takes more than so many seconds; None stands for the timeout of the peer, `math.inf` for no limit. Ctrl-C cancels
    the request that the main thread waits for.

    Args:
        raw: The peer of the asyncio API.
        loop: The thread that runs it.
        timeout: Seconds that a request may take by default; None: no limit.
        owned: Whether the connection is closed when this object is collected as garbage.

    """

    def __init__(self, raw: aio.Peer, loop: LoopThread, timeout: float | None = None, owned: bool = True) -> None:
        self._raw = raw
        self._loop = loop
        self._timeout = timeout
        self._owned = owned
        self._close: Close = partial(raw.close, 0)
        if owned:
            loop.close_at_exit(self._close)

    def __repr__(self) -> str:
        return repr(self._raw)

    def __enter__(self) -> Peer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # After an exception, open streams are not waited for.
        self.close(None if error is None else 0)

    def __del__(self, _warn: Callable[..., None] = warnings.warn) -> None:
        if getattr(self, "_owned", False) and self._loop.usable and not self._raw.closed:
            _warn(f"{self!r} was not closed; use it as a context manager, or call close()", ResourceWarning, 1, self)
            self._loop.abandon(self._close)

    @property
    def closed(self) -> bool:
        """True if the peer is closed and will not reconnect: all further requests fail."""
        return self._raw.closed

    @property
    def linked(self) -> bool:
        """True while there is a link. Without one, a session that can be resumed waits for the next."""
        return self._raw.linked

    @property
    def outstanding(self) -> int:
        """The number of open streams of both sides, including calls."""
        return self._loop.call(lambda: self._raw.outstanding)

    @property
    def data_mime(self) -> str:
        """The MIME type of data: `Settings.data_mime`, or over River that of the URL's codec."""
        return self._raw.data_mime

    def call(
        self,
        route: str,
        data: bytes | str | Payload = b"",
        *,
        metadata: RequestMetadata = None,
        timeout: float | None = None,
    ) -> Payload:
        """Send a request and return its response. Arguments are those of :meth:`weirpool.Peer.call`.

        Raises:
            TimeoutError: There is no response after `timeout` seconds. The call is canceled.

        """
        return self._wait(self._raw.call(route, data, metadata=metadata), timeout, f"call {route!r}")

    def fire(
        self,
        route: str,
        data: bytes | str | Payload = b"",
        *,
        metadata: RequestMetadata = None,
        timeout: float | None = None,
    ) -> None:
        """Send a request that has no response. Arguments are those of :meth:`weirpool.Peer.fire`."""
        self._wait(self._raw.fire(route, data, metadata=metadata), timeout, f"fire {route!r}")

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
        timeout: float | None = None,
    ) -> Stream:
        """Return a stream of response items, to use as ``with`` and iterate over.

        Arguments are those of :meth:`weirpool.Peer.stream`. `timeout` limits each wait for items, not the whole stream.
        `on_push` is called in the thread of the event loop, so it must not block.
        """
        raw = self._raw.stream(
            route, data, metadata=metadata, credit=credit, manual=manual, endless=endless, on_push=on_push
        )
        return Stream(raw, self, self._loop, f"stream {route!r}", self._limit(timeout))

    def channel(
        self,
        route: str,
        data: bytes | str | Payload,
        outgoing: Source,
        *,
        metadata: RequestMetadata = None,
        credit: int | None = None,
        manual: bool = False,
        timeout: float | None = None,
    ) -> Stream:
        """Send items and receive items at the same time. Arguments are those of :meth:`weirpool.Peer.channel`.

        An iterable such as a generator runs in a thread of its own, so it may block. It is read only as fast as the
        peer requests items. `timeout` limits each wait for items.
        """
        raw = self._raw.channel(route, data, source_of(outgoing), metadata=metadata, credit=credit, manual=manual)
        return Stream(raw, self, self._loop, f"channel {route!r}", self._limit(timeout))

    def upload(
        self,
        route: str,
        data: bytes | str | Payload,
        outgoing: Source,
        *,
        metadata: RequestMetadata = None,
        timeout: float | None = None,
    ) -> Payload:
        """Send items and return the single response to all of them.

        Arguments are those of :meth:`weirpool.Peer.upload`. `outgoing` is read as by :meth:`channel`. `timeout` limits
        the whole upload.
        """
        upload = self._raw.upload(route, data, source_of(outgoing), metadata=metadata)
        return self._wait(upload, timeout, f"upload {route!r}")

    def push(self, metadata: bytes, *, timeout: float | None = None) -> None:
        """Send metadata that concerns the whole connection. See :meth:`weirpool.Peer.push`."""
        self._wait(self._raw.push(metadata), timeout, "push")

    def close(self, grace: float | None = None) -> None:
        """Close the connection after all open streams have ended. May be called more than once.

        Args:
            grace: Seconds after which open streams fail; `Settings.close_grace` by default; 0 fails them at once.

        """
        self._owned = False
        if self._loop.usable:
            self._loop.wait(self._raw.close(grace))
            self._loop.closed(self._close)

    def reset_budget(self) -> None:
        """Refill River's retry budget, so that a peer that has used it up reconnects."""
        self._loop.call(self._raw.reset_budget)

    def _limit(self, timeout: float | None) -> float | None:
        return self._timeout if timeout is None else timeout

    def _wait(self, work: Coroutine[Any, Any, T], timeout: float | None, what: str) -> T:
        return self._loop.wait(work, self._limit(timeout), what)
