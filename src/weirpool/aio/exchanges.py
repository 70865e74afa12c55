"""Tables of the owners of a session's streams, and the operations of owners."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable
from contextvars import Context
from functools import partial
from typing import Any, Final
from weakref import ref

from ..errors import ApplicationError, Canceled, LimitExceeded, LocalError, OwnerMissing, Rejected, StreamClosed
from ..events import Event
from ..payload import Payload
from ..session import Durable
from .flow import Flow
from .ports import Holding, ReceivingHalf, SendingHalf
from .queueing import RequestQueue
from .replies import Replies, Reply
from .slots import Slots

__all__ = ["Exchanges", "cancel_tasks", "contained", "ends_task", "failure_of"]

logger = logging.getLogger("weirpool.aio")

COMPILED: Final = not __file__.endswith(".py")
"""In plain Python, a future of asyncio is faster than a reply."""
EAGER: Final[dict[str, Any]] = {"eager_start": True} if sys.version_info >= (3, 12) else {}
"""A handler that does not wait ends without a turn of the loop."""
FATAL: Final = (SystemExit, KeyboardInterrupt)
"""Exceptions with which a task ends its event loop, so they must not leave it: a request must not end the process."""
UNREAD_HALVES: Final = 64
"""Halves in `unread` after which those without items are removed, beyond twice as many as were left the last time."""
CANCEL_TIMEOUT: Final = 1.0
"""Seconds that a canceled handler has to end."""
MAX_ABANDONED: Final = 1_024
"""Streams in `abandoned` after which those whose last event was delivered are removed."""


class Contained(Exception):
    """Carries an exception of `FATAL`, its cause, out of the task of a handler."""


async def contained(work: Awaitable[Any]) -> Any:
    """Await `work`, without letting it end the event loop."""
    try:
        return await work
    except FATAL as error:
        raise Contained from error


def failure_of(task: asyncio.Future[Any]) -> BaseException | None:
    """Return the exception of the handler or source that ran in `task`, which has ended."""
    if task.cancelled():
        return asyncio.CancelledError()
    error = task.exception()
    return error.__cause__ if type(error) is Contained else error


def ends_task(error: BaseException) -> bool:
    """Return True if `error` was thrown into the current task to end it, and not raised by the code that it runs."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        # It is closed after its event loop.
        return True
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


class Exchanges:
    """The owners of a session's streams.

    Every stream has an owner from when it is opened until the session reports its end or its owner abandons it. An
    event without an owner ends the session with :exc:`~weirpool.OwnerMissing`, because its content would be lost
    silently. Late events are dropped if their stream is in `abandoned`, or if they are a grant or an end for a sending
    half that has already ended, also in the session.

    Attributes:
        new_reply: Returns a reply that is not done; in plain Python a future, which is faster there.
        calls: The reply of each pending call, by stream.
        inbound: The receiving halves of the other streams.
        outbound: The sending halves.
        abandoned: Streams that were abandoned, or whose handler has ended, while the session may still have events for
            them, which are dropped. Emptied when the session has no events.
        queue: Requests that wait until the peer admits them.
        restored: Receiving halves of streams that another process opened, until `Peer.adopt` returns them.
        unread: Receiving halves that have ended while they held items, weakly, because the consumer may drop them.
        fires: The handlers of FIRE that run in tasks. They are no sending halves, but hold their requests, too.
        slots: Counts the handlers of the peer's requests that run in tasks.
        tasks: Tasks of handlers and sources that have not ended.

    """

    __slots__ = (
        "_unread_before", "abandoned", "calls", "fires", "flow", "inbound", "new_reply", "outbound", "queue",
        "restored", "session", "slots", "tasks", "unread"
    )  # fmt: skip

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.session = flow.session
        self.new_reply: Callable[[], Any] = Replies(flow).new if COMPILED else flow.loop.create_future
        self.calls: dict[int, Reply] = {}
        self.inbound: dict[int, ReceivingHalf] = {}
        self.outbound: dict[int, SendingHalf] = flow.senders
        self.abandoned: set[int] = set()
        self.restored: list[Any] = []
        self.fires: set[Any] = set()
        self.slots = Slots(flow, self.fires)
        self.unread: list[ref[ReceivingHalf]] = []
        self._unread_before = 0
        self.tasks: set[asyncio.Future[Any]] = set()
        self.queue = RequestQueue(flow, self.calls)

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

    def start(
        self, work: Any, finished: Callable[[asyncio.Future[Any]], None], context: Context, name: str
    ) -> asyncio.Future[Any]:
        """Run `work` in a task in `context`, and call `finished` at its end; it must remove the task from `tasks`.

        Code of users must be :func:`contained`. Logs show the task with `name`, because they cannot show that code.
        """
        loop = self.flow.loop
        if asyncio.iscoroutine(work):
            task: asyncio.Future[Any] = asyncio.Task(work, loop=loop, name=name, context=context, **EAGER)
        else:
            task = context.run(partial(asyncio.ensure_future, work, loop=loop))
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
        if isinstance(error, asyncio.CancelledError):
            error = Canceled(message="the handler was canceled")
        elif name and isinstance(error, LocalError):
            # The message says what cannot be sent, and where. No traceback: a peer may cause many of these.
            logger.error("%s failed: %s", name, error)
        elif name and not isinstance(error, ApplicationError):
            logger.error("%s failed", name, exc_info=error)
        if not isinstance(error, Exception):
            # A consumer must not get an exception that ends its own task, such as GeneratorExit.
            cause, error = error, RuntimeError(f"{name or 'the source of items'} raised {type(error).__name__}")
            error.__cause__ = cause
        try:
            self.session.fail(stream_id, error)
        except Exception as wrong:
            # Handlers may raise errors with anything in them.
            logger.error("%s failed, and its error cannot be sent: %s", name, wrong)
            self.session.fail(stream_id, LocalError(f"the error cannot be sent: {wrong}"))
        self.abandoned.add(stream_id)
        self.end_inbound(stream_id, error)
        self.flow.schedule_write()

    def half_ended(self, half: SendingHalf, stream_id: int, name: str) -> None:
        """Remove a sending half that has ended. If it belongs to a handler, also cancel its inbound items."""
        if half.held:
            self.flow.account.release(half.held)
            half.held = 0
            if not self.flow.batching:
                # A batch settles the account.
                self.flow.schedule_write()
        if self.outbound.get(stream_id) is half:
            del self.outbound[stream_id]
            self.abandoned.add(stream_id)
        if name:
            self.release(stream_id)

    def half_replaced(self, half: SendingHalf, stream_id: int) -> None:
        """Let the half that has replaced another one hold its request."""
        successor = self.outbound.get(stream_id)
        if successor is not None:
            successor.held = half.held
        else:
            self.flow.account.release(half.held)
        half.held = 0

    def ended_unread(self, inbound: ReceivingHalf) -> None:
        """Remember a receiving half that has ended while it held items."""
        unread = self.unread
        unread.append(ref(inbound))
        if len(unread) > 2 * self._unread_before + UNREAD_HALVES:
            self.unread = [each for each in unread if (half := each()) is not None and half.account.held]
            self._unread_before = len(self.unread)

    def holdings(self) -> list[Holding]:
        """Return what streams hold that was not consumed: items, and the requests of running handlers."""
        unread = [half for each in self.unread if (half := each()) is not None]
        receiving = [*self.inbound.values(), *unread]
        sending = [*self.outbound.values(), *self.fires]
        return [
            *[Holding(half.account.held, half.stream_id, half.discard) for half in receiving],
            *[Holding(half.held, half.stream_id, None) for half in sending],
        ]

    def drop(self, holding: Holding, why: str) -> None:
        """Drop what a stream holds, and fail both its halves."""
        stream_id = holding.stream_id
        self.end_outbound(stream_id)
        for each in self.fires:
            if each.stream_id == stream_id:
                each.canceled()
        if holding.discard is not None:
            holding.discard(LimitExceeded(f"{why}; consume items faster, or request fewer"))
        # The handler may have begun, so the peer must not take this for a refusal, and ask elsewhere.
        self.fail(stream_id, Canceled(message=why), "")

    def release(self, stream_id: int) -> None:
        """Cancel the inbound items of a handler that has ended."""
        inbound = self.inbound.pop(stream_id, None)
        if inbound is not None:
            self.abandoned.add(stream_id)
            self.session.cancel(stream_id)
            inbound.ended(StreamClosed("the handler has ended"))
            self.flow.schedule_write()

    async def finish_fires(self, deadline: float) -> None:
        """Wait for the handlers of FIRE, whose requesters wait for no response; until `deadline` at the latest."""
        tasks = [fire.task for fire in self.fires]
        if tasks:
            await asyncio.wait(tasks, timeout=max(deadline - self.flow.loop.time(), 0.0))

    # For dispatch and the driver.

    def end_inbound(self, stream_id: int, error: Exception | None) -> bool:
        """End the call or the receiving half of a stream; return False if there is none."""
        future = self.calls.pop(stream_id, None)
        if future is not None and not future.done():
            if error is None:
                # Some peers complete a call without an item; the response is then empty.
                future.set_result(Payload())
            else:
                if isinstance(error, Rejected):
                    self.queue.refused(error)
                future.set_exception(error)
        inbound = self.inbound.pop(stream_id, None)
        if inbound is not None:
            if isinstance(error, Rejected) and self.session.is_ours(stream_id):
                inbound.refused = self.queue.crowded_out(error)
            inbound.ended(error)
        return inbound is not None or future is not None

    def end_outbound(self, stream_id: int, metadata: bytes | None = None) -> bool:
        """End the sending half of a stream; return False if there is none."""
        half = self.outbound.pop(stream_id, None)
        if half is not None:
            half.canceled(metadata)
        return half is not None

    def owns(self, stream_id: int) -> bool:
        """Return True if a stream of this side has an owner."""
        return stream_id in self.calls or stream_id in self.inbound or stream_id in self.outbound

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


async def cancel_tasks(tasks: set[asyncio.Future[Any]], name: str) -> None:
    """Cancel tasks of handlers, except the calling one, and wait up to `CANCEL_TIMEOUT` for them to end."""
    tasks = tasks - {asyncio.current_task()}
    if not tasks:
        return
    for task in tasks:
        task.cancel()
    _, stubborn = await asyncio.wait(tasks, timeout=CANCEL_TIMEOUT)
    for task in stubborn:
        logger.warning("%s: handler did not stop after cancellation: %r", name, task)
