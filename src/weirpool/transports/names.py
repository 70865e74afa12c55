"""Looks up the addresses of names, in threads of its own.

A look-up that gets no answer takes up to half a minute, and cannot be stopped. The event loop's threads also wait for
disks, and uvloop has four for all names: some such look-ups would hold up everything else, and the end of the process.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, Final, TypeVar

__all__ = ["addresses_of"]

THREADS: Final = 128
"""Look-ups at once. Threads are started when they are needed."""

T = TypeVar("T")


async def addresses_of(host: str, port: int | None, kind: socket.SocketKind) -> list[tuple[Any, ...]]:
    """Return the addresses of a host, as `socket.getaddrinfo` does; `OSError` if it has none."""
    try:
        return socket.getaddrinfo(host, port, type=kind, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        # It is a name.
        pass
    return await asyncio.wrap_future(_threads.submit(lambda: socket.getaddrinfo(host, port, type=kind)))


class _Threads:
    """Daemon threads, so that the process can end while they wait."""

    def __init__(self) -> None:
        self._waiting: SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._count = 0
        self._lock = threading.Lock()

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Call a function in a thread."""
        future: Future[T] = Future()
        self._waiting.put((future, work))
        with self._lock:
            if not self._idle.acquire(blocking=False) and self._count < THREADS:
                self._count += 1
                threading.Thread(target=self._run, name="weirpool-names", daemon=True).start()
        return future

    def _run(self) -> None:
        while True:
            future, work = self._waiting.get()
            # A connection that was given up meanwhile does not need it.
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work())
                except BaseException as error:
                    future.set_exception(error)
            del future, work
            self._idle.release()


_threads = _Threads()


def _after_fork() -> None:
    global _threads
    # A child has none of them.
    _threads = _Threads()


# Windows has no fork.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
