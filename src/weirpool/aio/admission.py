"""Holds the events of a connection until its acceptor and its connection hook admit it."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, Final

from ..errors import ApplicationError, LocalError, SessionClosed, SessionError, SetupRejected, WeirpoolError
from ..events import Closed, Draining, Established, Event, MetadataPushed, Requested, Unlinked
from ..transports import SCOPE, Link
from .dispatch import without_requests
from .driver import Driver
from .exchanges import ends_task
from .holds import ADMISSION, HOOK
from .intercept import bound
from .setup import (
    REJECTED,
    Acceptor,
    Admitted,
    ConnectionHook,
    Setup,
    Verdict,
    accept,
    certificate_of,
    checked,
    rejection,
)

__all__ = ["Admission", "ended"]

logger = logging.getLogger("weirpool.aio")

EXIT_TIMEOUT: Final = 1.0
"""Seconds that a hook has to exit while a caller waits for it."""

# SHUT: waiting for a set-up. ASKING: the acceptor runs. ENTERING: the hook is being entered. OPEN: events are passed
# on. REFUSED: no new request is served.
SHUT: Final = 0
ASKING: Final = 1
ENTERING: Final = 2
OPEN: Final = 3
REFUSED: Final = 4


class Admission:
    """The sink in front of dispatch that holds events while a connection is not admitted.

    A server's connection begins in SHUT. The acceptor checks its set-up (ASKING), then the hook is entered, once
    (ENTERING), and the held events are passed on (OPEN). The acceptor also checks each later set-up. A client's
    connection only has a hook. Until the hook is entered, no request is answered, and a server processes at most one
    read. If the hook raises, the connection is refused (REFUSED). If it takes longer than the keepalive lifetime, the
    connection is lost.

    `tasks` contains the task that enters and exits the hook while it runs.
    """

    __slots__ = (
        "_acceptor", "_acceptor_task", "_certificate", "_checks_again", "_closed", "_count", "_driver", "_entered",
        "_held", "_hook", "_hook_task", "_refusal", "_scope", "_tasks", "_waiting", "checked", "state"
    )  # fmt: skip

    def __init__(
        self,
        driver: Driver,
        acceptor: Acceptor | None,
        hook: ConnectionHook | None,
        tasks: set[asyncio.Task[None]],
        count: Callable[[Verdict], None] | None = None,
    ) -> None:
        self._driver = driver
        self._acceptor = acceptor or accept
        self._checks_again = acceptor is not None
        self._hook = hook
        self._tasks = tasks
        # Counts the connection for the principal in a verdict; raises if that is at its limit.
        self._count = count or (lambda _: None)
        # Events that wait for the acceptor, and for the hook.
        self._held: list[Event] = []
        self._waiting: list[Event] = []
        self._certificate: bytes | None = None
        self._scope: Any = None
        # The set-up that the acceptor checked last.
        self.checked: Established | None = None
        # The tasks that await the acceptor, and that enter and exit the hook.
        self._acceptor_task: asyncio.Task[None] | None = None
        self._hook_task: asyncio.Task[None] | None = None
        self._refusal: Exception | None = None
        self._entered: asyncio.Future[None] = driver.loop.create_future()
        self._closed: asyncio.Future[None] = driver.loop.create_future()
        self.state = ENTERING
        if not driver.connection.is_client:
            self._shut()
            if hook is None:
                self._entered.set_result(None)
            else:  # This peer is not admitted yet, so its data waits in the network.
                driver.flow.stop_reading(HOOK)

    # For the driver.

    @property
    def withholds(self) -> bool:
        """True if events may be held back."""
        return self.state != OPEN

    def attached(self, link: Link) -> None:
        """Prepare for `link`, which is about to carry the session.

        A reconnecting client may send another set-up: nothing is written before that is accepted.
        """
        self._certificate = certificate_of(link)
        self._scope = link.get_extra_info(SCOPE)
        if self._driver.connection.is_client:
            self._enter()
        elif self._checks_again and self.state >= ENTERING:
            self.take(self._driver.session.take_events())

    def take(self, happened: list[Event]) -> None:
        """Pass on accepted events, and hold the rest."""
        if self.state >= ENTERING:
            for place, event in enumerate(happened):
                if isinstance(event, Established) and self._checks_again and event is not self.checked:
                    self._accepted(happened[:place])
                    self._shut()
                    self._hold(happened[place:])
                    return
            self._accepted(happened)
        else:
            self._hold(happened)

    def abandon(self) -> None:
        """Stop waiting for the acceptor, because this side ends the connection; discard the held requests."""
        if self.state < ENTERING and not self._end():
            rest, self._held = without_requests(self._held), []
            self._accepted(rest)

    async def entered(self) -> None:
        """Wait until the hook is entered. If it raised, close the connection and raise its error."""
        try:  # The future belongs to the hook's task, and must not be canceled.
            await asyncio.wait((self._entered,))
        except asyncio.CancelledError:
            await self._driver.close(0)
            raise
        if self._refusal is not None:
            await self._driver.close(0)
            raise self._refusal

    def closed(self) -> None:
        """Exit the hook, because the session has ended."""
        if not self._closed.done():
            self._closed.set_result(None)
        if self._hook_task is not None and not self._entered.done():
            self._hook_task.cancel()

    async def exited(self) -> None:
        """Wait until the hook has exited."""
        if self._hook_task is not None and self._hook_task is not asyncio.current_task():
            await ended({self._hook_task})

    # The acceptor.

    def _shut(self) -> None:
        """Hold events and output until the next set-up is accepted."""
        self.state = SHUT
        self._driver.flow.withheld = True

    def _hold(self, happened: list[Event]) -> None:
        """Hold events, and call the acceptor for a new set-up among them.

        A client may send all its requests and close the connection in one read: the requests, and then the end, wait
        for the acceptor. If there are no requests, the end is passed on at once and the acceptor is canceled.
        """
        driver = self._driver
        for event in happened:
            if not isinstance(event, Unlinked):
                self._held.append(event)
            elif driver.link is not None:
                # It concerns this link. There may be another one when the held events are passed on.
                driver.link.abort()
        if self._acceptor_task is not None:
            # The client may have opened another link meanwhile, which must not be read either.
            driver.flow.stop_reading(ADMISSION)
        else:
            newest = self._newest()
            if newest is not None and self._call_acceptor(newest):
                return
        requested = any(isinstance(event, Requested | MetadataPushed) for event in self._held)
        if self._acceptor_task is None or not requested:
            self._end()

    def _end(self) -> bool:
        """Pass on the end of the connection and of its streams; return False if it has not ended."""
        if not any(isinstance(event, Closed) for event in self._held):
            return False
        if self._acceptor_task is not None:
            self._acceptor_task.cancel()
        rest, self._held = without_requests(self._held), []
        self._unlock()
        self._accepted(rest)
        return True

    def _newest(self) -> Established | None:
        """Return the newest held set-up; None if the acceptor has already been called for it."""
        for event in reversed(self._held):
            if isinstance(event, Established):
                return None if event is self.checked else event
        return None

    def _call_acceptor(self, event: Established) -> bool:
        """Call the acceptor for a set-up; return True if it has accepted, False if it rejected or still runs."""
        driver = self._driver
        self.checked = event
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
            scope=self._scope or {},
        )
        try:
            # What the acceptor sets in its context holds for all requests of the connection.
            answer = driver.dispatch.context.run(self._acceptor, setup)
            if not inspect.isawaitable(answer):
                self._count(checked(answer))
        except BaseException as error:
            self._reject(error)
            return False
        if not inspect.isawaitable(answer):
            return self._accept(answer)
        self.state = ASKING
        driver.flow.stop_reading(ADMISSION)
        self._acceptor_task = driver.loop.create_task(self._await(answer))
        return False

    async def _await(self, answer: Awaitable[Verdict]) -> None:
        driver = self._driver
        limit = driver.settings.acceptor_timeout
        timeout = asyncio.timeout(limit)
        try:
            async with timeout:
                verdict = await answer
            self._count(checked(verdict))
        except BaseException as error:
            if ends_task(error):
                raise
            self._acceptor_task = None
            if isinstance(error, TimeoutError) and timeout.expired():
                # A temporary rejection: the client may retry successfully.
                self._give_up(SetupRejected.late(limit, REJECTED))
            else:
                self._reject(error)
            # The transport's closing handshake must be read.
            driver.flow.resume_reading(ADMISSION)
            self._end()
        else:
            self._acceptor_task = None
            self._accept(verdict)
        driver.flush()

    def _accept(self, verdict: Verdict) -> bool:
        """Pass on the held events, unless there is a newer set-up to check; return True if they are passed on."""
        newest = self._newest()
        if newest is not None:
            if self.checked is None or newest.payload != self.checked.payload:
                return self._call_acceptor(newest)
            # The client reconnected because this took long. Calling the acceptor again would take as long.
            self.checked = newest
        driver = self._driver
        if isinstance(verdict, Admitted):
            driver.connection.identity = verdict.identity
            verdict = verdict.service
        if verdict is not None:
            driver.serve(bound(verdict, driver.connection, driver.flow.settings))
        held, self._held = self._held, []
        self._unlock()
        self._accepted([event for event in held if event is self.checked or not isinstance(event, Established)])
        return True

    def _unlock(self) -> None:
        """Stop holding events and output for the acceptor."""
        flow = self._driver.flow
        flow.withheld = False
        flow.resume_reading(ADMISSION)
        self._settle()

    def _reject(self, error: BaseException) -> None:
        """Reject the client; see `rejection`."""
        if not isinstance(error, WeirpoolError):
            logger.error("the acceptor failed", exc_info=error)
        self._give_up(rejection(error))

    def _give_up(self, error: Exception) -> None:
        self._held = without_requests(self._held)
        driver = self._driver
        # The client would take pending output, such as a keepalive, for acceptance.
        driver.session.take_output()
        logger.warning("%s refused: %s", driver.flow.name or "a peer", error)
        driver.session.close(driver.loop.time(), error)

    # The hook.

    def _accepted(self, happened: list[Event]) -> None:
        """Pass on events that the acceptor has accepted, or hold them until the hook is entered."""
        dispatch = self._driver.dispatch
        if self._refusal is not None:
            # No more handlers start; streams that the hook has opened end.
            dispatch.take(without_requests(happened))
        elif self._entered.done():
            dispatch.take(happened)
        else:
            for event in happened:
                if not isinstance(event, Established | Closed | Unlinked | Draining):
                    self._waiting.append(event)
                    continue
                if isinstance(event, Established):
                    self._enter()
                dispatch.take([event])
            if len(self._waiting) >= self._driver.settings.max_streams:
                self._driver.flow.stop_reading(HOOK)

    def _enter(self) -> None:
        if self._hook is not None and self._hook_task is None:
            context = self._driver.dispatch.context.copy()
            self._hook_task = self._driver.loop.create_task(self._run(self._hook), context=context)
            self._tasks.add(self._hook_task)
            self._hook_task.add_done_callback(self._tasks.discard)

    async def _run(self, hook: ConnectionHook) -> None:
        connection = self._driver.connection
        try:
            async with AsyncExitStack() as stack:
                try:
                    await stack.enter_async_context(hook(connection))
                except BaseException as error:
                    self._refuse(error)
                    return
                self._admit()
                await self._closed
        except BaseException as error:
            if ends_task(error):
                raise
            logger.exception("%r: on_connection failed when it exited", connection)

    def _admit(self) -> None:
        """Pass on the events that waited for the hook."""
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
        """Enter the state that follows acceptance; remove this sink from the driver if it is no longer needed."""
        driver = self._driver
        self.state = REFUSED if self._refusal is not None else OPEN if self._entered.done() else ENTERING
        if self.state == OPEN and not self._checks_again:
            driver.sink = driver.dispatch
            if self._hook is None:
                driver.admission = None

    def _refuse(self, error: BaseException) -> None:
        """Close the connection because its hook raised. Only the texts of Weirpool's errors reach the peer."""
        driver = self._driver
        if isinstance(error, Exception):
            self._refusal = error
        elif not isinstance(error, asyncio.CancelledError):
            self._refusal = RuntimeError(f"on_connection raised {type(error).__name__}")
            self._refusal.__cause__ = error
        else:
            self._refusal = driver.error or SessionClosed("the connection was closed before on_connection was entered")
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
            # On a client, connect() raises the error.
            if not driver.connection.is_client:
                logger.error("%r: on_connection failed", driver.connection, exc_info=error)
            reason = SessionError("this side refused the connection")
        driver.session.close(driver.loop.time(), reason)
        driver.flush()


async def ended(tasks: set[asyncio.Task[None]]) -> None:
    """Wait up to `EXIT_TIMEOUT` for hooks to exit, then cancel them."""
    _, stubborn = await asyncio.wait(tasks, timeout=EXIT_TIMEOUT)
    for task in stubborn:
        logger.warning("on_connection took longer than %g s to exit, and is canceled", EXIT_TIMEOUT)
        task.cancel()
