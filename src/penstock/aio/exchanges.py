"""Who waits for what on each stream of a session."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable
from inspect import iscoroutine
from typing import Any, Final, Protocol

from .. import events
from ..errors import ApplicationError, Canceled, LocalError, OwnerMissing, StreamClosed
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
from ..payload import Payload
from ..session import Session
from ..settings import Settings
from .handlers import begin
from .inbound import Inbound
from .service import Service

__all__ = ["Exchanges", "SendingHalf", "without_requests"]

logger = logging.getLogger("penstock.aio")

CANCELED: Final = 0x203
"""RSocket 1.0, Error Codes: given up, maybe half done."""
EAGER: Final[dict[str, Any]] = {"eager_start": True} if sys.version_info >= (3, 12) else {}
"""Handlers that never wait need no turn of the loop."""


class SendingHalf(Protocol):
    """What moves items out on one stream, and is told here what concerns it."""

    def granted(self) -> None:
        """The peer asked for more."""

    def resumed(self) -> None:
        """The link has room again."""

    def canceled(self, metadata: bytes | None = None) -> None:
        """The peer wants no more, or the stream failed; it is out of the table already.

        Args:
            metadata: What the peer says about it: ReactiveSocket 0.0 and 0.2 alone carry it.

        """


class Exchanges:
    """The streams of one session: its events find their way to futures, items and handlers here.

    Every stream has an owner from the moment it is open, until the session reports its end or its owner leaves it. An
    event that finds none ends the session with :exc:`~penstock.OwnerMissing`: what it brought would be lost without a
    trace. Two kinds of events come late, and are dropped: those of a stream in `left`, and a grant, or an end, for a
    sending half that has ended by itself.

    Args:
        session: The session.
        settings: Limits and timeouts.
        service: What answers the peer's requests.

    Attributes:
        loop: The event loop that all of this belongs to.
        paused: Output waits for the network: whoever sends waits too.
        calls: Who waits for the one item of a call, by stream.
        inbound: Receiving halves of the other streams.
        outbound: Sending halves.
        left: Streams that their user left, or whose handler has ended, while the session may still hold events of
            theirs: these are dropped. It is emptied when the session holds no events.
        restored: Receiving halves of the streams that another process opened, until `Peer.adopt` hands them out.
        tasks: Tasks of handlers and sources that have not ended.

    """

    __slots__ = (
        "calls", "inbound", "left", "loop", "outbound", "paused", "restored", "service", "session", "settings", "tasks"
    )  # fmt: skip

    def __init__(self, session: Session, settings: Settings, service: Service) -> None:
        self.loop = asyncio.get_running_loop()
        self.session = session
        self.settings = settings
        self.service = service
        self.paused = True
        self.calls: dict[int, asyncio.Future[Payload]] = {}
        self.inbound: dict[int, Inbound] = {}
        self.outbound: dict[int, SendingHalf] = {}
        self.left: set[int] = set()
        self.restored: list[Inbound] = []
        self.tasks: set[asyncio.Future[Any]] = set()

    def wake(self) -> None:
        """Have what was just said to the session written within this batch, or this turn of the loop."""
        raise NotImplementedError

    def write(self) -> None:
        """Write the session's output now."""
        raise NotImplementedError

    def restore(self) -> None:
        """Own the streams of a session that was restored from a checkpoint. Call it before the first link opens.

        What arrives before `Peer.adopt` waits in their receiving halves, which grant nothing by themselves: the
        credit of the earlier process bounds them.
        """
        for stream_id in self.session.streams():
            self.inbound[stream_id] = inbound = Inbound(self, stream_id, 1, 1, True)  # type: ignore[arg-type]
            self.restored.append(inbound)

    # What a stream's user asks for.

    def request(self, stream_id: int, count: int) -> None:
        """Ask the peer for more items."""
        self.session.request(stream_id, count)
        self.wake()

    def abandon(self, stream_id: int) -> None:
        """Want the answer of a call no more."""
        future = self.calls.pop(stream_id, None)
        if future is not None:
            self.left.add(stream_id)
            self.session.cancel(stream_id)
            self.wake()

    def leave(self, stream_id: int, metadata: bytes | None = None) -> None:
        """End what is still open of a stream that this side opened."""
        half = self.outbound.pop(stream_id, None)
        inbound = self.inbound.pop(stream_id, None)
        if inbound is not None:
            self.left.add(stream_id)
            self.session.cancel(stream_id, metadata)
            inbound.ended(StreamClosed("the stream was left, and with it canceled"))
        if half is not None:
            self.left.add(stream_id)
            # A call that was answered, and not completed, ends with this.
            self.calls.pop(stream_id, None)
            self.session.fail(stream_id, Canceled(CANCELED, "the requester left the stream"))
            half.canceled()
        self.wake()

    # What handlers and sources ask for.

    def start(self, work: Any, finished: Callable[[asyncio.Future[Any]], None]) -> asyncio.Future[Any]:
        """Run `work` in a task and call `finished` at its end, which takes the task out of `tasks`."""
        if iscoroutine(work):
            task: asyncio.Future[Any] = asyncio.Task(work, loop=self.loop, **EAGER)
        else:
            task = asyncio.ensure_future(work, loop=self.loop)
        if task.done():
            finished(task)
        else:
            self.tasks.add(task)
            task.add_done_callback(finished)
        return task

    def reply(self, stream_id: int, payload: Payload) -> None:
        """Send the one item of an answer. A peer that wants it no more is left alone."""
        try:
            self.session.send(stream_id, payload, True)
        except StreamClosed:
            return
        self.wake()

    def finish(self, stream_id: int) -> None:
        """Send no more items."""
        self.session.complete(stream_id)
        self.wake()

    def fail(self, stream_id: int, error: BaseException, name: str) -> None:
        """End a stream because of what its handler, or the source of its items, raised.

        Args:
            stream_id: The stream.
            error: What was raised. Only an ApplicationError tells the peer its text.
            name: The handler, for the log; empty for a source of ours, whose error reaches our own consumer.

        """
        if not isinstance(error, Exception):
            error = Canceled(CANCELED, "the handler was canceled")
        elif name and isinstance(error, LocalError):
            # It says what cannot travel, and where; a peer may cause many of them by what a handler sends back.
            logger.error("%s failed: %s", name, error)
        elif name and not isinstance(error, ApplicationError):
            logger.error("%s failed", name, exc_info=error)
        try:
            self.session.fail(stream_id, error)
        except LocalError as wrong:
            logger.error("%s failed, and its error cannot travel: %s", name, wrong)
            self.session.fail(stream_id, wrong)
        self.left.add(stream_id)
        self._end_inbound(stream_id, error)
        self.wake()

    def half_ended(self, half: SendingHalf, stream_id: int, name: str) -> None:
        """Forget a sending half that is over. When it was a handler's, nobody takes items any more either."""
        if self.outbound.get(stream_id) is half:
            del self.outbound[stream_id]
            self.left.add(stream_id)
        if name:
            self.release(stream_id)

    def release(self, stream_id: int) -> None:
        """Want no more items for a handler that has ended."""
        inbound = self.inbound.pop(stream_id, None)
        if inbound is not None:
            self.left.add(stream_id)
            self.session.cancel(stream_id)
            inbound.ended(StreamClosed("the handler has ended"))
            self.wake()

    # Events.

    def dispatch(self, happened: list[Event]) -> None:
        """Hand events to those whom they concern."""
        for event in happened:
            kind = type(event)
            if kind is ItemReceived:
                self._item(event)  # type: ignore[arg-type]
            elif kind is Requested:
                begin(self, event)  # type: ignore[arg-type]
            elif kind is RunReceived:
                inbound = self.inbound.get(event.stream_id)
                if inbound is not None:
                    inbound.run(event.run)  # type: ignore[attr-defined]
                else:
                    self.unowned(event)
            elif kind is CreditGranted:
                half = self.outbound.get(event.stream_id)
                # A half that has ended by itself may see a late grant.
                if half is not None:
                    half.granted()
            elif event.stream_id:
                self._stream_event(event)
            else:
                self.session_event(event)

    def session_event(self, event: Event) -> None:
        """Take an event that concerns no stream."""
        if isinstance(event, MetadataPushed):
            try:
                self.service.pushed(event.metadata)
            except Exception:
                logger.exception("the push handler failed")

    def _stream_event(self, event: Event) -> None:
        """Take an event of a stream that is rarer than items."""
        if not isinstance(event, MetadataPushed):
            self._end(event)
        elif event.stream_id in self.inbound:
            self.inbound[event.stream_id].push(event.metadata)
        elif event.stream_id not in self.left:
            # A responder has no place for it among items.
            self.session_event(event)

    def _item(self, event: ItemReceived) -> None:
        stream_id = event.stream_id
        future = self.calls.get(stream_id)
        if future is not None:
            # An upload's answer may come before its end, which needs an owner as well.
            if event.done:
                del self.calls[stream_id]
            # One that was canceled is left in the next turn of the loop.
            if not future.done():
                future.set_result(event.payload)
            return
        inbound = self.inbound.get(stream_id)
        if inbound is not None:
            inbound.item(event.payload)
            if event.done:
                del self.inbound[stream_id]
                inbound.ended(None)
        else:
            self.unowned(event)

    def _end(self, event: Event) -> None:
        """Take an event that ends a stream, or half of it."""
        stream_id = event.stream_id
        if isinstance(event, Completed):
            if not self._end_inbound(stream_id, None):
                self.unowned(event)
        elif isinstance(event, events.Canceled):
            # A half that has ended by itself may see this late, too.
            self._end_outbound(stream_id, event.metadata)
            if event.done:
                why = Canceled(CANCELED, "the peer canceled the stream", None, event.metadata)
                self._end_inbound(stream_id, why)
        elif isinstance(event, Failed):
            sending = self._end_outbound(stream_id)
            receiving = self._end_inbound(stream_id, event.error)
            # In a stream of the peer's there may have been a sending half alone, which has ended by itself.
            if not (sending or receiving) and self.session.is_ours(stream_id):
                self.unowned(event)

    def unowned(self, event: Event) -> None:
        """End the session because of an event without an owner, unless its stream was left."""
        stream_id = event.stream_id
        if stream_id not in self.left:
            # One report is enough.
            self.left.add(stream_id)
            name = type(event).__name__
            error = OwnerMissing(f"stream {stream_id}: nobody owns it, and {name} came; please report this defect")
            self.session.close(self.loop.time(), error)

    def _end_inbound(self, stream_id: int, error: Exception | None) -> bool:
        """End the call, or what receives; return whether there was any."""
        future = self.calls.pop(stream_id, None)
        if future is not None and not future.done():
            if error is None:
                # Some peers complete a call without an item.
                future.set_result(Payload())
            else:
                future.set_exception(error)
        inbound = self.inbound.pop(stream_id, None)
        if inbound is not None:
            inbound.ended(error)
        return inbound is not None or future is not None

    def _end_outbound(self, stream_id: int, metadata: bytes | None = None) -> bool:
        """End what sends; return whether there was any."""
        half = self.outbound.pop(stream_id, None)
        if half is not None:
            half.canceled(metadata)
        return half is not None


def without_requests(happened: list[Event]) -> list[Event]:
    """Return the events that have an owner although nobody is admitted: those of streams that are open already.

    Requests are begun by nobody any more, and what came on their streams has no owner.
    """
    refused = {event.stream_id for event in happened if isinstance(event, Requested)}
    return [
        event
        for event in happened
        if not isinstance(event, MetadataPushed | Established) and event.stream_id not in refused
    ]
