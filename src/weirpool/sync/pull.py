"""Waits for the next value of a stream."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

from .loop import LoopThread, result_of

__all__ = ["Pull"]

T = TypeVar("T")


class Pull(Generic[T]):
    """Requests the next value from the loop, and waits for it. A value that comes too late is for the next wait."""

    def __init__(self, loop: LoopThread, what: str, timeout: float | None) -> None:
        self._loop = loop
        self._what = what
        self._timeout = timeout
        self._future: Future[T] | None = None
        self._task: asyncio.Task[Any] | None = None

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of `work`, or of the work that an earlier wait has left."""
        if self._future is None:
            try:
                self._future = self._loop.submit(self._run(work))
            except BaseException:
                work.close()
                raise
        else:
            work.close()
        result = self._future
        try:
            return result_of(result, self._timeout, f"the next item of {self._what}")
        finally:
            if result.done():
                self._future = None

    @property
    def pending(self) -> bool:
        """True if an earlier wait has left a value."""
        return self._future is not None

    async def stop(self) -> None:
        """Cancel the work that somebody waits for, or that was left, and wait until it has ended."""
        task = self._task
        if task is not None and not task.done():
            task.cancel()
            await asyncio.wait([task])

    async def _run(self, work: Coroutine[Any, Any, T]) -> T:
        self._task = asyncio.current_task()
        return await work
