"""What a test must not leave to those after it: handlers of signals, threads, connections and tasks."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from penstock.aio.loop import new_event_loop

__all__ = ["Before", "tasks_left"]

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
"""The signals that end a run of the tests."""
LASTING: Final = ("penstock-names", "penstock-journal")
"""Threads that wait for further work: as long as the process runs, or something still refers to the service."""
PATIENCE: Final = 2.0
"""Seconds until a thread, a connection or a task has ended that was told to."""
DESCRIPTORS: Final = Path("/proc/self/fd")

# libuv makes a pair of sockets or pipes for signals once in each process.
new_event_loop().close()


class Before:
    """What is there before a test: its handlers when this is made, and the rest when its fixtures are."""

    def __init__(self) -> None:
        self._handlers: dict[signal.Signals, Any] = {number: signal.getsignal(number) for number in SIGNALS}
        self.note()

    def note(self) -> None:
        """Take what there is now for granted: fixtures may keep it for further tests."""
        self._threads = set(threading.enumerate())
        self._sockets = _sockets()

    def left(self) -> list[str]:
        """Return the threads and connections that a test has left, a sentence each."""
        if self._alive() or _sockets() - self._sockets:
            # A test may leave them to the garbage collector.
            gc.collect()
            until = time.monotonic() + PATIENCE
            while (self._alive() or _sockets() - self._sockets) and time.monotonic() < until:
                time.sleep(0.01)
        threads = [f"the thread {name!r} still runs" for name in self._alive()]
        return [*threads, *(f"{name} is still open" for name in sorted(_sockets() - self._sockets))]

    def handlers_left(self) -> list[str]:
        """Return the signals whose handlers a test has left changed, a sentence each, and put the handlers back."""
        found = []
        for number, handler in self._handlers.items():
            if (left := signal.getsignal(number)) != handler:
                found.append(f"{number.name} is handled by {left!r}")
                signal.signal(number, handler)
        return found

    def _alive(self) -> list[str]:
        names = [thread.name for thread in threading.enumerate() if thread not in self._threads]
        return [name for name in names if not name.startswith(LASTING)]


def _sockets() -> set[str]:
    """Return the sockets of this process by the number of their descriptor; none on systems that do not list them."""
    found = set()
    with suppress(FileNotFoundError):
        for name in os.listdir(DESCRIPTORS):
            # The descriptor of the folder itself is gone.
            with suppress(FileNotFoundError):
                if (link := os.readlink(DESCRIPTORS / name)).startswith("socket:"):
                    found.add(f"{link} ({name})")
    return found


async def tasks_left() -> list[str]:
    """Return the names of the tasks that a coroutine test has left running, and would be canceled with its loop."""
    if left := asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.wait(left, timeout=PATIENCE)
    return [str(task.get_coro()) for task in left if not task.done()]
