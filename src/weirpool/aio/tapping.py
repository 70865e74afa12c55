"""A session that reports its events to taps."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Set
from operator import attrgetter
from time import perf_counter
from typing import Any, Final

from ..connection import Connection
from ..errors import Canceled as CanceledError
from ..errors import LinkError, Rejected, SetupRejected
from ..events import Canceled, Closed, Completed, Established, Event, Failed, ItemReceived, Requested, RunReceived
from ..functions import check_plain
from ..kinds import Kind
from ..payload import Payload, PayloadRun
from ..session import Session
from ..tap import Outcome, Refusal, RefusalCause, Tap

__all__ = ["TappedSession", "Taps", "cause_of"]

logger = logging.getLogger("weirpool.aio")

STREAMS: Final = {"stream_opened", "stream_ended", "request_ended"}
ROUTE_CHARACTERS: Final = 255
"""Longer routes are not kept until their requests end."""
OBSERVED: Final = {
    "cancel": STREAMS,
    "complete": STREAMS,
    "fail": STREAMS,
    "open": STREAMS,
    "receive": {"received"},
    "send": {*STREAMS, "items_sent"},
    "send_run": {"items_sent"},
    "take_events": {*vars(Tap)},
    "take_output": {"sent", "items_sent"},
}
"""The methods of a session that call taps, and the methods of taps that they call. All others are forwarded."""


class Taps:
    """Calls several taps. A tap that raises is not called again."""

    def __init__(self, taps: Iterable[Tap]) -> None:
        # For each method, only the taps that define it: most taps ignore most events.
        self._methods: dict[str, list[Callable[..., None]]] = {what: [] for what in vars(Tap)}
        for tap in taps:
            for what, methods in self._methods.items():
                if what[0] != "_" and getattr(type(tap), what) is not getattr(Tap, what):
                    check_plain(getattr(tap, what), f"{type(tap).__name__}.{what}")
                    methods.append(getattr(tap, what))

    def any_defines(self, names: Set[str]) -> bool:
        """Return whether any tap defines one of these methods."""
        return any(self._methods[name] for name in names)

    def notify(self, what: str, *arguments: object) -> None:
        """Call the method `what` of every tap."""
        for method in self._methods[what]:
            try:
                method(*arguments)
            except BaseException:
                tap = getattr(method, "__self__", method)
                logger.exception("the tap %r failed; it is disabled for this connection", tap)
                self._drop(tap)

    def _drop(self, tap: object) -> None:
        # New lists, because one of the old ones is being iterated over.
        for what, methods in self._methods.items():
            self._methods[what] = [method for method in methods if getattr(method, "__self__", method) is not tap]


class _Stream:
    """An open stream: when it began, which halves are open, and how the responder's has ended."""

    __slots__ = ("began", "kind", "ours", "outcome", "request_open", "response_open", "route")

    def __init__(self, kind: Kind, ours: bool, request_open: bool, route: str, began: float) -> None:
        self.kind = kind
        self.ours = ours
        self.route = route
        self.began = began
        self.request_open = request_open
        self.response_open = kind != Kind.FIRE
        self.outcome = Outcome.COMPLETED


class TappedSession:
    """A :class:`weirpool.session.Session` that forwards to another one, and reports its events to taps.

    Nothing is recorded for methods that no tap defines.

    Attributes:
        has_handler: Returns whether this side has a handler of a kind for a route.

    """

    link_wanted = property(attrgetter("_session.link_wanted"))

    def __init__(self, session: Session, connection: Connection, taps: Iterable[Tap]) -> None:
        self._session = session
        self._connection = connection
        self._taps = Taps(taps)
        self._streams: dict[int, _Stream] = {}
        self._early: list[bytes] = []
        self._attached = self._is_open = self._is_closed = False
        self._items_sent = 0
        self._refused = session.refused
        self._counts = self._taps.any_defines({*STREAMS, "items_received"})
        self._times = self._taps.any_defines({"request_ended"})
        self.has_handler: Callable[[int, str], bool] = lambda kind, route: False
        for name, method_of in VERBS.items():
            if name != "take_events" and not self._taps.any_defines(OBSERVED.get(name, set())):
                # Looked up once, so that a call goes directly to the session.
                setattr(self, name, method_of(session))

    # Links.

    def attached(self) -> None:
        """Report a new link."""
        if self._attached:
            self._notify("resumed")
        elif self._connection.is_client:
            self._open()
        self._attached = True

    def arrived(self, data: bytes) -> None:
        """Report data that a link received before its session was known. The session has it already."""
        if self._is_open:
            self._notify("received", data)
        else:
            self._early.append(data)

    def detached(self) -> None:
        """Report that this side has detached from the session."""
        self._close(None)

    def receive(self, data: bytes, now: float, frames: int = 0) -> bool:
        """Receive bytes from the link."""
        if data:
            self._notify("received", data)
        return self._session.receive(data, now, frames)

    def take_output(self) -> list[bytes]:
        """Return the bytes to write."""
        if self._items_sent:
            self._notify_items_sent()
        output = self._session.take_output()
        for chunk in output:
            self._notify("sent", chunk)
        return output

    def take_events(self) -> list[Event]:
        """Return the events since the last call."""
        happened = self._session.take_events()
        refused = self._session.refused
        if refused != self._refused:
            self._notify("requests_refused", refused - self._refused)
            self._refused = refused
        if happened:
            if self._counts:
                self._count(happened)
            else:
                for event in happened:
                    if isinstance(event, Established):
                        self._established(event)
                    elif isinstance(event, Closed):
                        self._close(event.error)
        return happened

    def _count(self, happened: list[Event]) -> None:
        items = 0
        for event in happened:
            kind = type(event)
            if isinstance(event, ItemReceived):
                items += 1
                if event.done:
                    self._end_half(event.stream_id, False)
            elif isinstance(event, RunReceived):
                items += len(event.run)
            elif isinstance(event, Requested):
                self._begin(event.stream_id, event.kind, False, not event.done, event.route)
            elif kind is Completed:
                self._end_half(event.stream_id, False)
            elif isinstance(event, Canceled):
                if event.done:
                    self._end(event.stream_id, Outcome.CANCELED)
                else:
                    self._end_half(event.stream_id, True)
            elif isinstance(event, Failed):
                self._end(event.stream_id, outcome_of(event.error))
            elif isinstance(event, Established):
                self._established(event)
            elif isinstance(event, Closed):
                if items:
                    self._notify("items_received", items)
                    items = 0
                self._close(event.error)
        if items:
            self._notify("items_received", items)

    # Verbs.

    def open(
        self, kind: Kind, route: str, payload: Payload, credit: int = 0, done: bool = False, endless: bool = False
    ) -> int:
        """Open a stream and return its id."""
        stream_id = self._session.open(kind, route, payload, credit, done, endless)
        self._begin(stream_id, kind, True, kind.sends_items and not done)
        return stream_id

    def send(self, stream_id: int, payload: Payload, done: bool = False) -> int:
        """Send an item."""
        credit = self._session.send(stream_id, payload, done)
        self._items_sent += 1
        if done:
            self._end_half(stream_id, True)
        return credit

    def send_run(self, stream_id: int, run: PayloadRun, start: int = 0) -> int:
        """Send the items of a run."""
        count = self._session.send_run(stream_id, run, start)
        self._items_sent += count
        return count

    def complete(self, stream_id: int) -> None:
        """End the outbound half of a stream."""
        self._session.complete(stream_id)
        self._end_half(stream_id, True)

    def fail(self, stream_id: int, error: Exception) -> None:
        """End the stream with an error."""
        self._session.fail(stream_id, error)
        self._end(stream_id, outcome_of(error))

    def cancel(self, stream_id: int, metadata: bytes | None = None) -> None:
        """Cancel the inbound half of a stream."""
        self._session.cancel(stream_id, metadata)
        stream = self._streams.get(stream_id)
        if stream is not None and stream.ours:
            # RSocket 1.0, Request Channel: the requester's CANCEL ends the stream.
            self._end(stream_id, Outcome.CANCELED)
        else:
            self._end_half(stream_id, False)

    # Streams.

    def _begin(self, stream_id: int, kind: Kind, ours: bool, request_open: bool, route: str = "") -> None:
        began = perf_counter() if self._times else 0.0
        self._streams[stream_id] = stream = _Stream(kind, ours, request_open, route[: ROUTE_CHARACTERS + 1], began)
        self._notify("stream_opened", kind, ours)
        if not request_open:
            self._check_done(stream_id, stream)

    def _end_half(self, stream_id: int, sending: bool) -> None:
        """Record the end of the half in which this side sends, or of that in which the peer sends."""
        stream = self._streams.get(stream_id)
        if stream is not None:
            if sending == stream.ours:
                stream.request_open = False
            else:
                stream.response_open = False
            self._check_done(stream_id, stream)

    def _end(self, stream_id: int, outcome: Outcome) -> None:
        """Record the end of a stream. Errors after the last response item do not change its outcome."""
        stream = self._streams.get(stream_id)
        if stream is not None:
            if stream.response_open:
                stream.outcome = outcome
            stream.response_open = stream.request_open = False
            self._check_done(stream_id, stream)

    def _check_done(self, stream_id: int, stream: _Stream) -> None:
        if not stream.request_open and not stream.response_open:
            del self._streams[stream_id]
            self._notify("stream_ended", stream.kind, stream.ours, stream.outcome)
            if self._times and stream.kind != Kind.FIRE:
                self._time(stream)

    def _time(self, stream: _Stream) -> None:
        """Report how long a request has taken."""
        kind, ours, route = stream.kind, stream.ours, stream.route
        # THREATS 103: strangers choose the routes of requests without a handler.
        known = not ours and len(route) <= ROUTE_CHARACTERS and self.has_handler(kind, route)
        seconds = perf_counter() - stream.began
        self._notify("request_ended", kind, ours, route if known else None, seconds, stream.outcome)

    # The connection.

    def _established(self, event: Established) -> None:
        connection = self._connection
        if not connection.is_client:
            connection.setup = event.payload
            connection.metadata_mime, connection.data_mime = event.metadata_mime, event.data_mime
            if not self._is_open:
                self._open()

    def _open(self) -> None:
        self._is_open = True
        self._notify("opened")
        for data in self._early:
            self._notify("received", data)
        self._early.clear()

    def _close(self, error: Exception | None) -> None:
        if self._is_open and not self._is_closed:
            self._notify_items_sent()
            self._notify("closed", error)
        elif not self._is_closed:
            reason = Refusal(cause_of(error), str(error or "the link was closed"))
            self._taps.notify("refused", self._connection.address, reason)
        self._is_closed = True

    def queued(self, what: str) -> None:
        """Report that a request waits: ``request_queued`` or ``request_repeated``."""
        self._notify(what)

    def _notify_items_sent(self) -> None:
        if self._items_sent:
            count, self._items_sent = self._items_sent, 0
            self._notify("items_sent", count)

    def _notify(self, what: str, *arguments: Any) -> None:
        if self._is_open:
            self._taps.notify(what, self._connection, *arguments)


def cause_of(error: Exception | None) -> RefusalCause:
    """Return why a server has refused a client, by the error of its session."""
    if error is None or isinstance(error, LinkError):
        return RefusalCause.LOST
    if not isinstance(error, SetupRejected):
        return RefusalCause.INVALID
    if error.closing:
        return RefusalCause.CLOSING
    if error.undecided:
        return RefusalCause.TIMEOUT
    return RefusalCause.CLIENT_LIMIT if error.temporary else RefusalCause.REJECTED


def outcome_of(error: Exception) -> Outcome:
    """Return the outcome of a stream that ended with `error`."""
    if isinstance(error, CanceledError):
        return Outcome.CANCELED
    return Outcome.REJECTED if isinstance(error, Rejected) else Outcome.FAILED


NAMED: Final = {name: each for name, each in vars(Session).items() if not name.startswith("_")}
VERBS: Final = {name: attrgetter(name) for name, each in NAMED.items() if not isinstance(each, property)}
for _name in NAMED.keys() - VERBS.keys():
    setattr(TappedSession, _name, property(attrgetter(f"_session.{_name}")))
