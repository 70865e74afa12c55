"""The connection of a task to the receiver of its rows, and the requests that stall on it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ..connection import Connection
from ..errors import (
    ApplicationError,
    LinkError,
    PeerClosed,
    Rejected,
    ResumeRejected,
    SessionClosed,
    SessionError,
    SetupRejected,
    Undelivered,
    WeirpoolError,
)
from ..kinds import Kind
from ..tap import Tap
from .sink_options import SinkOptions

if TYPE_CHECKING:
    from ..aio.peer import Peer

__all__ = ["Link", "is_temporary"]

logger = logging.getLogger("weirpool.spark")

LONGEST_WAIT: Final = 3600.0
"""Seconds between looks at a request without a limit."""

T = TypeVar("T")


class Activity(Tap):
    """When something last happened on the connection."""

    def __init__(self) -> None:
        self.last = 0.0

    def touch(self) -> None:
        """Note that something happens."""
        self.last = asyncio.get_running_loop().time()

    def items_received(self, connection: Connection, count: int) -> None:
        """See :class:`weirpool.Tap`."""
        self.touch()

    def items_sent(self, connection: Connection, count: int) -> None:
        """See :class:`weirpool.Tap`."""
        self.touch()

    def stream_opened(self, connection: Connection, kind: Kind, ours: bool) -> None:
        """See :class:`weirpool.Tap`."""
        self.touch()


class Link:
    """A connection that is made when it is needed, and again after it broke.

    Args:
        options: The server, how long a request may take, and how often it is repeated.

    """

    def __init__(self, options: SinkOptions) -> None:
        self._target = options.target
        self._timeout = options.timeout
        self._idle = options.idle_timeout
        self._retries = options.retries
        self._activity = Activity()
        self._peer: Peer | None = None

    async def __aenter__(self) -> Link:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._peer is not None:
            await self._peer.close(None if error is None else 0)

    async def request(self, send: Callable[[Peer], Awaitable[T]], what: str, held: Callable[[], float]) -> T:
        """Return the result of a request, which is repeated if that may help, but does not wait for ever.

        Args:
            send: Sends the request to the peer.
            what: The request, for errors.
            held: Returns until when the receiver has waited for this side, in the loop's time.

        Raises:
            Undelivered: It has taken too long, or nothing has happened for too long.
            WeirpoolError: What the request has failed with, the last time.

        """
        from ..aio.reconnect import Backoff

        backoff = Backoff()
        left = self._retries
        while True:
            try:
                return await self._watched(self._attempt(send), what, held)
            except WeirpoolError as error:
                if not left or not is_temporary(error):
                    raise
                logger.warning("%s is repeated: %s", what, error)
            left -= 1
            await self._drop()
            await backoff.wait()

    async def _attempt(self, send: Callable[[Peer], Awaitable[T]]) -> T:
        if self._peer is None:
            self._peer = await self._target.connect([self._activity])
        return await send(self._peer)

    async def _drop(self) -> None:
        """Close the connection. The next request makes another."""
        peer, self._peer = self._peer, None
        if peer is not None:
            await peer.close(0)

    async def _watched(self, work: Coroutine[Any, Any, T], what: str, held: Callable[[], float]) -> T:
        loop = asyncio.get_running_loop()
        began = loop.time()
        self._activity.touch()
        request = asyncio.ensure_future(work)
        try:
            while not request.done():
                left = {
                    "has not been completed within": _left(self._timeout, began),
                    "has made no progress for": _left(self._idle, max(self._activity.last, held())),
                }
                soonest = min(left, key=lambda why: left[why][0])
                seconds, limit = left[soonest]
                if seconds <= 0:
                    raise Undelivered(f"{what} {soonest} {limit:g} s; the receiver has stalled, or is too slow")
                await asyncio.wait([request], timeout=seconds)
            return request.result()
        finally:
            if not request.done():
                request.cancel()
                await asyncio.wait([request])


def _left(limit: float | None, since: float) -> tuple[float, float]:
    """Return the seconds that are left of a limit, and the limit."""
    if limit is None:
        return LONGEST_WAIT, LONGEST_WAIT
    return since + limit - asyncio.get_running_loop().time(), limit


def is_temporary(error: BaseException) -> bool:
    """Return True if the same request may succeed later: the network failed, or the receiver was busy or restarted."""
    if isinstance(error, SetupRejected):
        return error.temporary
    if isinstance(error, ApplicationError) and isinstance(error.__cause__, SessionError):
        # The protocol has failed the streams of a broken session with a code.
        return is_temporary(error.__cause__)
    return isinstance(error, LinkError | PeerClosed | ResumeRejected | SessionClosed | Rejected)
