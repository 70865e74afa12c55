"""The connector that creates a new session when one ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from inspect import isawaitable
from math import inf
from typing import Any, Final

from ..errors import ConnectError, LeaseMissing, SessionClosed, SessionError, WeirpoolError
from .connectors import Connector
from .dialer import Dialer
from .driver import DRAINING, Driver
from .exchanges import Exchanges, ends_task
from .peer import Peer
from .reconnect import Reconnect

__all__ = ["Reconnecting"]

logger = logging.getLogger("weirpool.aio")

STABLE_SECONDS: Final = 1.0
"""Seconds after which an attempt to connect counts as successful. A proxy without a server may accept a connection and
drop it at once: such an attempt has failed."""
CLOSE_TIMEOUT: Final = 1.0
"""Seconds that a canceled task has to end."""


class Reconnecting(Connector):
    """The connector of one server, which creates a new session when one ends.

    `changed` is called when a connection is made or lost, when an attempt has failed, and when the connector closes.

    Attributes:
        peer: The peer that uses this connector.
        last_error: The error because of which there is no connection; None while there is one, or before any failure.

    """

    __slots__ = (
        "_backoff", "_changed", "_connected_at", "_dialer", "_failed", "_final_error", "_hooks", "_opened", "_policy",
        "_reconnect_task", "_replaced", "_resolved", "_retire_tasks", "last_error", "peer"
    )  # fmt: skip

    def __init__(self, dialer: Dialer, policy: Reconnect, changed: Callable[[], None] = lambda: None) -> None:
        super().__init__(dialer.settings)
        self.latest: Driver
        self.peer = Peer(self)
        self._dialer = dialer
        self._policy = policy
        self._changed = changed
        self._backoff = policy.backoff()
        self._failed = 0
        self._opened = False
        self.last_error: Exception | None = None
        # The error of a closed connector.
        self._final_error: Exception | None = None
        # Set while requests need not wait: there is a connection, or the connector is closed.
        self._resolved = asyncio.Event()
        self._reconnect_task: asyncio.Task[None] | None = None
        self._hooks: dict[Driver, asyncio.Task[None]] = {}
        # Connections that were replaced, on which streams may still end, and the tasks that close them.
        self._replaced: set[Driver] = set()
        self._retire_tasks: set[asyncio.Task[None]] = set()
        self._renew()

    @property
    def closed(self) -> bool:
        """True if this side has closed the connector, or it has stopped retrying."""
        return self._final_error is not None

    @property
    def connected(self) -> bool:
        """True if there is a connection with a link."""
        return self.current is not None and self.current.link is not None

    @property
    def outstanding(self) -> int:
        """The number of open streams, including calls, also on connections that were replaced."""
        return sum(driver.session.open_streams for driver in (*self._replaced, self.latest))

    @property
    def free(self) -> bool:
        """True if a request would be sent at once."""
        return self.current is not None and not self.current.flow.paused

    # For users.

    async def open(self) -> None:
        """Make the first connection.

        Raises:
            SetupRejected: With `confirm`: the server rejected the set-up.
            ConnectError: No connection could be made; with `Reconnect.initial`, after all attempts of the policy.

        """
        if not self._policy.initial:
            try:
                await self._dialer.open(self.latest)
            except BaseException as error:
                self._end(error if isinstance(error, Exception) else SessionClosed("connecting was canceled"))
                self._stop()
                raise
            self._linked()
            return
        self.begin()
        try:
            await self._resolved.wait()
        except asyncio.CancelledError:
            await self.close(0)
            raise
        if self._final_error is not None:
            raise self._final_error

    def begin(self) -> None:
        """Make the first connection in the background."""
        self._reconnect_task = self.latest.loop.create_task(self._reconnect(None))

    async def driver(self) -> Driver:
        """Wait for a driver that accepts output, if the policy lets requests wait, and return it.

        Raises:
            ConnectError: There is no connection, and none was made in time.
            SessionError: The connector has stopped retrying because of this error.
            SessionClosed: This side has closed the peer.

        """
        while True:
            driver = self.current
            if self._final_error is not None:
                # It is raised many times, and must not accumulate the frames of all callers.
                raise self._final_error.with_traceback(None)
            if driver is None:
                await self._wait_for_driver()
            elif driver.flow.paused:
                if driver.link is None and self._backoff.exhausted:
                    # The session is alive, but no task tries to restore its link.
                    raise self._exhausted(self.last_error or f"{driver.flow.name}: the connection broke")
                await driver.writable()
            else:
                return driver

    async def another(self, driver: Driver, error: LeaseMissing | SessionClosed, waited: bool = False) -> Driver:
        """Return the driver of another connection if that of `driver` is closing. See :meth:`Connector.another`."""
        if isinstance(error, SessionClosed):
            found = await self.driver()
            if found is not driver:
                return found
        return await super().another(driver, error, waited)

    def replaced(self, exchanges: Exchanges) -> bool:
        """Return True if further requests use another connection, or wait for one."""
        if self.current is None:
            return not self.closed and self._policy.new_calls == "wait"
        return self.current.exchanges is not exchanges

    async def close(self, grace: float | None = None) -> None:
        """Close the connection, and stop reconnecting. See :meth:`Peer.close`."""
        self._end(SessionClosed("this side closed the connection"))
        tasks = self._stop()
        try:
            if tasks:
                await asyncio.wait(tasks, timeout=CLOSE_TIMEOUT)
            await asyncio.gather(self.latest.close(grace), *(driver.close(grace) for driver in self._replaced))
        except asyncio.CancelledError:
            # What is canceled before its first step has not begun to close.
            self.abandon()
            raise
        if self._retire_tasks:
            await asyncio.wait(self._retire_tasks)

    def abandon(self) -> None:
        """Stop reconnecting, and end the connection at once. See :meth:`Driver.abandon`."""
        self._end(SessionClosed("this side closed the connection"))
        self._stop()
        for driver in (self.latest, *self._replaced):
            driver.abandon()

    def reset_budget(self) -> None:
        """Refill the retry budget. See :meth:`Peer.reset_budget`."""
        self._backoff.refill()
        if self._final_error is None and self.current is None:
            # New requests wait again.
            self._resolved.clear()

    def detach(self) -> None:
        """Drop the connection without closing the session. See :meth:`Peer.detach`."""
        self._end(SessionClosed("this side detached from the session"))
        self._stop()
        for driver in self._replaced:
            driver.detach()
        self.latest.detach()

    # One connection after another.

    async def _wait_for_driver(self) -> None:
        """Wait until there is another connection, or the connector is closed."""
        policy = self._policy
        why = self.last_error or f"{self.latest.flow.name} is not connected yet"
        if policy.new_calls == "fail":
            raise ConnectError(f"there is no connection at the moment ({why}); Weirpool is reconnecting")
        if self._backoff.exhausted:
            # Not while the last attempt runs, or waits for its delay.
            raise self._exhausted(why)
        try:
            async with asyncio.timeout(policy.wait_timeout):
                await self._resolved.wait()
        except TimeoutError:
            why = self.last_error or why
            raise ConnectError(f"there was no connection for wait_timeout ({policy.wait_timeout} s): {why}") from None

    def _exhausted(self, why: object) -> ConnectError:
        """Return the error of requests while no attempt is left."""
        return ConnectError(f"the retry budget is used up ({why}); call reset_budget() to reconnect")

    def _renew(self) -> None:
        """Create a session, which has no link yet."""
        self.current = None
        self.latest = self._dialer.driver()
        self.latest.on_change = self._driver_changed
        self._connected_at = inf

    def _linked(self) -> None:
        """Let requests use the session's first link, unless it has already broken."""
        driver = self.latest
        if driver.state >= DRAINING:
            return
        self._connected_at = driver.loop.time()
        self.current = driver
        self._opened = True
        self.last_error = None
        self._resolved.set()
        if self._policy.on_connect is not None:
            self._hooks[driver] = driver.loop.create_task(self._run_on_connect())
        self._changed()

    def _driver_changed(self, driver: Driver) -> None:
        """Handle a new state of `driver`; reconnect if it accepts no more streams."""
        if self._final_error is not None:
            return
        if driver.closed and driver in self._hooks:
            self._hooks.pop(driver).cancel()
        if driver is not self.latest:
            return
        if driver.state >= DRAINING:
            self.current = None
            self._resolved.clear()
            self.last_error = driver.error or SessionError("the server is closing the connection")
            # If the first link breaks while the session is opened, the opening task handles it.
            if self._reconnect_task is None or self._reconnect_task.done():
                logger.info("%s: %s; reconnecting", driver.flow.name, self.last_error)
                self._reconnect_task = driver.loop.create_task(self._reconnect(self.last_error))
        self._changed()

    async def _reconnect(self, broken: Exception | None) -> None:
        """Create sessions until one has a link, or the policy stops retrying.

        Args:
            broken: The error that ended the last session, or will end it; None for the first connection.

        """
        try:
            if broken is not None:
                failed = self.latest.loop.time() - self._connected_at < STABLE_SECONDS
                self._record_failure(broken, failed)
                # A server that lets open streams end is closing in order, so reconnecting need not wait.
                await self._pause(at_once=not (failed or self.latest.closed))
            while self._final_error is None:
                try:
                    await self._dialer.open(self.latest)
                except SessionError as error:
                    logger.info("%s", error)
                    self._record_failure(error, failed=True)
                else:
                    self._linked()
                    if self.current is not None:
                        return
                    closed = self.latest.error or SessionError("the server closed the connection")
                    self._record_failure(closed, failed=True)
                await self._pause()
        except WeirpoolError as error:
            # Retrying does not help, for example against an unknown option of a transport.
            self._end(error)
        except Exception as error:
            logger.exception("%s: reconnecting failed", self.latest.flow.name)
            self._end(SessionError(f"reconnecting failed with {type(error).__name__}; check Reconnect.retry"))

    async def _pause(self, at_once: bool = False) -> None:
        """Replace the session if it cannot be used, and wait for the next attempt, unless `at_once`."""
        if self._final_error is not None:
            return
        self._backoff.linked(self.latest.session.linked_at)
        if self.latest.state >= DRAINING:
            self._replaced.add(self.latest)
            task = self.latest.loop.create_task(self._retire(self.latest))
            self._retire_tasks.add(task)
            task.add_done_callback(self._retire_tasks.discard)
            restored = self.latest.exchanges.restored
            self._renew()
            # Restored streams that were not adopted have ended. Adopting them later reports their errors.
            self.latest.exchanges.restored = restored
        if self._backoff.used_up:
            name = self.latest.flow.name
            logger.warning("%s: the retry budget is used up; no more attempts until reset_budget()", name)
            # Wake waiting requests, which then fail.
            self._resolved.set()
        if self._backoff.used_up or not at_once:
            await self._backoff.wait()
        if self._final_error is None:
            self._resolved.clear()

    async def _retire(self, driver: Driver) -> None:
        """Wait until the streams of a replaced connection have ended, then close it."""
        try:
            if not driver.closed:
                await asyncio.wait((driver.over,))
            # Its link may be dead while its handlers still run.
            await driver.close(0)
        finally:
            self._replaced.discard(driver)

    def _record_failure(self, error: Exception, failed: bool) -> None:
        """Decide whether to retry after `error`; `failed` counts it as another consecutive failed attempt."""
        self.last_error = error
        if failed:
            self._failed += 1
        else:
            self._failed = 0
            self._backoff.reset()
        if self._failed == self._policy.attempts or not self._policy.retry(error):
            # Before the first connection, the caller of `open` gets the error.
            level = logging.WARNING if self._opened else logging.INFO
            logger.log(level, "%s: %s; no more attempts", self.latest.flow.name, error)
            self._end(error)
        else:
            self._changed()

    async def _run_on_connect(self) -> None:
        """Run `Reconnect.on_connect` for a new connection."""
        assert self._policy.on_connect is not None
        try:
            hook: Any = self._policy.on_connect(self.peer)
            if isawaitable(hook):
                await hook
        except BaseException as error:
            if ends_task(error):
                raise
            logger.exception("%s: on_connect failed", self.latest.flow.name)

    # The end.

    def _end(self, error: Exception) -> None:
        """Close the connector: all requests fail with `error`. Only the first call has an effect."""
        if self._final_error is None:
            self._final_error = self.last_error = error
            self.current = None
            self._resolved.set()
            self._changed()

    def _stop(self) -> set[asyncio.Task[None]]:
        """Cancel and return the background tasks, except the calling one."""
        tasks = {task for task in self._hooks.values() if not task.done()}
        if self._reconnect_task is not None and not self._reconnect_task.done():
            tasks.add(self._reconnect_task)
        tasks -= {task for task in tasks if task is asyncio.current_task()}
        for task in tasks:
            task.cancel()
        return tasks
