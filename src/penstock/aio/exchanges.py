"""Tables of the owners of a session's streams, and the operations of owners."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections import deque
from collections.abc import Callable
from inspect import iscoroutine
from typing import Any, Final

from ..errors import ApplicationError, Canceled, LeaseMissing, LocalError, OwnerMissing, StreamClosed
from ..events import Event
from ..kinds import Kind
from ..payload import Payload
from ..session import Durable
from .flow import Flow
from .ports import ReceivingHalf, SendingHalf

__all__ = ["Exchanges", "LeaseWaiters"]

logger = logging.getLogger("penstock.aio")

EAGER: Final[dict[str, Any]] = {"eager_start": True} if sys.version_info >= (3, 12) else {}
"""A handler that does not wait ends without a turn of the loop."""
MAX_ABANDONED: Final = 1_024
"""Streams in `abandoned` after which those whose last event was delivered are removed."""


class Exchanges:
    """The owners of a session's streams.

    Every stream has an owner from when it is opened until the session reports its end or its owner abandons it. An
    event without an owner ends the session with :exc:`~penstock.OwnerMissing`, because its content would be lost
    silently. Late events are dropped if their stream is in `abandoned`, or if they are a grant or an end for a sending
    half that has already ended.

    Attributes:
        calls: The future of each pending call, by stream.
        inbound: The receiving halves of the other streams.
        outbound: The sending halves.
        abandoned: Streams that were abandoned, or whose handler has ended, while the session may still have events for
            them, which are dropped. Emptied when the session has no events.
        restored: Receiving halves of streams that another process opened, until `Peer.adopt` returns them.
        tasks: Tasks of handlers and sources that have not ended.
        leases: Requests that wait for a lease.

    """

    __slots__ = ("abandoned", "calls", "flow", "inbound", "leases", "outbound", "restored", "session", "tasks")

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.session = flow.session
        self.calls: dict[int, asyncio.Future[Payload]] = {}
        self.inbound: dict[int, ReceivingHalf] = {}
        self.outbound: dict[int, SendingHalf] = flow.senders
        self.abandoned: set[int] = set()
        self.restored: list[Any] = []
        self.tasks: set[asyncio.Future[Any]] = set()
        self.leases = LeaseWaiters(flow)

    # For the owner of a stream.

    def request(self, stream_id: int, count: int) -> None:
        """Request more items from the peer."""
        self.session.request(stream_id, count)
        self.flow.schedule_write()

    def abandon(self, stream_id: int) -> None:
        """Cancel a pending call."""
        future = self.calls.pop(stream_id, None)
        if future is not None:
            self.abandoned.add(stream_id)
            self.session.cancel(stream_id)
            self.flow.schedule_write()

    def cancel_stream(self, stream_id: int, metadata: bytes | None = None) -> None:
        """Cancel the halves that are still open of a stream that this side opened."""
        half = self.outbound.pop(stream_id, None)
        inbound = self.inbound.pop(stream_id, None)
        if inbound is not None:
            self.abandoned.add(stream_id)
            self.session.cancel(stream_id, metadata)
            inbound.ended(StreamClosed("this side canceled the stream"))
        if half is not None:
            self.abandoned.add(stream_id)
            # This also ends a call whose response has arrived but not its completion.
            self.calls.pop(stream_id, None)
            self.session.fail(stream_id, Canceled(message="the requester canceled the stream"))
            half.canceled()
        self.flow.schedule_write()

    # For handlers and sources.

    def start(self, work: Any, finished: Callable[[asyncio.Future[Any]], None]) -> asyncio.Future[Any]:
        """Run `work` in a task, and call `finished` at its end; `finished` must remove the task from `tasks`."""
        loop = self.flow.loop
        if iscoroutine(work):
            task: asyncio.Future[Any] = asyncio.Task(work, loop=loop, **EAGER)
        else:
            task = asyncio.ensure_future(work, loop=loop)
        if task.done():
            finished(task)
        else:
            self.tasks.add(task)
            task.add_done_callback(finished)
        return task

    def fail(self, stream_id: int, error: BaseException, name: str) -> None:
        """Fail a stream with the exception of its handler, or of the source of its items.

        `name` is the handler's name for the log. It is empty for a requester's source, whose error reaches its
        consumer.
        """
        if not isinstance(error, Exception):
            error = Canceled(message="the handler was canceled")
        elif name and isinstance(error, LocalError):
            # The message says what cannot be sent, and where. No traceback: a peer may cause many of these.
            logger.error("%s failed: %s", name, error)
        elif name and not isinstance(error, ApplicationError):
            logger.error("%s failed", name, exc_info=error)
        try:
            self.session.fail(stream_id, error)
        except LocalError as wrong:
            logger.error("%s failed, and its error cannot be sent: %s", name, wrong)
            self.session.fail(stream_id, wrong)
        self.abandoned.add(stream_id)
        self.end_inbound(stream_id, error)
        self.flow.schedule_write()

    def half_ended(self, half: SendingHalf, stream_id: int, name: str) -> None:
        """Remove a sending half that has ended. If it belongs to a handler, also cancel its inbound items."""
        if self.outbound.get(stream_id) is half:
            del self.outbound[stream_id]
            self.abandoned.add(stream_id)
        if name:
            self.release(stream_id)

    def release(self, stream_id: int) -> None:
        """Cancel the inbound items of a handler that has ended."""
        inbound = self.inbound.pop(stream_id, None)
        if inbound is not None:
            self.abandoned.add(stream_id)
            self.session.cancel(stream_id)
            inbound.ended(StreamClosed("the handler has ended"))
            self.flow.schedule_write()

    # For dispatch and the driver.

    def end_inbound(self, stream_id: int, error: Exception | None) -> bool:
        """End the call or the receiving half of a stream; return False if there is none."""
        future = self.calls.pop(stream_id, None)
        if future is not None and not future.done():
            if error is None:
                # Some peers complete a call without an item; the response is then empty.
                future.set_result(Payload())
            else:
                future.set_exception(error)
        inbound = self.inbound.pop(stream_id, None)
        if inbound is not None:
            inbound.ended(error)
        return inbound is not None or future is not None

    def end_outbound(self, stream_id: int, metadata: bytes | None = None) -> bool:
        """End the sending half of a stream; return False if there is none."""
        half = self.outbound.pop(stream_id, None)
        if half is not None:
            half.canceled(metadata)
        return half is not None

    def unowned(self, event: Event) -> None:
        """End the session because of an event without an owner, unless its stream is in `abandoned`."""
        stream_id = event.stream_id
        if stream_id not in self.abandoned:
            # One report is enough.
            self.abandoned.add(stream_id)
            name = type(event).__name__
            error = OwnerMissing(f"stream {stream_id}: {name} arrived without an owner; please report this defect")
            self.session.close(self.flow.loop.time(), error)

    def forget_abandoned(self, durable: Durable) -> None:
        """Remove the streams from `abandoned` that have no more events."""
        if durable.settled:
            self.abandoned.clear()
        elif len(self.abandoned) > MAX_ABANDONED:
            # A busy session always has events that wait for storage.
            self.abandoned &= durable.withheld


class LeaseWaiters:
    """Requests that wait for a lease on one connection, in the order of arrival.

    Attributes:
        missing: True before the first lease, and after a request that had none, until the next lease.

    """

    __slots__ = ("_flow", "_waiting", "missing")

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self.missing = bool(flow.settings.lease)
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def open(
        self, kind: Kind, route: str, payload: Payload, credit: int, done: bool = False, endless: bool = False
    ) -> int:
        """Open a stream as soon as a lease allows it; see `Session.open`.

        Raises:
            LeaseMissing: No lease arrived within `Settings.lease_timeout`.

        """
        flow = self._flow
        timeout = flow.settings.lease_timeout
        first = True
        try:
            async with asyncio.timeout(timeout):
                while True:
                    # Requests that already wait go first.
                    if not (first and self._waiting):
                        try:
                            return flow.session.open(kind, route, payload, credit, done, endless)
                        except LeaseMissing:
                            self.missing = True
                            if timeout <= 0:
                                raise
                    await self._wait(first)
                    first = False
        except TimeoutError:
            raise LeaseMissing(f"{flow.name} did not grant a lease for another request within {timeout:g} s") from None

    def granted(self, count: int) -> None:
        """Let `count` waiting requests try again."""
        self.missing = self.missing and count == 0
        for waiter in list(self._waiting)[:count]:
            if not waiter.done():
                waiter.set_result(None)

    def closed(self) -> None:
        """Wake all requests, which then fail because the connection is closed."""
        self.granted(len(self._waiting))

    async def _wait(self, first: bool) -> None:
        waiter: asyncio.Future[None] = self._flow.loop.create_future()
        # A request that was overtaken by a new one keeps its place.
        (self._waiting.append if first else self._waiting.appendleft)(waiter)
        try:
            await waiter
        finally:
            self._waiting.remove(waiter)
