"""Servers on threads of their own: what talks to them runs an event loop itself."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, contextmanager
from threading import Thread
from typing import TypeVar

__all__ = ["on_a_thread"]

T = TypeVar("T")
WAIT = 20.0


@contextmanager
def on_a_thread(server: AbstractAsyncContextManager[T]) -> Iterator[T]:
    """Keep an async context open on a thread while the block runs; yields what it yields."""
    entered: Future[tuple[T, asyncio.AbstractEventLoop]] = Future()
    stop = asyncio.Event()

    async def main() -> None:
        async with server as value:
            entered.set_result((value, asyncio.get_running_loop()))
            await stop.wait()

    thread = Thread(target=lambda: asyncio.run(main()))
    thread.start()
    value, loop = entered.result(WAIT)
    try:
        yield value
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(WAIT)
