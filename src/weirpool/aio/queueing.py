"""Requests that wait until the peer admits them: for a place among the open calls, for a lease, or for the link."""

from __future__ import annotations

from asyncio import Future, TimerHandle
from collections import OrderedDict
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, Final

from ..errors import LeaseMissing, Rejected, SessionClosed, SetupRejected, WeirpoolError
from ..kinds import Kind
from ..payload import Payload
from .flow import Flow
from .replies import Reply

__all__ = ["CallLimit", "QueuedRequest", "RequestQueue"]

MIN_WINDOW: Final = 16
"""Requests per increase of a small limit: so many are sent for each one that the peer may refuse."""
REST_SECONDS: Final = 0.01
"""The first pause after a refusal by a peer that has no call of this side; each further one doubles it."""
MAX_FRUITLESS: Final = 8
"""Such refusals in a row after which calls fail: the pauses add up to about 2.5 s."""
MAX_LEASES: Final = 16
"""Refusals of one request for want of a lease after which it fails: leases end before its requests arrive."""
RATE_SECONDS: Final = 1.0
"""The pause after a refusal by a peer that limits how fast streams are opened."""
RATE_FACTOR: Final = 0.9
"""What is used of that rate: fires and streams are not counted here."""
CATCH_UP_SECONDS: Final = 0.01
"""How far the pace may lag behind, because timers are late, and catch up in a burst."""

CLOSED: Final = "the connection was closed before the request was sent"


class CallLimit:
    """The number of calls that may be open at once: additive increase, multiplicative decrease.

    A peer answers a connection's requests in order. What it had open when it refused a call is therefore still open
    here when the refusal is read, so the limit never falls below 0.9 times that of the peer.

    Args:
        cap: The maximum, at which it begins.

    Attributes:
        value: The limit.

    """

    __slots__ = ("_cap", "_sent", "value")

    def __init__(self, cap: int) -> None:
        self._cap = cap
        self._sent = 0
        self.value = cap

    def refused(self, still_open: int) -> None:
        """Lower the limit, because the peer refused a call while `still_open` other calls were open."""
        self._sent = 0
        self.value = max(1, min(self.value, (still_open * 9 + 9) // 10))

    def sent(self) -> None:
        """Count a request that had to wait. The limit grows only while it is used."""
        if self.value < self._cap:
            self._sent += 1
            if self._sent >= max(self.value, MIN_WINDOW):
                self._sent = 0
                self.value += 1


class QueuedRequest:
    """A request that waits.

    Args:
        future: Done when the caller need not wait: for a call, when it has its response.
        opening: The arguments of `Session.open`.
        own: Called with the stream id when the request was sent; it makes the caller the owner of the stream.
        order: The id of the request's first stream, if the peer has refused it; otherwise 0.
        since: When it arrived.

    Attributes:
        needs_place: It waits until a place among the open calls is free.
        stream_id: The stream id; 0 if it was not sent.

    """

    __slots__ = ("future", "is_call", "needs_place", "opening", "order", "own", "since", "stream_id")

    def __init__(
        self,
        future: Future[Any] | Reply,
        opening: tuple[Kind, str, Payload, int, bool, bool],
        own: Callable[[int], object],
        order: int,
        since: float,
    ) -> None:
        self.future = future
        self.opening = opening
        self.own = own
        self.order = order
        self.since = since
        self.is_call = opening[0] is Kind.CALL or opening[0] is Kind.UPLOAD
        self.needs_place = self.is_call or order != 0
        self.stream_id = 0

    def sent(self, stream_id: int) -> None:
        """Make the caller the owner of its stream."""
        self.stream_id = stream_id
        owned = self.own(stream_id)
        if not self.is_call:
            self.future.set_result(owned)

    def fail(self, error: Exception) -> None:
        """Raise `error` in the caller."""
        if not self.future.done():
            self.future.set_exception(error)


class RequestQueue:
    """The requests of a session that wait, in order of arrival; refused ones precede those that were never sent.

    Args:
        flow: The flow of the session.
        calls: The reply of each pending call, by stream.

    Attributes:
        busy: Requests wait, so another call must not overtake them; or calls are sent at a limited pace.
        limit: The limit of open calls.
        unleased: True before the first lease, and after a request that had none, until the next lease.
        on_wait: Called with ``request_queued`` or ``request_repeated`` for each request that has to wait, or None.

    """

    __slots__ = (
        "_calls", "_closed", "_due", "_flow", "_fruitless", "_interval", "_refusal", "_refused", "_scheduled", "_timer",
        "_too_early", "_waiting", "busy", "limit", "on_wait", "unleased"
    )  # fmt: skip

    def __init__(self, flow: Flow, calls: dict[int, Reply]) -> None:
        self._flow = flow
        self._calls = calls
        self.limit = CallLimit(flow.settings.max_calls)
        self.busy = False
        self.unleased = bool(flow.settings.lease)
        self.on_wait: Callable[[str], None] | None = None
        self._waiting: OrderedDict[QueuedRequest, None] = OrderedDict()
        # Requests to repeat, by their first stream ids, which grow. At most those that were open at once.
        self._refused: list[tuple[int, QueuedRequest]] = []
        self._closed = self._scheduled = False
        # Set while the next request needs a lease.
        self._timer: TimerHandle | None = None
        # Refusals in a row while no call was open; and whether one came since requests were last sent.
        self._fruitless = 0
        self._refusal = False
        # A refusal came after the next turn was scheduled.
        self._too_early = False
        # Seconds between two requests, if the peer limits their rate; otherwise 0. And when the next one is due.
        self._interval = self._due = 0.0

    def __len__(self) -> int:
        """Return the number of requests that wait."""
        return len(self._waiting) + sum(not request.future.done() for _, request in self._refused)

    # For callers.

    def add(
        self, future: Future[Any] | Reply, opening: tuple[Any, ...], own: Callable[[int], object], order: int = 0
    ) -> QueuedRequest:
        """Send a request when it is its turn; see :class:`QueuedRequest`."""
        loop = self._flow.loop
        request = QueuedRequest(future, opening, own, order, loop.time())
        if self._closed:
            request.fail(SessionClosed(CLOSED))
            return request
        if order:
            heappush(self._refused, (order, request))
        else:
            self._waiting[request] = None
        if self.on_wait is not None:
            self.on_wait("request_repeated" if order else "request_queued")
        self.busy = True
        self.schedule()
        return request

    async def opened(self, opening: tuple[Any, ...], own: Callable[[int], object], order: int = 0) -> Any:
        """Wait until a request that is not a call was sent; return the result of `own`. See :meth:`add`."""
        request = self.add(self._flow.loop.create_future(), opening, own, order)
        try:
            return await request.future
        finally:
            self.remove(request)

    def remove(self, request: QueuedRequest) -> None:
        """Remove a request whose caller was canceled."""
        # A refused one is skipped when it is its turn.
        self._waiting.pop(request, None)

    def repeats(self, error: Rejected | SetupRejected, before: int = 0) -> bool:
        """Return True if a call that failed with `error` should be sent again; it was `before` times already."""
        if isinstance(error, SetupRejected):
            return False
        if error.too_many:
            return self._fruitless < MAX_FRUITLESS
        if error.temporary:
            return error.open_rate > 0 or before < MAX_LEASES
        # RSocket 1.0, Lease Semantics: so is a request answered whose lease expired on the way, with any text.
        return bool(self._flow.settings.lease) and not error.closing and before == 0

    # For the driver.

    def refused(self, error: Rejected) -> None:
        """Adapt to the refusal of a call, which is no longer in the table of calls."""
        if not error.temporary:
            return
        # It will be added again, and another call must not overtake it before.
        self.busy = self._refusal = True
        self._too_early = self._scheduled
        if error.open_rate:
            self._interval = 1 / (RATE_FACTOR * error.open_rate)
            self._due = self._flow.loop.time() + RATE_SECONDS
        if not error.too_many:
            return
        self.limit.refused(len(self._calls))
        self._fruitless = 0 if self._calls else self._fruitless + 1
        if self._fruitless >= MAX_FRUITLESS:
            self._fail_all(lambda: Rejected(error.code, error.message, error.data, error.metadata))

    def crowded_out(self, error: Rejected) -> bool:
        """Adapt to the refusal of a stream; return True if it may wait for its turn: not if other streams are open."""
        if error.too_many and not self._calls:
            return False
        self.refused(error)
        return error.temporary

    def schedule(self) -> None:
        """Send requests in the next turn of the loop: calls that were refused in this one are queued before."""
        if self._scheduled:
            return
        loop = self._flow.loop
        if self._fruitless and not self._refusal:
            if self._calls:
                # It is sent alone, and its end calls this again.
                return
            self._fruitless = 0
        self._scheduled = True
        if self._fruitless:
            loop.call_later(REST_SECONDS * 2 ** (self._fruitless - 1), self._advance)
        else:
            loop.call_soon(self._advance)

    def leased(self, count: int) -> None:
        """Note a lease for `count` requests. The end of the batch sends those that wait."""
        self.unleased = self.unleased and count == 0

    def close(self) -> None:
        """Fail all requests, and those that are added later, because the session accepts no more."""
        self._closed = True
        self._fail_all(lambda: SessionClosed(CLOSED))

    # Turns.

    def _advance(self) -> None:
        """Send what the limit, the lease and the link allow."""
        flow = self._flow
        self._scheduled = False
        if self._too_early:
            # The callers of refused requests add them in this turn, perhaps after this.
            self._too_early = False
            self.schedule()
            return
        self._refusal = False
        self._stop_timer()
        while (request := self._first()) is not None:
            if flow.paused:
                # Nothing can be sent before.
                self._scheduled = True
                flow.writable().add_done_callback(lambda _: self._advance())
                break
            if request.needs_place and len(self._calls) >= self.limit.value:
                break
            if (self._interval and not self._due_now()) or not self._open(request):
                break
        self.busy = request is not None or self._interval > 0

    def _due_now(self) -> bool:
        """Return True if the pace lets a request be sent now; otherwise continue when it does."""
        loop = self._flow.loop
        now = loop.time()
        if now < self._due:
            self._scheduled = True
            loop.call_at(self._due, self._advance)
            return False
        self._due = max(self._due, now - CATCH_UP_SECONDS) + self._interval
        return True

    def _first(self) -> QueuedRequest | None:
        """Return the next request. Removes those whose callers were canceled."""
        while self._refused:
            request = self._refused[0][1]
            if not request.future.done():
                return request
            heappop(self._refused)
        for request in self._waiting:
            if not request.future.done():
                return request
            # Its task will remove it in this turn of the loop.
        return None

    def _open(self, request: QueuedRequest) -> bool:
        """Send the first request; return False if it has to wait for a lease, or the session is closed."""
        flow = self._flow
        try:
            stream_id = flow.session.open(*request.opening)
        except LeaseMissing as error:
            self.unleased = True
            if flow.settings.lease_timeout > 0:
                self._expire_later(request)
                return False
            self._take(request)
            request.fail(error)
        except SessionClosed:
            self.close()
            return False
        except WeirpoolError as error:
            self._take(request)
            request.fail(error)
        else:
            self._take(request)
            self.limit.sent()
            request.sent(stream_id)
            flow.schedule_write(len(request.opening[2].data))
        return True

    def _take(self, request: QueuedRequest) -> None:
        """Remove the first request."""
        if request.order:
            heappop(self._refused)
        else:
            del self._waiting[request]

    def _fail_all(self, error: Callable[[], Exception]) -> None:
        """Fail all requests, each with an error of its own: it accumulates the frames of its caller."""
        self._stop_timer()
        requests = [request for _, request in sorted(self._refused)] + list(self._waiting)
        self._refused.clear()
        self._waiting.clear()
        self.busy = self._interval > 0
        for request in requests:
            request.fail(error())

    # Leases.

    def _expire_later(self, request: QueuedRequest) -> None:
        """Let the first request fail when it has waited for too long."""
        due = request.since + self._flow.settings.lease_timeout
        self._timer = self._flow.loop.call_at(due, self._expire)

    def _expire(self) -> None:
        self._timer = None
        flow = self._flow
        timeout = flow.settings.lease_timeout
        while (request := self._first()) is not None:
            if request.since + timeout > flow.loop.time():
                self._expire_later(request)
                break
            self._take(request)
            request.fail(LeaseMissing(f"{flow.name} did not grant a lease for another request within {timeout:g} s"))
        self.busy = request is not None or self._interval > 0

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
