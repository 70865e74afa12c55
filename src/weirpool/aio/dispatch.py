"""Passes events to the owners of streams, and requests to handlers."""

from __future__ import annotations

import asyncio
import logging
from asyncio import isfuture
from collections.abc import Callable
from contextvars import Context
from inspect import isawaitable
from types import CoroutineType
from typing import Any, Final

from ..errors import Canceled, Rejected, StreamClosed
from ..events import Canceled as CanceledByPeer
from ..events import (
    Completed,
    CreditGranted,
    Established,
    Event,
    Failed,
    ItemReceived,
    MetadataPushed,
    Requested,
    RunReceived,
)
from ..kinds import Kind
from ..payload import Payload
from ..transports.turns import TURN_SECONDS
from .exchanges import Exchanges, contained, failure_of
from .handlers import Handler
from .inbound import NEVER, ReceiveBuffer
from .items import Items
from .late_answer import LateAnswer
from .late_requests import CHECK_EVERY, LateRequests
from .pump import pump
from .pushes import Pushes
from .service import Service
from .sizes import size_of
from .sources import SingleItem, Source

__all__ = ["Dispatch", "without_requests"]

logger = logging.getLogger("weirpool.aio")

ROUTE_CHARACTERS: Final = 100
"""Characters of an unknown route that an error repeats."""

# Plain integers are compared faster than members of an enumeration, and this type faster than by `isawaitable`.
_COROUTINE = CoroutineType
_CALL = int(Kind.CALL)
_FIRE = int(Kind.FIRE)
_STREAM = int(Kind.STREAM)
_UPLOAD = int(Kind.UPLOAD)


class Dispatch:
    """The sink that passes each event to the owner of its stream, and starts a handler for each request.

    `on_session_event` is called with each event that concerns the whole session.

    Attributes:
        late: Requests that wait for another turn of the loop.
        context: The connection's context. Each request is handled in its own copy, so that context variables which a
            handler sets are unknown to all others.

    """

    __slots__ = (
        "_calls", "_fires", "_on_session_event", "_pushes", "_turns", "context", "exchanges", "flow", "late",
        "service"
    )  # fmt: skip

    def __init__(self, exchanges: Exchanges, service: Service, on_session_event: Callable[[Event], None]) -> None:
        self.flow = exchanges.flow
        self.exchanges = exchanges
        self.serve(service)
        self._on_session_event = on_session_event
        self.context = self.flow.lane.context
        self._turns = self.flow.turns
        self.late = LateRequests(exchanges, self.take)
        self._pushes = Pushes(exchanges, self.context)

    def serve(self, service: Service) -> None:
        """Use the handlers of `service` for further requests."""
        self.service = service
        # Handlers that were found, by their routes; not with interceptors, which need a new one for each request.
        self._calls: dict[str, Handler] = {}
        self._fires: dict[str, Handler] = {}

    # Events.

    def take(self, happened: list[Event]) -> None:
        """Handle the events of one batch in order. Requests may have to wait; see `LateRequests`.

        A request whose stream ends in the same batch is not begun (THREATS 36).
        """
        late = self.late
        if late.active:
            happened = late.sift(happened)
        ended = None
        begun = 0.0
        count = 0
        check = 1 if len(happened) > 1 else 0
        for place, event in enumerate(happened):
            kind = type(event)
            if kind is ItemReceived:
                self._item(event)  # type: ignore[arg-type]
            elif kind is RunReceived:
                self._run(event)  # type: ignore[arg-type]
            elif kind is Requested:
                if ended is None and place + 1 < len(happened):
                    ended = _ended_after(happened, place)
                if ended and event.stream_id in ended:
                    self.exchanges.abandoned.add(event.stream_id)
                    continue
                count += 1
                waits = self.exchanges.slots.full()
                if count == check:
                    now = self._turns.clock()
                    begun = begun or now
                    waits = waits or now - begun >= TURN_SECONDS
                    check += min(check, CHECK_EVERY)
                if waits:
                    late.start()
                    self.take(happened[place:])
                    return
                self._begin(event)  # type: ignore[arg-type]
            else:
                self._handle(event)

    def _handle(self, event: Event) -> None:
        kind = type(event)
        if kind is CreditGranted:
            half = self.exchanges.outbound.get(event.stream_id)
            if half is not None:
                half.granted()
            elif self.flow.session.credit(event.stream_id) > 0:
                # A grant may arrive after the half has ended, but the session's half is open.
                self.exchanges.unowned(event)
        elif kind is MetadataPushed:
            self._pushed(event)  # type: ignore[arg-type]
        elif event.stream_id:
            self._end(event)
        else:
            self._on_session_event(event)

    def _run(self, event: RunReceived) -> None:
        inbound = self.exchanges.inbound.get(event.stream_id)
        if inbound is not None:
            inbound.run(event.run)
        else:
            self.exchanges.unowned(event)

    def _item(self, event: ItemReceived) -> None:
        exchanges = self.exchanges
        stream_id = event.stream_id
        reply = exchanges.calls.get(stream_id)
        if reply is not None:
            # The response to an upload may arrive before its end, which needs an owner as well.
            if event.done:
                del exchanges.calls[stream_id]
            # A canceled call is abandoned in the next turn of the loop.
            if not reply.done():
                reply.set_result(event.payload)
            return
        inbound = exchanges.inbound.get(stream_id)
        if inbound is not None:
            inbound.item(event.payload)
            if event.done:
                del exchanges.inbound[stream_id]
                inbound.ended(None)
        else:
            exchanges.unowned(event)

    def _pushed(self, event: MetadataPushed) -> None:
        exchanges = self.exchanges
        stream_id = event.stream_id
        if stream_id in exchanges.inbound:
            exchanges.inbound[stream_id].push(event.metadata)
        elif stream_id and self.flow.session.is_ours(stream_id) and not exchanges.owns(stream_id):
            exchanges.unowned(event)
        elif not stream_id or stream_id not in exchanges.abandoned:
            # A responder does not receive pushed metadata in order with items.
            self._pushes.take(self.service, event.metadata)

    def _end(self, event: Event) -> None:
        """Handle an event that ends a stream, or half of it."""
        exchanges = self.exchanges
        stream_id = event.stream_id
        if isinstance(event, Completed):
            if not exchanges.end_inbound(stream_id, None):
                exchanges.unowned(event)
        elif isinstance(event, CanceledByPeer):
            # This, too, may arrive after the half has ended.
            exchanges.end_outbound(stream_id, event.metadata)
            if event.done:
                why = Canceled(message="the peer canceled the stream", metadata=event.metadata)
                exchanges.end_inbound(stream_id, why)
        elif isinstance(event, Failed):
            sending = exchanges.end_outbound(stream_id)
            receiving = exchanges.end_inbound(stream_id, event.error)
            # A stream that the peer opened may have had only a sending half, which has ended already.
            if not (sending or receiving) and self.flow.session.is_ours(stream_id):
                exchanges.unowned(event)

    # Requests.

    def _begin(self, event: Requested) -> None:
        """Run the handler of a request in a context of its own. An exception fails only its stream."""
        kind = event.kind
        handler = self._find(kind, event.route)
        if handler is None:
            self._reject(event)
            return
        context = self.context.copy()
        try:
            if kind <= _FIRE:
                self._answer(event, context.run(handler.function, event.payload), handler, context)
            elif kind == _STREAM:
                result = context.run(handler.function, event.payload)
                source = result if handler.kind == _STREAM else _single(result)
                pump(self.exchanges, event.stream_id, event.credit, source, handler.name, context)
                self._hold(event, handler)
            else:
                self._begin_channel(event, handler, context)
        except BaseException as error:
            self.exchanges.fail(event.stream_id, error, handler.name)

    def _find(self, kind: int, route: str) -> Handler | None:
        """Return the handler of a request, or None."""
        service = self.service
        if kind == _STREAM:
            return service.find(kind, route, self.flow.session.calls_by_streams)
        if kind > _FIRE:
            return service.find(kind, route)
        known = self._calls if kind == _CALL else self._fires
        handler = known.get(route)
        if handler is None:
            handler = service.find(kind, route)
            if handler is not None and handler.lasting and not service.interceptors:
                known[route] = handler
        return handler

    def _reject(self, event: Requested) -> None:
        kind = event.kind.name.lower()
        # Items that follow the request have no owner.
        self.exchanges.abandoned.add(event.stream_id)
        error = Rejected(message=f"no {kind} handler is named {event.route[:ROUTE_CHARACTERS]!r}")
        self.flow.session.fail(event.stream_id, error)

    def _begin_channel(self, event: Requested, handler: Handler, context: Context) -> None:
        """Run the handler of an upload or a channel, which receives items."""
        exchanges = self.exchanges
        settings = self.flow.settings
        stream_id = event.stream_id
        allowed = 0 if self.service.by_demand else NEVER
        inbound = ReceiveBuffer(exchanges, stream_id, settings.credit, settings.max_credit, False, allowed)
        if event.done:
            inbound.ended(None)
        else:
            exchanges.inbound[stream_id] = inbound
            first = inbound.expected + self.flow.session.counts_request
            if first > 0:
                exchanges.request(stream_id, first)
        result = context.run(handler.function, event.payload, Items(settings, inbound))
        if handler.kind == _UPLOAD:
            self._answer(event, result, handler, context)
        else:
            pump(exchanges, stream_id, event.credit, result, handler.name, context)
            self._hold(event, handler)

    def _hold(self, event: Requested, handler: Handler) -> None:
        """Count a request until the handler that may hold it has ended."""
        half = self.exchanges.outbound.get(event.stream_id)
        # A short response has ended already.
        if half is not None:
            half.held = _memory_of(event.payload, handler)
            self.flow.account.book(half.held)

    def _answer(self, event: Requested, result: Any, handler: Handler, context: Context) -> None:
        """Send the single item that a handler returned, or will return."""
        stream_id = event.stream_id
        if type(result) is Payload:
            _reply(self.exchanges, stream_id, result, handler)
        elif result is None and event.kind == _FIRE:
            return
        elif type(result) is _COROUTINE or (type(result) is not bytes and isawaitable(result)):
            TaskAnswer(self.exchanges, stream_id, handler, event.payload).start(result, context)
        else:
            _reply(self.exchanges, stream_id, _payload(result), handler)


def _ended_after(happened: list[Event], place: int) -> set[int]:
    """Return the streams that the events after `place` end."""
    ended = set()
    for event in happened[place + 1 :]:
        if (isinstance(event, CanceledByPeer) and event.done) or isinstance(event, Failed):
            ended.add(event.stream_id)
    return ended


def without_requests(happened: list[Event]) -> list[Event]:
    """Return the events of streams that are already open, for a connection that is not admitted.

    Requests are removed because no handler may start, and so are events on their streams, which have no owner.
    """
    refused = {event.stream_id for event in happened if isinstance(event, Requested)}
    return [
        event
        for event in happened
        if not isinstance(event, MetadataPushed | Established) and event.stream_id not in refused
    ]


def _single(result: Any) -> Source:
    """Return the single item that a call's handler returned, or will return, as a source of items."""
    if type(result) is not bytes and type(result) is not Payload and isawaitable(result):
        return SingleItem(result)
    return (_payload(result),)


def _payload(result: Any) -> Payload:
    if type(result) is Payload:
        return result
    return Payload() if result is None else Payload(result)


def _memory_of(request: Payload, handler: Handler) -> int:
    size = size_of(request)
    return size if handler.measure is None else size + handler.measure(request)


def _reply(exchanges: Exchanges, stream_id: int, payload: Payload, handler: Handler) -> None:
    """Send the single item of a response, unless the peer has canceled."""
    kind = handler.kind
    if kind == _FIRE:
        return
    flow = exchanges.flow
    if flow.paused and flow.part_bytes < len(payload.data) < flow.account.room():
        exchanges.outbound[stream_id] = LateAnswer(exchanges, stream_id, payload, handler)
        return
    try:
        exchanges.session.send(stream_id, payload, True)
    except StreamClosed:
        pass
    else:
        exchanges.flow.schedule_write(len(payload.data))
    if kind == _UPLOAD:
        exchanges.release(stream_id)


class TaskAnswer:
    """A handler that runs in a task, and responds with one item or none.

    The table of sending halves contains it, so that the peer can cancel it. It holds the request, and its slot, until
    it has ended.

    Attributes:
        over: Its stream is over.

    """

    __slots__ = ("exchanges", "handler", "held", "over", "stream_id", "task", "work")

    def __init__(self, exchanges: Exchanges, stream_id: int, handler: Handler, request: Payload) -> None:
        self.held = _memory_of(request, handler)
        exchanges.flow.account.book(self.held)
        self.exchanges = exchanges
        self.stream_id = stream_id
        self.handler = handler
        self.over = handler.kind == _FIRE
        self.task: asyncio.Future[Any] | None = None
        self.work: Any = None

    def start(self, work: Any, context: Context) -> None:
        """Run `work`, which returns the response, in the context of its request."""
        if self.over:
            self.exchanges.fires.add(self)
        else:
            self.exchanges.outbound[self.stream_id] = self
        self.exchanges.slots.take(self.over)
        if not isfuture(work):
            self.work = work
            work = contained(work)
        self.task = self.exchanges.start(work, self._finished, context, self.handler.name)

    def granted(self) -> None:
        """Do nothing: the request included the demand for the item."""

    def canceled(self, metadata: bytes | None = None) -> None:
        """Cancel the handler. The half is no longer in the table."""
        if not self.over:
            self.over = True
            self.exchanges.slots.linger()
        if self.task is not None:
            self.task.cancel(metadata)

    def _finished(self, task: asyncio.Future[Any]) -> None:
        """Send the response, or fail the stream."""
        # The traceback of its exception refers to this answer: both would live until the next garbage collection.
        self.task = None
        exchanges = self.exchanges
        handler = self.handler
        stream_id = self.stream_id
        if task.cancelled() and hasattr(self.work, "close"):
            # The coroutine is still open if the task was canceled before its first step.
            self.work.close()
        self.work = None
        exchanges.tasks.discard(task)
        exchanges.fires.discard(self)
        exchanges.slots.free(self.over)
        error = failure_of(task)
        if error is not None:
            # If the peer has canceled, it needs no error.
            if not (self.over and task.cancelled()):
                exchanges.fail(stream_id, error, handler.name)
        elif not self.over:
            try:
                _reply(exchanges, stream_id, _payload(task.result()), handler)
            except BaseException as wrong:
                exchanges.fail(stream_id, wrong, handler.name)
        exchanges.half_ended(self, stream_id, handler.name)
