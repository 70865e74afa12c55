"""The connections of this process to collectors, on an event loop in a thread of their own.

Spark's code is synchronous, and its workers are forked: a child has a loop and connections of its own.
"""

from __future__ import annotations

import asyncio
import os
import random
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from typing import Any, Final, TypeVar

from ..aio.peer import Peer
from ..errors import (
    ApplicationError,
    JournalError,
    Rejected,
    SessionClosed,
    SessionError,
    SetupRejected,
    WeirpoolError,
)
from ..journal.ports import Refused
from ..settings import Settings
from ..urls import fitting
from .access import alternatives, target
from .messages import NOT_ALLOWED, STANDBY, error_from, refusal_of

__all__ = ["PATIENCE", "Links", "close_links", "links"]

PATIENCE: Final = 30.0
"""Seconds to try again after a connection was lost or could not be made: a collector that is restarted needs a few."""
FIRST_PAUSE: Final = 0.05
MAX_PAUSE: Final = 2.0
SETTINGS: Final[dict[str, Any]] = {"keepalive_interval": 2.0, "keepalive_lifetime": 10.0, "connect_timeout": 5.0}
"""A collector gives up the names that a dead client holds after this lifetime, and a client a collector that is."""
CLOSED: Final = "the connections to collectors were closed; open the journal again"

T = TypeVar("T")


class Links:
    """An event loop in a thread, and a connection for each URL that was asked.

    A URL may be several with "|" between them: those of collectors that stand in for each other.
    """

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        # Not the module's generator, whose state belongs to the program.
        self._random = random.Random()
        self._peers: dict[str, asyncio.Task[Peer]] = {}
        # Which of the addresses between "|" was the last one to connect to.
        self._turns: dict[str, int] = {}
        self._closing = asyncio.Event()
        self._closed = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="weirpool-links", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        _here.links = self
        # The runner cancels what is left, and waits for it.
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._until_closed())

    async def _until_closed(self) -> None:
        await self._closing.wait()
        made = [task.result() for task in self._peers.values() if _is_made(task)]
        await asyncio.gather(*(peer.close(0) for peer in made), return_exceptions=True)

    def close(self) -> None:
        """Close the connections, cancel what runs on the loop, and wait for the end of the thread.

        What waits for a result fails. May be called twice, but not on the loop.
        """
        with self._lock:
            if not self._closed:
                self._closed = True
                self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine on the loop; return its future, to :meth:`wait` for. `SessionClosed`: it is closed."""
        with self._lock:
            if not self._closed:
                return asyncio.run_coroutine_threadsafe(work, self._loop)
        work.close()
        raise SessionClosed(CLOSED)

    def post(self, work: Coroutine[Any, Any, object]) -> None:
        """Run a coroutine on the loop some time later. Does nothing if it is closed."""
        with suppress(SessionClosed):
            self.submit(work)

    def wait(self, future: Future[T]) -> T:
        """Wait in this thread for a coroutine's result; an interrupt cancels it. `SessionClosed`: it was closed."""
        try:
            return future.result()
        except CancelledError:
            raise SessionClosed(CLOSED) from None
        except BaseException:
            future.cancel()
            raise

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop, and wait for its result in this thread. An interrupt cancels it."""
        try:
            return self.wait(self.submit(work))
        except SessionClosed as error:
            raise JournalError(str(error)) from error

    async def peer(self, url: str) -> Peer:
        """Return the connection to a collector, which is made if there is none."""
        task = self._peers.get(url)
        if task is None or (task.done() and not _is_made(task)):
            task = self._peers[url] = asyncio.get_running_loop().create_task(self._connected(url))
        # The connection is for all who ask: one of them that is canceled does not cancel it.
        return await asyncio.shield(task)

    async def _connected(self, url: str) -> Peer:
        """Connect to a collector: each time to the next one of those that stand in for each other."""
        places = alternatives(url)
        # A refusal may arrive with the first answer, when the connection is made long since.
        turn = self._turns[url] = (self._turns.get(url, -1) + 1) % len(places)
        fit = fitting(Settings(**SETTINGS), places[turn])
        return await target(places[turn], {name: getattr(fit, name) for name in SETTINGS}).connect()

    async def ask(self, url: str, work: Callable[[Peer], Awaitable[T]], patience: float = PATIENCE) -> T:
        """Return the result of `work` with the connection to a collector; it is repeated after the loss of a link.

        Raises the errors of the journal that the collector has sent, `LocalError` if the request is not valid, and
        `JournalError` if the collector cannot be reached, or refuses.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + patience
        pause = FIRST_PAUSE
        while True:
            try:
                return await work(await self.peer(url))
            except (SessionError, SessionClosed, ApplicationError) as error:
                if not _may_pass(error):
                    raise _refused(url, error) from error
                if loop.time() + pause > deadline:
                    raise JournalError(
                        f"{url}: the collector cannot be reached ({error}); check that it runs with --serve, and the "
                        "network"
                    ) from error
            await asyncio.sleep(pause * self._random.uniform(0.5, 1))
            pause = min(2 * pause, MAX_PAUSE)


def _is_made(task: asyncio.Task[Peer]) -> bool:
    """Return True if there is a connection, and it can be used."""
    return task.done() and not task.cancelled() and not task.exception() and not task.result().closed


def _may_pass(error: WeirpoolError) -> bool:
    """Return True if the same request may succeed later."""
    if isinstance(error, SetupRejected | Rejected):
        return error.temporary or error.closing or STANDBY in error.message
    return isinstance(error, SessionError | SessionClosed)


def _refused(url: str, error: WeirpoolError) -> WeirpoolError:
    if isinstance(error, SetupRejected):
        return refusal_of(error.message, url) or JournalError(
            f"{url}: the collector refuses this client ({error.message}); check its credentials"
        )
    if isinstance(error, Rejected) and NOT_ALLOWED in error.message:
        return Refused(f"{url}: {error.message}")
    if isinstance(error, Rejected):
        return Refused(f"{url}: the request was refused ({error.message}); does it serve a journal, with --serve?")
    assert isinstance(error, ApplicationError)
    return error_from(error, url)


_links: Links | None = None
_lock = threading.Lock()
# Of a thread that runs a loop of connections, these.
_here = threading.local()


def links() -> Links:
    """Return the connections of this process; those of the process that it was forked from are not its own.

    On the loop of some connections, these are returned, even if they are about to be closed.
    """
    global _links
    mine: Links | None = getattr(_here, "links", None)
    if mine is not None and mine.pid == os.getpid():
        return mine
    with _lock:
        if _links is None or _links.pid != os.getpid():
            _links = Links()
        return _links


def close_links() -> None:
    """Close the connections of this process, and end their thread. A later question makes new ones.

    Collectors are not followed any longer, and names that are held are given back. Ranges that are being read go on
    with new connections. A process that reads no more need not call this: the thread ends with it.
    """
    global _links
    with _lock:
        closed, _links = _links, None
    if closed is not None and closed.pid == os.getpid():
        closed.close()


def _after_fork() -> None:
    global _lock
    # Another thread may have held it.
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
