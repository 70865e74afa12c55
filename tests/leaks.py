"""What a test must not leave to those after it: handlers of signals, and threads."""

from __future__ import annotations

import gc
import signal
import threading
import time
from typing import Any, Final

__all__ = ["Handlers", "Threads"]

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
"""The signals that end a run of the tests."""

LASTING: Final = ("weirpool-sync", "weirpool-names", "weirpool-journal", "asyncio", "uvloop")
"""The beginnings of the names of threads that last: the loop of `weirpool.sync`, its pool, that of names, and those of
services with journals, which end with the last reference to the service."""
PATIENCE: Final = 5.0
"""Seconds in which a thread that was told to end must end: more than a busy machine stops a process."""


class Handlers:
    """The handlers of signals before a test."""

    def __init__(self) -> None:
        self._before: dict[signal.Signals, Any] = {number: signal.getsignal(number) for number in SIGNALS}

    def left(self) -> list[str]:
        """Return the signals whose handlers a test has left changed, a sentence each, and put the handlers back."""
        found = []
        for number, handler in self._before.items():
            left = signal.getsignal(number)
            # Spark handles SIGINT as long as it runs, for all tests.
            if left != handler and not getattr(left, "__module__", "").startswith("pyspark"):
                found.append(f"{number.name} is handled by {left!r}")
                signal.signal(number, handler)
        return found


class Threads:
    """The threads before a test begins, those of its fixtures included."""

    def __init__(self) -> None:
        self._before = set(threading.enumerate())

    def left(self, patience: float = PATIENCE) -> list[str]:
        """Return the threads that a test has left running, a sentence each, after waiting for their end."""
        if not self._new():
            return []
        # Pools that nobody has closed end with their last reference.
        gc.collect()
        deadline = time.monotonic() + patience
        for thread in self._new():
            thread.join(max(0.0, deadline - time.monotonic()))
        return [f"the thread {thread.name!r} is running" for thread in self._new()]

    def _new(self) -> list[threading.Thread]:
        return [
            thread
            for thread in threading.enumerate()
            if thread not in self._before and not thread.name.startswith(LASTING) and not _is_foreign(thread)
        ]


def _is_foreign(thread: threading.Thread) -> bool:
    """Return True for threads of libraries in other languages, and of the connection to the JVM of Spark."""
    return isinstance(thread, threading._DummyThread) or type(thread).__module__.startswith(("py4j", "pyspark"))
