"""The connector that replaces a session which breaks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from math import inf
from typing import Final

from ..errors import ConnectError, PenstockError, SessionClosed, SessionError
from .connectors import Connector
from .dialer import Dialer
from .driver import DRAINING, Driver
from .peer import Peer
from .reconnect import Reconnect

__all__ = ["Reconnecting"]

logger = logging.getLogger("penstock.aio")

HELD: Final = 1.0
"""Seconds after which a connection was a success. Some proxies accept one and drop it at once when there is no
server behind them: such a try has failed."""
CLOSE_TIMEOUT: Final = 1.0
"""Seconds that a canceled task has to end."""


class Reconnecting(Connector):
    """The connector of one server, which makes another session when one breaks.

    `changed` is called when there is a connection, or none any more, when a try has failed, and at the end.

    Attributes:
        peer: What asks the server.
        trouble: Why there is no connection; None while there is one, or nothing has been tried.

    """

    __slots__ = (
        "_again", "_backoff", "_changed", "_dialer", "_failed", "_hooks", "_known", "_leaving", "_made",
        "_opened", "_over", "_policy", "_retired", "peer", "trouble"
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
        self.trouble: Exception | None = None
        # Why there will be no connection any more.
        self._over: Exception | None = None
        # Set while nobody needs to wait: there is a connection, or there will be none.
        self._known = asyncio.Event()
        self._again: asyncio.Task[None] | None = None
        self._hooks: dict[Driver, asyncio.Task[None]] = {}
        # Connections that were replaced, and on which streams may still end; and who sees to their ends.
        self._leaving: set[Driver] = set()
        self._retired: set[asyncio.Task[None]] = set()
        self._renew()

    @property
    def closed(self) -> bool:
        """Whether the peer is closed for good: by this side, or because it is tried no more."""
        return self._over is not None

    @property
    def connected(self) -> bool:
        """Whether there is a connection now."""
        return self.current is not None and self.current.link is not None

    @property
    def outstanding(self) -> int:
        """How many streams are open, calls included, also on connections that were replaced."""
        return sum(driver.session.open_streams for driver in (*self._leaving, self.latest))

    @property
    def free(self) -> bool:
        """Whether a request is sent at once."""
        return self.current is not None and not self.current.flow.paused

    # What its user asks for.

    async def open(self) -> None:
        """Make the first connection.

        Raises:
            SetupRejected: The server was asked to confirm the set-up, and has refused it.
            ConnectError: None could be made; with `Reconnect.initial`, as often as the policy has it tried.

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
            await self._known.wait()
        except asyncio.CancelledError:
            await self.close(0)
            raise
        if self._over is not None:
            raise self._over

    def begin(self) -> None:
        """Make the first connection in the background."""
        self._again = self.latest.loop.create_task(self._reconnect(None))

    async def driver(self) -> Driver:
        """Wait for a driver that takes output, as far as the policy allows, and return it.

        Raises:
            ConnectError: There is none.
            SessionError: There will be none any more.
            SessionClosed: This side has closed the peer.

        """
        while True:
            driver = self.current
            if self._over is not None:
                # It is raised many times, and must not gather the frames of all who saw it.
                raise self._over.with_traceback(None)
            if driver is None:
                await self._wait_for_driver()
            elif driver.flow.paused:
                if driver.link is None and self._backoff.exhausted:
                    # The session lives, and nobody looks for a link: it would be waited for in vain.
                    raise self._exhausted(self.trouble or f"{driver.flow.name}: the connection broke")
                await driver.writable()
            else:
                return driver

    async def close(self, grace: float | None = None) -> None:
        """Close the connection, or try no more for one. See :meth:`Peer.close`."""
        self._end(SessionClosed("this side closed the connection"))
        tasks = self._stop()
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE_TIMEOUT)
        await asyncio.gather(self.latest.close(grace), *(driver.close(grace) for driver in self._leaving))
        if self._retired:
            await asyncio.wait(self._retired)

    def reset_budget(self) -> None:
        """Let it be tried again. See :meth:`Peer.reset_budget`."""
        self._backoff.refill()
        if self._over is None and self.current is None:
            # Whoever asks now waits.
            self._known.clear()

    def detach(self) -> None:
        """Let go of the connection without ending the session. See :meth:`Peer.detach`."""
        self._end(SessionClosed("this side let go of the session"))
        self._stop()
        for driver in self._leaving:
            driver.detach()
        self.latest.detach()

    # One connection after another.

    async def _wait_for_driver(self) -> None:
        """Wait until there is another connection, or none any more."""
        policy = self._policy
        why = self.trouble or f"{self.latest.flow.name} has not been reached yet"
        if policy.new_calls == "fail":
            raise ConnectError(f"there is no connection at the moment ({why}); another one is being made")
        if self._backoff.exhausted:
            # Not while the last try is under way, or waits for its time.
            raise self._exhausted(why)
        try:
            async with asyncio.timeout(policy.wait_timeout):
                await self._known.wait()
        except TimeoutError:
            why = self.trouble or why
            raise ConnectError(f"there was no connection for wait_timeout ({policy.wait_timeout} s): {why}") from None

    def _exhausted(self, why: object) -> ConnectError:
        """Return what is raised when there are no tries left."""
        return ConnectError(f"the retry budget is used up ({why}); reset_budget() lets it be tried again")

    def _renew(self) -> None:
        """Begin a session, which has no link yet."""
        self.current = None
        self.latest = self._dialer.driver()
        self.latest.on_change = self._driver_changed
        self._made = inf

    def _linked(self) -> None:
        """Let everybody use the session's first link, unless it has broken already."""
        driver = self.latest
        if driver.state >= DRAINING:
            return
        self._made = driver.loop.time()
        self.current = driver
        self._opened = True
        self.trouble = None
        self._known.set()
        if self._policy.on_connect is not None:
            self._hooks[driver] = driver.loop.create_task(self._run_on_connect())
        self._changed()

    def _driver_changed(self, driver: Driver) -> None:
        """Take note of what became of `driver`; once it takes no more streams, see to another one."""
        if self._over is not None:
            return
        if driver.closed and driver in self._hooks:
            self._hooks.pop(driver).cancel()
        if driver is not self.latest:
            return
        if driver.state >= DRAINING:
            self.current = None
            self._known.clear()
            self.trouble = driver.error or SessionError("the server is closing the connection")
            # A first link that breaks as it is made is the business of the one who makes it.
            if self._again is None or self._again.done():
                logger.info("%s: %s; connecting anew", driver.flow.name, self.trouble)
                self._again = driver.loop.create_task(self._reconnect(self.trouble))
        self._changed()

    async def _reconnect(self, broken: Exception | None) -> None:
        """Make sessions until one has a link, or it is no use.

        Args:
            broken: What ended the last one, or is about to; None where there was none.

        """
        try:
            if broken is not None:
                failed = self.latest.loop.time() - self._made < HELD
                self._record_failure(broken, failed)
                # A server that lets streams end has said so to have nothing new, not because it is in trouble.
                await self._pause(at_once=not (failed or self.latest.closed))
            while self._over is None:
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
        except PenstockError as error:
            # What no other try can mend, such as an option that the transport does not know.
            self._end(error)
        except Exception as error:
            logger.exception("%s: connecting anew failed", self.latest.flow.name)
            self._end(SessionError(f"connecting anew failed, with a {type(error).__name__} of Reconnect.retry, maybe"))

    async def _pause(self, at_once: bool = False) -> None:
        """Have another session, and wait before it is tried, unless that shall be `at_once`."""
        if self._over is not None:
            return
        self._backoff.linked(self.latest.session.linked_at)
        if self.latest.state >= DRAINING:
            self._leaving.add(self.latest)
            task = self.latest.loop.create_task(self._retire(self.latest))
            self._retired.add(task)
            task.add_done_callback(self._retired.discard)
            restored = self.latest.exchanges.restored
            self._renew()
            # Streams that nobody has adopted yet have ended: whoever adopts them learns how.
            self.latest.exchanges.restored = restored
        if self._backoff.spent:
            name = self.latest.flow.name
            logger.warning("%s: the retry budget is used up; it is tried no more before reset_budget()", name)
            # Whoever waits is told.
            self._known.set()
        if self._backoff.spent or not at_once:
            await self._backoff.wait()
        if self._over is None:
            self._known.clear()

    async def _retire(self, driver: Driver) -> None:
        """Let the streams of a connection that was replaced end in peace, and leave nothing behind."""
        try:
            if not driver.closed:
                await driver.over
            # Its link may be dead, and its handlers alive.
            await driver.close(0)
        finally:
            self._leaving.discard(driver)

    def _record_failure(self, error: Exception, failed: bool) -> None:
        """Decide whether to go on after `error`; `failed`: it was one more try in a row that came to nothing."""
        self.trouble = error
        if failed:
            self._failed += 1
        else:
            self._failed = 0
            self._backoff.reset()
        if self._failed == self._policy.attempts or not self._policy.retry(error):
            # Before the first connection somebody waits for it, and is told.
            level = logging.WARNING if self._opened else logging.INFO
            logger.log(level, "%s: %s; it is tried no more", self.latest.flow.name, error)
            self._end(error)
        else:
            self._changed()

    async def _run_on_connect(self) -> None:
        """Run the hook for a new connection."""
        assert self._policy.on_connect is not None
        try:
            await self._policy.on_connect(self.peer)
        except Exception:
            logger.exception("%s: on_connect failed", self.latest.flow.name)

    # The end.

    def _end(self, error: Exception) -> None:
        """Take nothing more; whoever waits is told `error`. Only the first end counts."""
        if self._over is None:
            self._over = self.trouble = error
            self.current = None
            self._known.set()
            self._changed()

    def _stop(self) -> set[asyncio.Task[None]]:
        """Cancel what goes on in the background, and return it; not who calls this."""
        tasks = {task for task in self._hooks.values() if not task.done()}
        if self._again is not None and not self._again.done():
            tasks.add(self._again)
        tasks -= {task for task in tasks if task is asyncio.current_task()}
        for task in tasks:
            task.cancel()
        return tasks
