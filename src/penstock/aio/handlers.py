"""Runs handlers: from a request that came in to the answer that goes out."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final

from ..errors import Rejected
from ..events import Requested
from ..kinds import Kind
from ..payload import Payload
from .inbound import Inbound
from .pump import Source, pump
from .service import Handler
from .streams import Items

if TYPE_CHECKING:
    from .driver import Driver

__all__ = ["begin"]

REJECTED: Final = 0x202
"""RSocket 1.0, Error Codes: refused before anything was done."""
ROUTE_CHARACTERS: Final = 100
"""How much of a route that nobody knows is said back."""

# Plain integers are compared faster than members of an enumeration.
_CALL = int(Kind.CALL)
_FIRE = int(Kind.FIRE)
_STREAM = int(Kind.STREAM)
_UPLOAD = int(Kind.UPLOAD)


def begin(driver: Driver, event: Requested) -> None:
    """Run the handler of a request. What it raises fails the stream, and nothing else."""
    if event.kind == _STREAM:
        handler = driver.service.find(event.kind, event.route, driver.session.calls_by_streams)
    else:
        handler = driver.service.find(event.kind, event.route)
    if handler is None:
        _refuse(driver, event)
        return
    try:
        if event.kind <= _FIRE:
            _answer(driver, event.stream_id, handler.function(event.payload), handler)
        elif event.kind == _STREAM:
            result = handler.function(event.payload)
            source = result if handler.kind == _STREAM else _alone(result)
            pump(driver, event.stream_id, event.credit, source, handler.name)
        else:
            _begin_channel(driver, event, handler)
    except (Exception, asyncio.CancelledError) as error:
        driver.fail(event.stream_id, error, handler.name)


def _refuse(driver: Driver, event: Requested) -> None:
    kind = event.kind.name.lower()
    # What came with the request has no owner.
    driver.left.add(event.stream_id)
    driver.session.fail(
        event.stream_id, Rejected(REJECTED, f"no {kind} handler is named {event.route[:ROUTE_CHARACTERS]!r}")
    )


def _begin_channel(driver: Driver, event: Requested, handler: Handler) -> None:
    """Run a handler that takes items, of an upload or a channel."""
    stream_id = event.stream_id
    window = driver.settings.credit
    inbound = Inbound(driver, stream_id, window, driver.settings.max_credit, False)
    if event.done:
        inbound.ended(None)
    else:
        driver.inbound[stream_id] = inbound
        driver.request(stream_id, window)
    result = handler.function(event.payload, Items(driver, inbound))
    if handler.kind == _UPLOAD:
        _answer(driver, stream_id, result, handler)
    else:
        pump(driver, stream_id, event.credit, result, handler.name)


def _answer(driver: Driver, stream_id: int, result: Any, handler: Handler) -> None:
    """Send the one item that a handler returned, or will return."""
    if type(result) is Payload:
        _reply(driver, stream_id, result, handler)
    elif type(result) is not bytes and isawaitable(result):
        TaskAnswer(driver, stream_id, handler).start(result)
    else:
        _reply(driver, stream_id, _payload(result), handler)


def _alone(result: Any) -> Source:
    """Return the one item that a call's handler returned, or will return, as a stream."""
    if type(result) is not bytes and type(result) is not Payload and isawaitable(result):
        return Alone(result)
    return (_payload(result),)


def _payload(result: Any) -> Payload:
    if type(result) is Payload:
        return result
    return Payload() if result is None else Payload(result)


def _reply(driver: Driver, stream_id: int, payload: Payload, handler: Handler) -> None:
    if handler.kind != _FIRE:
        driver.reply(stream_id, payload)
        if handler.kind == _UPLOAD:
            driver.release(stream_id)


class Alone:
    """What a call's handler will return, to be awaited as a stream of one item.

    Attributes:
        close: Of the coroutine that it is, if it is one: whoever never awaits it calls that.

    """

    def __init__(self, result: Awaitable[Any]) -> None:
        self._result = result
        self.close: Callable[[], None] = getattr(result, "close", lambda: None)

    def __await__(self) -> Generator[Any, Any, tuple[Payload]]:
        result = yield from self._result.__await__()
        return (_payload(result),)


class TaskAnswer:
    """A handler that runs in a task, and answers with one item or none.

    It stands in the driver's table of sending halves, so that the peer can cancel it.
    """

    __slots__ = ("driver", "handler", "over", "stream_id", "task")

    def __init__(self, driver: Driver, stream_id: int, handler: Handler) -> None:
        self.driver = driver
        self.stream_id = stream_id
        self.handler = handler
        self.over = False
        self.task: asyncio.Future[Any] | None = None

    def start(self, work: Any) -> None:
        """Begin."""
        driver = self.driver
        if self.handler.kind == _FIRE:
            driver.fire_started()
        else:
            driver.outbound[self.stream_id] = self
        self.task = driver.start(work, self._finished)

    def granted(self) -> None:
        """Nothing: the one item was asked for with the request."""

    def resumed(self) -> None:
        """Nothing: the one item is sent when it is there."""

    def canceled(self, metadata: bytes | None = None) -> None:
        """Stop: nobody wants the answer. The driver has forgotten this half already."""
        self.over = True
        if self.task is not None:
            self.task.cancel(metadata)

    def _finished(self, task: asyncio.Future[Any]) -> None:
        """Send the answer."""
        driver = self.driver
        handler = self.handler
        stream_id = self.stream_id
        driver.tasks.discard(task)
        if handler.kind == _FIRE:
            driver.fire_ended()
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if error is not None:
            # Canceled by the peer: there is nobody to tell.
            if not (self.over and task.cancelled()):
                driver.fail(stream_id, error, handler.name)
        elif not self.over:
            try:
                _reply(driver, stream_id, _payload(task.result()), handler)
            except Exception as wrong:
                driver.fail(stream_id, wrong, handler.name)
        driver.half_ended(self, stream_id, handler.name)
        driver.wake()
