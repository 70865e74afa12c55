"""Moves bytes and time between a session and its link."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from math import inf
from typing import Final

from ..errors import LimitExceeded, SessionError
from ..events import Closed, Draining, Established, Event, LeaseGranted, Unlinked
from ..kinds import Kind
from ..session import Session
from ..settings import Settings
from ..transports import Discard, Link
from .admission import Gate
from .exchanges import Exchanges
from .leasing import Lessees
from .service import Service

__all__ = ["Driver"]

logger = logging.getLogger("penstock.aio")

READ_STOP: Final = 4
"""At how many times `output_high_bytes` nothing more is read. Well above the mark at which producers pause: two
peers that are both full must go on reading, or neither would ever get rid of anything."""
EARLY: Final = 32
"""A batch in which so much is said is written before its end: or two peers with many calls would take turns, and one
processor of two would always wait."""
LAST_WORDS: Final = 1.0
"""Seconds that a link, or a handler that is canceled, gets for its last words."""

# Why nothing is read from the link.
BACKLOG: Final = 1
FIRES: Final = 2
GATE: Final = 4
FULL: Final = 16


class Driver(Exchanges):
    """Drives one session, over one link after another.

    It is the receiver of its link. Each read is one batch: the session takes the bytes, its events go to
    whoever waits for them, and what all of them want to say is written once. Outside a batch, one flush a turn
    of the loop does the same.

    Args:
        session: The session.
        settings: Limits and timeouts.
        service: What answers the peer's requests.
        name: What logs call the peer.
        unlinked: Called when the link is gone and the session wants another one.

    Attributes:
        link: The link, while there is one.
        closed: The session is over.
        error: Why it is, unless this side closed it.
        usable: Whoever makes connections anew has found that streams may be opened.
        spent: The peer takes no new streams: the session is over, or those that are open may still end.
        changed: Called when that is over, which may be long before a dead network lets go of its link, and when the
            session has another link; None: nobody wants to know.
        gate: Holds what happens until the set-up is accepted; None: nothing does.
        lessees: Those who wait for a lease.
        over: Done when the session is over and its link is gone.

    """

    __slots__ = (
        "__weakref__",
        "_choked",
        "_confirming",
        "_crowded",
        "_fires",
        "_flushing",
        "_holds",
        "_timer",
        "_timer_due",
        "_unlinked",
        "_unsent",
        "_waiters",
        "changed",
        "closed",
        "error",
        "gate",
        "lessees",
        "link",
        "name",
        "over",
        "spent",
        "usable",
    )

    def __init__(
        self,
        session: Session,
        settings: Settings,
        service: Service,
        name: str,
        unlinked: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(session, settings, service)
        self.name = name
        self.link: Link | None = None
        self.closed = False
        self.error: Exception | None = None
        self.usable = False
        self.spent = False
        self.changed: Callable[[Driver], None] | None = None
        self.gate: Gate | None = None
        self.lessees = Lessees(self)
        self._confirming: asyncio.Future[None] | None = None
        self.over: asyncio.Future[None] = self.loop.create_future()
        self._unlinked = unlinked
        self._waiters: list[asyncio.Future[None]] = []
        # Why nobody should send: the link has no room, or the disk is behind.
        self._choked = False
        self._crowded = False
        self._flushing = False
        self._unsent = 0
        self._holds = 0
        self._fires = 0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due = inf
        session.ask_kinds(self._kind_of)

    # What the link tells; see penstock.transports.base.Receiver.

    def link_made(self, link: Link) -> None:
        """Tell the session of its link."""
        self.session.link_up(self.loop.time())
        self.attach(link)
        if self.usable and self.changed is not None:
            self.changed(self)

    def attach(self, link: Link) -> None:
        """Go on over `link`, of which the session knows already. A link that was there before is dropped."""
        old = self.link
        if old is not None:
            old.receiver = Discard()
            old.abort()
        self.link = link
        self._holds = 0
        self.writing_resumed()
        self.flush()

    def received(self, data: bytes) -> None:
        """Take one read."""
        self._flushing = True
        self.session.receive(data, self.loop.time())
        self.flush()

    def writing_paused(self) -> None:
        """Let whoever sends wait."""
        self._choked = self.paused = True

    def writing_resumed(self) -> None:
        """Let whoever sends go on, unless they wait for the disk as well."""
        self._choked = False
        if not self._crowded:
            self._go_on()

    def disk_waits(self, crowded: bool) -> None:
        """Let whoever sends wait for the disk, or go on with what is durable; see `Kept.watch`."""
        self._crowded = crowded
        if crowded:
            self.paused = True
        else:
            if self.paused and self.link is not None and not self._choked:
                self._go_on()
            self.flush()

    def _go_on(self) -> None:
        self.paused = False
        self._resume_reading(BACKLOG)
        for half in list(self.outbound.values()):
            half.resumed()
        self._let_go()

    def link_lost(self, error: Exception | None) -> None:
        """Tell the session, which may go on over another link."""
        self.link = None
        self.paused = True
        self.session.link_down(self.loop.time(), error)
        self.flush()
        if self.closed:
            self._end_link()
        elif self._unlinked is not None:
            self._unlinked()

    def serve(self, service: Service) -> None:
        """Answer the peer's requests by `service` from now on."""
        self.service = service

    def _kind_of(self, route: str) -> Kind | None:
        """Return the kind of the handler that answers `route` now."""
        return self.service.kind_of(route)

    # Batches.

    def wake(self) -> None:
        """Have what was just said to the session written within this batch, or this turn of the loop."""
        self._unsent += 1
        if self._unsent >= EARLY:
            self.write()
        if not self._flushing:
            self._flushing = True
            self.loop.call_soon(self.flush)

    def flush(self) -> None:
        """Hand out the session's events, write its output, and see to its timer and link."""
        # While it is set, nobody schedules a flush: this one takes care of what they say.
        self._flushing = True
        session = self.session
        happened = session.take_events()
        while happened:
            self.dispatch(happened if self.gate is None else self.gate.pass_through(happened))
            happened = session.take_events()
        self.write()
        self._flushing = False
        if session.full:
            self._stop_reading(FULL)
        else:
            self._resume_reading(FULL)
        if not session.link_wanted and self.link is not None:
            self.link.close()
        self._set_timer()

    def write(self) -> None:
        """Write the session's output. Without a link, or before the set-up is accepted, it stays where it is."""
        self._unsent = 0
        link = self.link
        if link is not None and self.gate is None:
            if self.paused and not self._bears(link):
                return
            for chunk in self.session.take_output():
                link.write(chunk)

    async def writable(self) -> None:
        """Wait until the link takes more output; the other tasks get a turn."""
        self.write()
        await asyncio.sleep(0)
        while self.paused and not self.closed:
            waiter = self.loop.create_future()
            self._waiters.append(waiter)
            await waiter

    def _bears(self, link: Link) -> bool:
        """Read no more from a peer that does not read, and in the end give it up (THREATS 40, 41).

        Returns:
            Whether there is use in writing to it.

        """
        settings = self.settings
        backlog = link.get_write_buffer_size()
        if backlog > settings.max_output_bytes:
            limit = settings.max_output_bytes
            error = LimitExceeded(f"{self.name} does not read: more than max_output_bytes ({limit}) wait for it")
            logger.warning("%s", error)
            self.session.close(self.loop.time(), error)
            link.abort()
            # Nobody will read it, the last words included.
            self.session.take_output()
            return False
        if backlog > READ_STOP * settings.output_high_bytes:
            self._stop_reading(BACKLOG)
        return True

    def _let_go(self) -> None:
        waiters = self._waiters
        self._waiters = []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    # Reading.

    def hold(self, wanted: bool) -> None:
        """Read nothing, or go on reading, while the set-up is looked at."""
        if wanted:
            self._stop_reading(GATE)
        else:
            self._resume_reading(GATE)

    def fire_started(self) -> None:
        """Count a handler of what was fired. No stream bounds how many there are, so reading stops at a limit."""
        self._fires += 1
        if self._fires >= self.settings.max_streams:
            self._stop_reading(FIRES)

    def fire_ended(self) -> None:
        """Count a handler that has ended."""
        self._fires -= 1
        self._resume_reading(FIRES)

    def _stop_reading(self, why: int) -> None:
        if not self._holds and self.link is not None:
            self.link.pause_reading()
        self._holds |= why

    def _resume_reading(self, why: int) -> None:
        if self._holds:
            self._holds &= ~why
            if not self._holds and self.link is not None:
                self.link.resume_reading()

    # Time.

    def _set_timer(self) -> None:
        due = self.session.next_timer()
        if due is not None and due < self._timer_due:
            if self._timer is not None:
                self._timer.cancel()
            self._timer_due = due
            self._timer = self.loop.call_at(due, self._timer_fired)

    def _timer_fired(self) -> None:
        # It may be early, because a timer that moves on is not set anew: the session knows what is due.
        self._timer = None
        self._timer_due = inf
        self.session.handle_timer(self.loop.time())
        self.flush()

    # Ends.

    def session_event(self, event: Event) -> None:
        """Take an event that concerns no stream."""
        if isinstance(event, Closed):
            self.closed = True
            self.error = event.error
            self.lessees.closed()
            self._confirmed(event.error)
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            if self.link is None:
                self._end_link()
            self._end_use()
        elif isinstance(event, Draining):
            self._end_use()
        elif isinstance(event, Unlinked):
            if self.link is not None:
                self.link.abort()
        elif isinstance(event, LeaseGranted):
            self.lessees.granted(event.requests)
        elif isinstance(event, Established):
            self._confirmed(None)
        else:
            super().session_event(event)

    def _end_use(self) -> None:
        self.usable = False
        self.spent = True
        if self.changed is not None:
            self.changed(self)

    async def confirm(self) -> None:
        """Wait until the server has accepted the set-up.

        Raises:
            SetupRejected: It has refused it.
            SessionError: The session ended before it said anything.
            UnsupportedKind: The protocol has no way to ask.

        """
        self._confirming = self.loop.create_future()
        self.session.confirm()
        self.wake()
        await self._confirming

    def _confirmed(self, error: Exception | None) -> None:
        confirming = self._confirming
        if confirming is None or confirming.done():
            return
        if error is not None:
            confirming.set_exception(error)
        else:
            confirming.set_result(None)

    async def close(self, grace: float | None = None) -> None:
        """End the session: streams that are open may end within `grace` seconds, then they fail.

        Args:
            grace: Else `Settings.close_grace`; 0 ends them at once.

        """
        if grace is None:
            grace = self.settings.close_grace
        try:
            self.session.close(self.loop.time())
            self.flush()
            if not await self._over_within(grace):
                if not self.closed:
                    error = SessionError(f"this side closed the connection; what was open {grace:g} s later was ended")
                    if self.gate is not None:
                        self.gate.abandon()
                    self.session.close(self.loop.time(), error)
                    self.flush()
                await self._over_within(LAST_WORDS)
        finally:
            if self.link is not None:
                self.link.abort()
        await self.over
        await self._cancel_tasks()

    def detach(self) -> None:
        """Let go of the session without a word: the peer keeps it for whoever resumes it from a checkpoint."""
        link = self.link
        self.link = None
        self.closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if link is not None:
            link.receiver = Discard()
            link.abort()
        self._end_link()

    async def _over_within(self, seconds: float) -> bool:
        if not self.over.done():
            await asyncio.wait((self.over,), timeout=seconds)
        return self.over.done()

    async def _cancel_tasks(self) -> None:
        tasks = self.tasks - {asyncio.current_task()}
        if not tasks:
            return
        for task in tasks:
            task.cancel()
        _, stubborn = await asyncio.wait(tasks, timeout=LAST_WORDS)
        for task in stubborn:
            logger.warning("%s: a handler goes on although it was canceled: %r", self.name, task)

    def _end_link(self) -> None:
        self._let_go()
        if not self.over.done():
            self.over.set_result(None)
