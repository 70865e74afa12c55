"""Admission: nothing of a connection is served until its acceptor, and its hook, agree."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from contextvars import copy_context
from typing import Final

from ..errors import ApplicationError, LimitExceeded, LocalError, PenstockError, SessionClosed, SessionError
from ..events import Closed, Draining, Established, Event, MetadataPushed, Requested, Unlinked
from ..transports import Link
from .dispatch import without_requests
from .driver import Driver
from .flow import ADMISSION, HOOK
from .intercept import bound
from .setup import CURRENT, Acceptor, Admitted, ConnectionHook, Setup, Verdict, accept, certificate_of, rejection

__all__ = ["Admission", "ended"]

logger = logging.getLogger("penstock.aio")

LEAVE_TIMEOUT: Final = 1.0
"""Seconds that a hook has to exit while somebody waits for it."""

# Nothing is accepted: a set-up is awaited; the acceptor runs; the hook is being entered; everything is handed on; no
# new request is served.
SHUT: Final = 0
ASKING: Final = 1
ENTERING: Final = 2
OPEN: Final = 3
REFUSED: Final = 4


class Admission:
    """The sink in front of dispatch that holds events while a connection is not admitted.

    A server's connection begins SHUT. Its set-up goes to the acceptor (ASKING), then the hook is entered, once
    (ENTERING), and what was held is handed on (OPEN). A set-up that comes later is shown to the acceptor again. A
    client's connection only has a hook. Until that is entered no request is answered, and a server takes in no more
    than one read. A hook that raises refuses the connection (REFUSED). One that takes longer than the keepalive's
    lifetime loses it.

    `tasks` holds the task that enters and exits the hook while it runs.
    """

    __slots__ = (
        "_acceptor", "_asking", "_asks_again", "_certificate", "_closed", "_driver", "_entered", "_held",
        "_hook", "_hooked", "_refusal", "_tasks", "_waiting", "asked", "state"
    )  # fmt: skip

    def __init__(
        self,
        driver: Driver,
        acceptor: Acceptor | None,
        hook: ConnectionHook | None,
        tasks: set[asyncio.Task[None]],
    ) -> None:
        self._driver = driver
        self._acceptor = acceptor or accept
        self._asks_again = acceptor is not None
        self._hook = hook
        self._tasks = tasks
        # What waits for the acceptor, and what waits for the hook.
        self._held: list[Event] = []
        self._waiting: list[Event] = []
        self._certificate: bytes | None = None
        # The set-up that the acceptor was asked about last.
        self.asked: Established | None = None
        # The tasks that ask the acceptor, and that enter and exit the hook.
        self._asking: asyncio.Task[None] | None = None
        self._hooked: asyncio.Task[None] | None = None
        self._refusal: Exception | None = None
        self._entered: asyncio.Future[None] = driver.loop.create_future()
        self._closed: asyncio.Future[None] = driver.loop.create_future()
        self.state = ENTERING
        if not driver.connection.is_client:
            self._shut()
            if hook is None:
                self._entered.set_result(None)
            else:
                # Nobody knows yet whether this peer is welcome: what it sends may wait in the network.
                driver.flow.stop_reading(HOOK)

    # For the driver.

    @property
    def withholds(self) -> bool:
        """Whether events may be held back."""
        return self.state != OPEN

    def attached(self, link: Link) -> None:
        """Prepare for `link`, which is about to carry the session.

        A client that comes back may say again who it is: nothing is written before that is accepted.
        """
        self._certificate = certificate_of(link)
        if self._driver.connection.is_client:
            self._enter()
        elif self._asks_again and self.state >= ENTERING:
            self.take(self._driver.session.take_events())

    def take(self, happened: list[Event]) -> None:
        """Hand on what is accepted, and hold the rest."""
        if self.state >= ENTERING:
            for place, event in enumerate(happened):
                if isinstance(event, Established) and self._asks_again and event is not self.asked:
                    self._accepted(happened[:place])
                    self._shut()
                    self._hold(happened[place:])
                    return
            self._accepted(happened)
        else:
            self._hold(happened)

    def abandon(self) -> None:
        """Stop waiting for the acceptor, because this side ends the connection; nothing that is held is served."""
        if self.state < ENTERING and not self._end():
            rest, self._held = without_requests(self._held), []
            self._accepted(rest)

    async def entered(self) -> None:
        """Wait until the hook is entered. Raises what it raised; then the connection is closed."""
        try:
            if not self._entered.done():
                await self._entered
        except asyncio.CancelledError:
            await self._driver.close(0)
            raise
        if self._refusal is not None:
            await self._driver.close(0)
            raise self._refusal

    def closed(self) -> None:
        """Exit the hook: the session is over."""
        if not self._closed.done():
            self._closed.set_result(None)
        if self._hooked is not None and not self._entered.done():
            self._hooked.cancel()

    async def left(self) -> None:
        """Wait until the hook has exited."""
        if self._hooked is not None and self._hooked is not asyncio.current_task():
            await ended({self._hooked})

    # The acceptor.

    def _shut(self) -> None:
        """Hold events and output until the next set-up is accepted."""
        self.state = SHUT
        self._driver.flow.withheld = True

    def _hold(self, happened: list[Event]) -> None:
        """Hold events, and ask the acceptor about a new set-up among them.

        A client may send all its requests and close the connection in one read: the requests wait for the acceptor all
        the same, and so does the end. Where it has asked for nothing, the end passes, and the acceptor is canceled.
        """
        driver = self._driver
        for event in happened:
            if not isinstance(event, Unlinked):
                self._held.append(event)
            elif driver.link is not None:
                # It concerns this link, and not the one that may have come when the rest is handed on.
                driver.link.abort()
        if self._asking is not None:
            # The client may have come by another link meanwhile: that is not read either.
            driver.flow.stop_reading(ADMISSION)
        else:
            newest = self._newest()
            if newest is not None and self._ask(newest):
                return
        requested = any(isinstance(event, Requested | MetadataPushed) for event in self._held)
        if self._asking is None or not requested:
            self._end()

    def _end(self) -> bool:
        """Hand on the end of the connection and of its streams; return False if it has not come."""
        if not any(isinstance(event, Closed) for event in self._held):
            return False
        if self._asking is not None:
            self._asking.cancel()
        rest, self._held = without_requests(self._held), []
        self._unlock()
        self._accepted(rest)
        return True

    def _newest(self) -> Established | None:
        """Return the newest set-up, if the acceptor was not asked about it."""
        for event in reversed(self._held):
            if isinstance(event, Established):
                return None if event is self.asked else event
        return None

    def _ask(self, event: Established) -> bool:
        """Ask the acceptor about a set-up; return whether it is accepted already."""
        driver = self._driver
        self.asked = event
        setup = Setup(
            payload=event.payload,
            metadata_mime=event.metadata_mime,
            data_mime=event.data_mime,
            strict=event.strict,
            understood=event.understood,
            address=driver.flow.name,
            certificate=self._certificate,
            protocol=driver.connection.protocol,
            previous=driver.connection.identity,
        )
        try:
            answer = self._acceptor(setup)
        except Exception as error:
            self._reject(error)
            return False
        if inspect.isawaitable(answer):
            self.state = ASKING
            driver.flow.stop_reading(ADMISSION)
            self._asking = driver.loop.create_task(self._await(answer))
            return False
        return self._accept(answer)

    async def _await(self, answer: Awaitable[Verdict]) -> None:
        driver = self._driver
        limit = driver.settings.acceptor_timeout
        timeout = asyncio.timeout(limit)
        try:
            async with timeout:
                verdict = await answer
        except Exception as error:
            self._asking = None
            if isinstance(error, TimeoutError) and timeout.expired():
                # No rejection: a client that comes again may be luckier.
                self._give_up(LimitExceeded(f"the acceptor took longer than acceptor_timeout ({limit:g} s)"))
            else:
                self._reject(error)
            # The link's own goodbye is to be read.
            driver.flow.resume_reading(ADMISSION)
            self._end()
        else:
            self._asking = None
            self._accept(verdict)
        driver.flush()

    def _accept(self, verdict: Verdict) -> bool:
        """Hand on what is held, unless the client has sent another set-up meanwhile; return whether it was."""
        newest = self._newest()
        if newest is not None:
            if self.asked is None or newest.payload != self.asked.payload:
                return self._ask(newest)
            # A client that came again because this took long: it would take as long once more.
            self.asked = newest
        driver = self._driver
        if isinstance(verdict, Admitted):
            driver.connection.identity = verdict.identity
            verdict = verdict.service
        if verdict is not None:
            driver.serve(bound(verdict, driver.connection))
        held, self._held = self._held, []
        self._unlock()
        self._accepted([event for event in held if event is self.asked or not isinstance(event, Established)])
        return True

    def _unlock(self) -> None:
        """Hold nothing any more for the acceptor's sake."""
        flow = self._driver.flow
        flow.withheld = False
        flow.resume_reading(ADMISSION)
        self._settle()

    def _reject(self, error: Exception) -> None:
        """End the session; the client learns why as far as that is meant for it."""
        if not isinstance(error, PenstockError):
            logger.error("the acceptor failed", exc_info=error)
        self._give_up(rejection(error))

    def _give_up(self, error: Exception) -> None:
        self._held = without_requests(self._held)
        driver = self._driver
        # The output of the session, a sign of life above all, would be taken for acceptance.
        driver.session.take_output()
        logger.warning("%s refused: %s", driver.flow.name or "a peer", error)
        driver.session.close(driver.loop.time(), error)

    # The hook.

    def _accepted(self, happened: list[Event]) -> None:
        """Hand on what the acceptor let pass, as far as the hook does."""
        dispatch = self._driver.dispatch
        if self._refusal is not None:
            # No handler begins any more; what the hook itself has opened ends.
            dispatch.take(without_requests(happened))
        elif self._entered.done():
            dispatch.take(happened)
        else:
            for event in happened:
                if isinstance(event, Established | Closed | Unlinked | Draining):
                    if isinstance(event, Established):
                        self._enter()
                    dispatch.take([event])
                else:
                    self._waiting.append(event)
            if len(self._waiting) >= self._driver.settings.max_streams:
                self._driver.flow.stop_reading(HOOK)

    def _enter(self) -> None:
        if self._hook is not None and self._hooked is None:
            context = copy_context()
            context.run(CURRENT.set, self._driver.connection)
            self._hooked = self._driver.loop.create_task(self._run(self._hook), context=context)
            self._tasks.add(self._hooked)
            self._hooked.add_done_callback(self._tasks.discard)

    async def _run(self, hook: ConnectionHook) -> None:
        connection = self._driver.connection
        try:
            async with AsyncExitStack() as stack:
                try:
                    await stack.enter_async_context(hook(connection))
                except (Exception, asyncio.CancelledError) as error:
                    self._refuse(error)
                    return
                self._admit()
                await self._closed
        except Exception:
            logger.exception("%r: its hook failed when it was left", connection)

    def _admit(self) -> None:
        """Hand on what waited for the hook."""
        driver = self._driver
        self._entered.set_result(None)
        if self.state == ENTERING:
            self._settle()
        waiting, self._waiting = self._waiting, []
        if driver.closed:
            self._accepted(without_requests(waiting))
        else:
            driver.flow.resume_reading(HOOK)
            self._accepted(waiting)
            driver.flush()

    def _settle(self) -> None:
        """Take the state that follows acceptance, and step aside where there is nothing more to decide."""
        driver = self._driver
        self.state = REFUSED if self._refusal is not None else OPEN if self._entered.done() else ENTERING
        if self.state == OPEN and not self._asks_again:
            driver.sink = driver.dispatch
            if self._hook is None:
                driver.admission = None

    def _refuse(self, error: BaseException) -> None:
        """Close the connection because its hook raised. Only errors of this package tell the peer their text."""
        driver = self._driver
        if isinstance(error, Exception):
            self._refusal = error
        else:
            self._refusal = driver.error or SessionClosed("the connection was closed while its hook was being entered")
        if self.state == ENTERING:
            self._settle()
        waiting, self._waiting = self._waiting, []
        self._accepted(waiting)
        self._entered.set_result(None)
        if driver.closed:
            return
        if isinstance(error, ApplicationError):
            reason = SessionError(error.message)
        elif isinstance(error, SessionError) and not isinstance(error, LocalError):
            reason = error
        else:
            # A client's own error is raised where it connects.
            if not driver.connection.is_client:
                logger.error("%r: its hook failed", driver.connection, exc_info=error)
            reason = SessionError("this side refused the connection")
        driver.session.close(driver.loop.time(), reason)
        driver.flush()


async def ended(tasks: set[asyncio.Task[None]]) -> None:
    """Wait for hooks that exit, but not longer than `LEAVE_TIMEOUT`."""
    _, stubborn = await asyncio.wait(tasks, timeout=LEAVE_TIMEOUT)
    for task in stubborn:
        logger.warning("a hook takes longer than %g s to be left, and is canceled", LEAVE_TIMEOUT)
        task.cancel()
