"""Moves bytes and time between a session and its link."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from math import inf
from typing import Final

from ..errors import OwnerMissing, SessionError
from ..events import Closed, Draining, Established, Event, LeaseGranted, Unlinked
from ..kinds import Kind
from ..session import Session
from ..settings import Settings
from ..transports import Discard, Link
from .flow import FULL, Flow
from .leasing import Lessees
from .service import Service

__all__ = ["Driver"]

logger = logging.getLogger("penstock.aio")

EARLY: Final = 32
"""A batch in which so much is said is written before its end: or two peers with many calls would take turns, and one
processor of two would always wait."""
MOST_LEFT: Final = 1_024
"""Of how many streams that were left a driver may know although nothing more of them is to come."""
LAST_WORDS: Final = 1.0
"""Seconds that a link, or a handler that is canceled, gets for its last words."""


class Driver(Flow):
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
        error: Why the session is over, unless this side closed it.
        lasting: There is somebody who makes connections anew, and says by `usable` when streams may be opened.
        usable: They may.
        spent: The peer takes no new streams: the session is over, or those that are open may still end.
        changed: Called when that is over, which may be long before a dead network lets go of its link, and when the
            session has another link; None: nobody wants to know.
        lessees: Those who wait for a lease.
        over: Done when the session is over and its link is gone.

    """

    __slots__ = (
        "__weakref__",
        "_confirming",
        "_flushing",
        "_timer",
        "_timer_due",
        "_unlinked",
        "changed",
        "error",
        "lasting",
        "lessees",
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
        super().__init__(session, settings, service, name)
        self.error: Exception | None = None
        self.lasting = False
        self.usable = False
        self.spent = False
        self.changed: Callable[[Driver], None] | None = None
        self.lessees = Lessees(self)
        self._confirming: asyncio.Future[None] | None = None
        self.over: asyncio.Future[None] = self.loop.create_future()
        self._unlinked = unlinked
        self._flushing = False
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
        self._waited = False
        self._holds = 0
        self.writing_resumed()
        self.flush()

    def received(self, data: bytes) -> None:
        """Take one read."""
        self._flushing = True
        self.session.receive(data, self.loop.time())
        self.flush()

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
        if self.left and not self.withholds():
            self._forget_left()
        self.write()
        self._flushing = False
        if session.full:
            self._stop_reading(FULL)
        else:
            self._resume_reading(FULL)
        if not session.link_wanted and self.link is not None:
            self.link.close()
        self._set_timer()

    def withholds(self) -> bool:
        """Return whether events are held back that have happened, until the set-up is accepted."""
        return self.gate is not None

    def _forget_left(self) -> None:
        """Forget the streams that were left of which no more events are to come."""
        kept = self.kept
        if kept is None or kept.settled:
            self.left.clear()
        elif len(self.left) > MOST_LEFT:
            # A busy session always has something that waits for the disk.
            self.left &= kept.withheld

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
        self.look()
        self.session.handle_timer(self.loop.time())
        self.flush()

    # Ends.

    def session_event(self, event: Event) -> None:
        """Take an event that concerns no stream."""
        if isinstance(event, Closed):
            self.closed = True
            self.error = event.error
            if isinstance(event.error, OwnerMissing):
                logger.error("%s: %s", self.name, event.error)
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
