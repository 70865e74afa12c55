"""The event loop of a process, in a background thread, and calls that wait for it."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent import futures
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from enum import Enum
from math import inf
from typing import Any, Final, TypeVar

from ..aio.loop import new_event_loop
from ..errors import LocalError

__all__ = ["Close", "LoopThread", "loop_thread", "result_of", "run"]

T = TypeVar("T")
Close = Callable[[], Coroutine[Any, Any, None]]

SIGNAL_SECONDS: Final = 0.5
"""A signal such as that of Ctrl-C may arrive just before the thread begins to wait, and is then handled after this."""
EXIT_SECONDS: Final = 2.0
"""The longest time that connections have to close when the interpreter exits."""


class _State(Enum):
    RUNNING = "running"
    ENDED = "ended"
    """The interpreter exits."""
    INHERITED = "inherited"
    """The process is a fork of the one that has the thread."""


_WHY_NOT: Final = {
    _State.ENDED: "the interpreter is exiting, so the connection is closed; use it before",
    _State.INHERITED: "it belongs to the process that was forked; make a new connection in this process",
}


class LoopThread:
    """An event loop in a daemon thread.

    Attributes:
        loop: The event loop.

    """

    def __init__(self) -> None:
        self.loop = new_event_loop()
        self._state = _State.RUNNING
        # Called when the interpreter exits: they close what is still open.
        self._closers: set[Close] = set()
        # Nothing else refers to them.
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._run, name="weirpool-sync", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:
            self.loop.close()
            raise LocalError(f"the event loop cannot be started: {error}") from None

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    @property
    def usable(self) -> bool:
        """True unless the interpreter exits, or the process is a fork."""
        return self._state is _State.RUNNING

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine in the loop.

        Raises:
            LocalError: The loop is not usable, or is the one that calls.

        """
        try:
            self._check()
        except BaseException:
            work.close()
            raise
        future: Future[T] = Future()
        self.loop.call_soon_threadsafe(self._begin, work, future)
        return future

    def wait(self, work: Coroutine[Any, Any, T], timeout: float | None = None, what: str = "it") -> T:
        """Run a coroutine in the loop, and return its result. If this is interrupted, the coroutine is canceled.

        Args:
            work: The coroutine.
            timeout: Seconds after which it is canceled; None or infinity: no limit.
            what: What takes that long, for the error.

        Raises:
            TimeoutError: It took longer.
            LocalError: The loop is not usable, or is the one that calls.

        """
        future = self.submit(work)
        try:
            return result_of(future, timeout, what)
        except BaseException:
            future.cancel()
            raise

    def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function in the loop, and return its result."""

        async def called() -> T:
            return function(*arguments)

        return self.wait(called())

    def post(self, function: Callable[..., object], *arguments: Any) -> None:
        """Call a function in the loop some time later. Does nothing if the loop has ended. Takes no locks."""
        if self.usable:
            # It may end just now.
            with suppress(RuntimeError):
                self.loop.call_soon_threadsafe(function, *arguments)

    def close_at_exit(self, close: Close) -> None:
        """Await what `close` returns when the interpreter exits."""
        self.post(self._closers.add, close)

    def closed(self, close: Close) -> None:
        """Do not call `close` when the interpreter exits."""
        self.post(self._closers.discard, close)

    def abandon(self, close: Close) -> None:
        """Call `close` soon, and do not wait for it."""
        self.post(self._abandoned, close)

    def _begin(self, work: Coroutine[Any, Any, T], future: Future[T]) -> None:
        """Run a coroutine, whose result is that of `future`."""
        task = self.loop.create_task(work)

        def finished(task: asyncio.Task[T]) -> None:
            # At the exit, only daemon threads wait, which must end without a word.
            if self.usable:
                _copy(task, future)

        def canceled(future: Future[T]) -> None:
            if future.cancelled():
                self.post(task.cancel)

        task.add_done_callback(finished)
        future.add_done_callback(canceled)

    def finish(self, close: Close) -> None:
        """Run what `close` returns, and wait for it, if that is possible: garbage may be collected in the loop, too."""
        if threading.current_thread() is self._thread:
            self.abandon(close)
        elif self.usable:
            self.wait(close())

    def _abandoned(self, close: Close) -> None:
        self._closers.discard(close)
        task = self.loop.create_task(close())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def inherited(self) -> None:
        """Note that this process is a fork, which has the loop and its sockets, but not the thread."""
        self._state = _State.INHERITED

    def end(self) -> None:
        """Close all connections, and end the thread."""
        if not self.usable:
            return
        self._state = _State.ENDED
        # What is still open then closes with the process.
        with suppress(Exception):
            asyncio.run_coroutine_threadsafe(self._closed(), self.loop).result(EXIT_SECONDS)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(EXIT_SECONDS)
        if not self._thread.is_alive():
            self.loop.close()

    async def _closed(self) -> None:
        await asyncio.gather(*(close() for close in self._closers), return_exceptions=True)
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.loop.shutdown_asyncgens()

    def _check(self) -> None:
        if self._state is _State.ENDED and threading.current_thread().daemon:
            # It ends with the process, in a moment, and nobody would read its error.
            threading.Event().wait()
        if not self.usable:
            raise LocalError(f"weirpool.sync: {_WHY_NOT[self._state]}")
        if threading.current_thread() is self._thread:
            raise LocalError(
                "weirpool.sync waits for the event loop, and this code runs in it, such as a handler; "
                "use the asyncio API there, weirpool.connect"
            )


def _copy(task: asyncio.Task[T], future: Future[T]) -> None:
    """Set the result of a future to that of a task."""
    if task.cancelled():
        future.cancel()
    if not future.set_running_or_notify_cancel():
        return
    error = task.exception()
    if error is None:
        future.set_result(task.result())
    else:
        future.set_exception(error)


def result_of(future: Future[T], timeout: float | None, what: str) -> T:
    """Return the result of a future.

    Raises:
        TimeoutError: It took longer than `timeout` seconds.
        LocalError: It was canceled.

    """
    left = inf if timeout is None else timeout
    while not future.done() and left > 0:
        step = min(left, SIGNAL_SECONDS)
        futures.wait([future], step)
        left -= step
    if not future.done():
        raise TimeoutError(f"{what} took more than {timeout:g} s")
    try:
        return future.result()
    except CancelledError:
        raise LocalError(f"{what} was canceled, because the connection was closed in another thread") from None


_lock = threading.Lock()
_current: LoopThread | None = None
# A child must not close the selector or the sockets of its parent, as the end of these objects would.
_of_parents: list[LoopThread] = []


def loop_thread() -> LoopThread:
    """Return the loop of this process, which is started by the first call."""
    global _current
    with _lock:
        if _current is None:
            _current = LoopThread()
        return _current


def run(main: Coroutine[Any, Any, T], *, timeout: float | None = None) -> T:
    """Run a coroutine in the background loop, and wait for its result. May be used while another loop is running.

    Args:
        main: The coroutine.
        timeout: Seconds after which it is canceled; None: no limit.

    Raises:
        TimeoutError: It took longer.

    """
    return loop_thread().wait(main, timeout, "the coroutine")


def _after_fork() -> None:
    global _current, _lock
    _lock = threading.Lock()
    if _current is not None:
        _current.inherited()
        _of_parents.append(_current)
        _current = None


@atexit.register
def _at_exit() -> None:
    if _current is not None:
        _current.end()


os.register_at_fork(after_in_child=_after_fork)
