"""Moves bytes, time and events between a session and its link."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from ..connection import Connection
from ..errors import OwnerMissing, SessionClosed, SessionError
from ..events import Closed, Draining, Established, Event, LeaseGranted, Unlinked
from ..session import SLICE, Session
from ..settings import Settings
from ..transports import Link
from .alarm import Alarm
from .budget import Budget
from .dispatch import Dispatch
from .exchanges import Exchanges, cancel_tasks
from .flow import Flow
from .holds import BACKLOG, DECODING, FULL, SLOTS, TURN, UNREAD
from .inbound import ReceiveBuffer
from .ports import Gatekeeper, Sink
from .service import Service
from .tapping import TappedSession

__all__ = ["CLOSED", "DRAINING", "NEW", "USABLE", "Driver"]

logger = logging.getLogger("weirpool.aio")

# NEW: the session has not had a link. USABLE: streams may be opened. DRAINING: open streams may still end.
# CLOSED: the session has ended.
NEW: Final = 0
USABLE: Final = 1
DRAINING: Final = 2
CLOSED: Final = 3

CLOSE_TIMEOUT: Final = 1.0
"""Seconds that a link has to close."""
POLL_SECONDS: Final = 0.02
"""The interval, in seconds, at which a connection that is closed checks whether its input is decoded."""
ABORT_TIMEOUT: Final = 5.0
"""Seconds that an aborted link has to report its end. Transports of uvloop sometimes never do."""


class Driver:
    """Drives one session, over one link after another.

    It is the receiver of its link. Each read is one batch: the session receives the bytes, its events go to the sink,
    and all their output is written once. Outside a batch, one flush per turn of the loop does the same. What cannot be
    decoded within the time that the client has in a turn of the loop waits for another one, and the link is not read.

    Args:
        session: The session.
        settings: Limits and timeouts.
        service: The handlers of the peer's requests.
        connection: The connection that users see.
        unlinked: Called when the link is lost and the session needs another one.

    Attributes:
        sink: Receives the events: `dispatch`, or the admission before it.
        budget: Keeps the connection within its limits of bytes.
        admission: Admits the connection; None when it is no longer needed.
        taps: The session, if taps are installed.
        state: NEW, USABLE, DRAINING or CLOSED.
        error: The error that ended the session; None if this side closed it.
        on_change: Called when the session accepts no more streams, has ended, has another link, or gets a lease.
        over: Done when the session has ended and its link is gone.

    """

    __slots__ = (
        "__weakref__", "_alarm", "_durable", "_lost", "_more", "_setup_waiters", "_unlinked", "admission", "budget",
        "connection", "dispatch", "error", "exchanges", "flow", "loop", "on_change", "over", "session", "settings",
        "sink", "state", "taps"
    )  # fmt: skip

    def __init__(
        self,
        session: Session,
        settings: Settings,
        service: Service,
        connection: Connection,
        unlinked: Callable[[], None] | None = None,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.session = session
        self.settings = settings
        self.connection = connection
        self.flow = Flow(self.loop, session, settings, connection, self.flush)
        self.exchanges = Exchanges(self.flow)
        self.budget = Budget(self.exchanges)
        self.dispatch = Dispatch(self.exchanges, service, self._session_event)
        self.sink: Sink = self.dispatch
        self.admission: Gatekeeper | None = None
        self.taps: TappedSession | None = None
        self.state = NEW
        self.error: Exception | None = None
        self.on_change: Callable[[Driver], None] | None = None
        self.over: asyncio.Future[None] = self.loop.create_future()
        # The session has more to decode; and the link has ended in order before that was decoded.
        self._more = self._lost = False
        self.flow.reader.step = self._go_on
        self._unlinked = unlinked
        self._setup_waiters: list[asyncio.Future[Exception | None]] = []
        self._alarm = Alarm(self.loop, self._alarm_rang)
        session.ask_kinds(service.kind_of)
        self._durable = session.durable
        if self._durable is not None:
            self._durable.watch(self.flow.storage_backlogged)
        if not connection.is_client:
            connection.renew = self._renew

    @property
    def link(self) -> Link | None:
        """The link, while there is one."""
        return self.flow.link

    @property
    def closed(self) -> bool:
        """True if the session has ended."""
        return self.state == CLOSED

    def serve(self, service: Service) -> None:
        """Use the handlers of `service` for further requests."""
        self.dispatch.serve(service)
        self.session.ask_kinds(service.kind_of)

    def restore(self) -> None:
        """Own the streams of a session that was restored from a checkpoint. Call it before the first link opens.

        Items that arrive before `Peer.adopt` wait in their receive buffers, which request no more items: the credit
        of the earlier process bounds them.
        """
        exchanges = self.exchanges
        for stream_id in self.session.streams():
            inbound = exchanges.inbound[stream_id] = ReceiveBuffer(exchanges, stream_id, 1, 1, True)
            exchanges.restored.append(inbound)

    # For the link; see weirpool.transports.base.Receiver.

    def link_made(self, link: Link) -> None:
        """Report the link to the session, and attach it."""
        self.session.link_up(self.loop.time())
        again = self.state == USABLE
        self.attach(link)
        if again and self.on_change is not None:
            self.on_change(self)

    def attach(self, link: Link, more: bool = False) -> None:
        """Continue over `link`, which was reported to the session. An earlier link is dropped.

        With `more`, the session has not decoded all that has arrived over it.
        """
        if self.state == NEW:
            self.state = USABLE
        self.connection.certificate = link.get_extra_info("peercert") or None
        if self.taps is not None:
            self.taps.attached()
        if self.admission is not None:
            self.admission.attached(link)
        self._forget_input()
        self._more = more
        self.flow.attach(link)
        self.flush()
        if more:
            self.flow.wait_turn()

    def received(self, data: bytes) -> None:
        """Process the data of one read, or keep it while this link is not read, or others go first."""
        flow = self.flow
        if flow.holds & ~UNREAD or not flow.turns.enter(flow.reader, len(data)):
            if data:
                flow.kept.append(data)
                flow.wait_turn()
            self.budget.count_link()
            self.flush()
            return
        self._decode(data)
        if not data:
            self.budget.count_link()
        self.flush()
        if flow.turns.leave(flow.reader) or self._more:
            flow.wait_turn()

    def _decode(self, data: bytes) -> None:
        """Decode data, and handle the events, until all is decoded, the time is used, or requests must wait."""
        session, flow, late = self.session, self.flow, self.dispatch.late
        flow.batching = True
        now = self.loop.time()
        more = session.receive(data, now, SLICE)
        while more and not (flow.holds & ~DECODING or late.active or flow.turns.over()):
            self._pass_on()
            if not (flow.holds & ~DECODING or late.active):
                more = session.receive(b"", now, SLICE)
        self._more = more
        account = flow.account
        if account.of_link or account.unread:
            self.budget.count_link()

    def _go_on(self) -> bool:
        """Begin requests and decode data that wait, in the turn of this link; return whether there is more."""
        flow, late = self.flow, self.dispatch.late
        flow.batching = True
        if late.active:
            late.step()
        if not late.active and flow.may_go_on():
            kept, flow.kept = flow.kept, []
            self._decode(kept[0] if len(kept) == 1 else b"".join(kept))
        self.flush()
        if late.active or self._more or flow.kept:
            return flow.may_go_on()
        flow.resume_reading(TURN)
        if self._lost:
            self._report_lost(None)
        return False

    def writing_paused(self) -> None:
        """Make senders wait for the link."""
        self.flow.writing_paused()

    def writing_resumed(self) -> None:
        """Let senders continue."""
        self.flow.writing_resumed()

    def link_lost(self, error: Exception | None) -> None:
        """Report the loss to the session, which may continue over another link.

        If the peer has closed the link in order, what it has sent before is decoded first.
        """
        flow = self.flow
        flow.link = None
        flow.paused = True
        if error is None and self.state != CLOSED and (self._more or flow.kept):
            self._lost = True
            flow.holds &= SLOTS
            flow.wait_turn()
        else:
            self._report_lost(error)

    def _report_lost(self, error: Exception | None) -> None:
        self._forget_input()
        # The other reasons concerned the link. Requests without a response are begun without one.
        self.flow.holds &= SLOTS | TURN
        self.flow.resume_reading(0)
        self.flow.account.lose_link(self.loop.time())
        self.session.link_down(self.loop.time(), error)
        self.flush()
        if self.state == CLOSED:
            self._end_link()
        elif self._unlinked is not None:
            self._unlinked()

    def _forget_input(self) -> None:
        """Forget what was received over a link that has broken, or that another one replaces, and is not decoded."""
        self._more = self._lost = False
        self.flow.kept.clear()

    # Batches.

    def _pass_on(self) -> None:
        """Pass the session's events on to the sink."""
        while happened := self.session.take_events():
            if self.sink is self.dispatch:
                self.dispatch.take(happened)
            else:
                self.sink.take(happened)

    def flush(self) -> None:
        """Pass on the session's events, write its output, set its timer, and close the link if it is not needed."""
        session, flow = self.session, self.flow
        # While it is set, no flush is scheduled: this one writes all output.
        flow.batching = True
        self._pass_on()
        if self.exchanges.queue.busy:
            self.exchanges.queue.schedule()
        if self.exchanges.abandoned and not (self.admission is not None and self.admission.withholds):
            if self._durable is None:
                self.exchanges.abandoned.clear()
            else:
                self.exchanges.forget_abandoned(self._durable)
        link = flow.link
        if link is None or flow.paused or flow.withheld:
            flow.write()
        else:
            # The same as `Flow.write`, inlined because each batch runs it.
            flow.unsent = 0
            output = session.take_output()
            try:
                for chunk in output:
                    if link is flow.failed:
                        break
                    link.write(chunk)
                    flow.written += len(chunk)
                    if flow.written > flow.look_after:
                        flow.wrote(link)
            except RuntimeError as error:
                flow.link_failed(error)
        flow.batching = False
        if not session.link_wanted and flow.link is not None:
            flow.close_link()
        self._limit_reading()
        due = session.next_timer()
        if due is not None and due < self._alarm.due:
            self._alarm.set(due)

    def _limit_reading(self) -> None:
        """Stop or resume reading, according to what the connection and the session hold."""
        flow, account = self.flow, self.flow.account
        if account.paused or account.held != account.settled or account.incomplete != account.settled_incomplete:
            self.budget.settle()
        if self.session.full:
            flow.stop_reading(FULL)
        elif flow.holds:
            flow.resume_reading(FULL)

    async def writable(self) -> None:
        """Let other tasks run, then wait until the link accepts more output or the session ends."""
        flow = self.flow
        flow.write()
        await asyncio.sleep(0)
        while flow.paused and self.state != CLOSED:
            await flow.writable()

    def _alarm_rang(self) -> None:
        # It may be early, because a timer that is postponed is not set again. The session checks what is due.
        self.flow.check_progress()
        # If this side has stopped reading, silence is no evidence, except for a peer that does not read.
        if self.flow.holds & ~BACKLOG:
            self.session.progressed(self.loop.time())
        self.session.handle_timer(self.loop.time())
        self.flush()

    # The session.

    def _session_event(self, event: Event) -> None:
        """Handle an event that concerns the whole session."""
        if isinstance(event, Closed):
            self._session_closed(event.error)
        elif isinstance(event, Draining):
            self._set_state(DRAINING)
            # Requests that wait ask for another connection now, not when one of the open calls has ended.
            self.exchanges.queue.close()
        elif isinstance(event, Unlinked):
            if self.flow.link is not None:
                self.flow.link.abort()
        elif isinstance(event, LeaseGranted):
            self.exchanges.queue.leased(event.requests)
            self._set_state(self.state)
        elif isinstance(event, Established):
            if not (connection := self.connection).is_client:
                connection.setup = event.payload
                connection.metadata_mime, connection.data_mime = event.metadata_mime, event.data_mime
            self._wake_setup_waiters(None)

    def _session_closed(self, error: Exception | None) -> None:
        self.error = self.connection.error = error
        self.budget.close()
        self.exchanges.slots.stop_waiting()
        if isinstance(error, OwnerMissing):
            logger.error("%s: %s", self.flow.name, error)
        self.exchanges.queue.close()
        self._alarm.stop()
        self._set_state(CLOSED)
        self._wake_setup_waiters(error)
        if self.flow.link is None:
            self._end_link()
        if self.admission is not None:
            self.admission.closed()

    def _set_state(self, state: int) -> None:
        self.state = state
        if self.on_change is not None:
            self.on_change(self)

    async def confirm(self) -> None:
        """Wait until the server has accepted the set-up.

        Raises:
            SetupRejected: The server has rejected it.
            SessionError: The session ended before the server answered.
            UnsupportedKind: The protocol does not confirm set-ups.

        """
        self.session.confirm()
        error = await self._wait_for_setup()
        if error is not None:
            raise error

    async def _renew(self) -> None:
        """Request a handshake from the client, and wait until it is accepted. See :func:`weirpool.rehandshake`."""
        if self.state != CLOSED:
            self.session.rehandshake(self.loop.time())
            await self._wait_for_setup()
        if self.state == CLOSED:
            raise SessionClosed("the session ended before the rehandshake was accepted") from self.error

    async def _wait_for_setup(self) -> Exception | None:
        """Wait until the session is established or closed; return the error that closed it."""
        if self.state == CLOSED:
            # A refusal may arrive before the task that opened the link runs again.
            return self.error
        waiter: asyncio.Future[Exception | None] = self.loop.create_future()
        self._setup_waiters.append(waiter)
        self.flow.schedule_write()
        return await waiter

    def _wake_setup_waiters(self, error: Exception | None) -> None:
        waiters, self._setup_waiters = self._setup_waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(error)

    # Ends.

    async def close(self, grace: float | None = None) -> None:
        """End the session, and wait for its link and its tasks.

        Args:
            grace: Seconds after which open streams fail; `Settings.close_grace` by default; 0 fails them at once, as
                canceling the task does.

        """
        if grace is None:
            grace = self.settings.close_grace
        deadline = self.loop.time() + grace
        try:
            self.session.close(self.loop.time())
            self.flush()
            if not await self._over_within(grace):
                self._fail_streams(grace)
                await self._over_within(CLOSE_TIMEOUT)
        except asyncio.CancelledError:
            self.abandon()
            raise
        if self.flow.link is not None:
            self.flow.link.abort()
        if not await self._over_within(ABORT_TIMEOUT):
            self.flow.drop_link()
            self._end_link()
        await self.dispatch.late.finish_fires(deadline)
        await cancel_tasks(self.exchanges.tasks, self.flow.name)
        if self.admission is not None:
            await self.admission.exited()

    async def finish_input(self, grace: float) -> float:
        """Wait up to `grace` seconds until all is decoded that has been read; return the seconds that are left."""
        flow = self.flow
        deadline = self.loop.time() + grace
        # Each turn of the link decodes some.
        while (self._more or flow.kept) and not flow.holds & ~(SLOTS | DECODING) and self.loop.time() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(POLL_SECONDS)
        if self._more or flow.kept:
            logger.warning("%s: requests were received and not decoded", flow.name)
        return max(deadline - self.loop.time(), 0.0)

    def abandon(self) -> None:
        """End the session at once. The peer is told, and the link closes on its own."""
        self._fail_streams(0)

    def _fail_streams(self, grace: float) -> None:
        """End the session with an error, unless it has ended."""
        if self.state != CLOSED:
            error = SessionError(f"the connection was closed; streams that were open after {grace:g} s failed")
            if self.admission is not None:
                self.admission.abandon()
            self.session.close(self.loop.time(), error)
            self.flush()

    def detach(self) -> None:
        """Release the session without closing it: the peer keeps it for the process that resumes it."""
        self.state = CLOSED
        self._forget_input()
        self.budget.detach()
        self._alarm.stop()
        if self.taps is not None:
            self.taps.detached()
        self.flow.drop_link()
        self._end_link()
        if self.admission is not None:
            self.admission.closed()

    async def _over_within(self, seconds: float) -> bool:
        if not self.over.done():  # Others wait for this future, too: canceling the task must not cancel it.
            await asyncio.wait((self.over,), timeout=seconds)
        return self.over.done()

    def _end_link(self) -> None:
        self.budget.settle()
        self.flow.wake_writers()
        if not self.over.done():
            self.over.set_result(None)
