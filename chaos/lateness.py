"""Simulates the delays of a busy machine in a process.

``no``: no delays. ``waits:SECONDS``: the task that connects is delayed after connecting, while the event loop runs.
``blocks:SECONDS``: the event loop is blocked after connecting. ``tasks:SECONDS``: single tasks are sometimes delayed
after an await. ``loop:SECONDS``: the event loop is sometimes blocked.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator
from functools import partial
from typing import Any, Final, TypeVar

from weirpool.aio.dialer import Dialer

__all__ = ["LATE", "be_late", "late_main"]

T = TypeVar("T")

LATE: Final = (
    "no",
    "no",
    "waits:0.3",
    "waits:0.05",
    "blocks:0.3",
    "blocks:0.05",
    "tasks:0.05",
    "tasks:0.3",
    "loop:0.05",
    "loop:0.3",
)
OFTEN: Final = 0.02
"""The probability of a delay after each await of a delayed task."""
SELDOM: Final = 1.0
"""Mean seconds between two times that a delayed loop is blocked."""


def be_late(late: str) -> None:
    """Delay the code after connecting as `late` specifies."""
    how, _, seconds = late.partition(":")
    if how not in ("waits", "blocks"):
        return
    opened: Callable[..., Awaitable[Any]] = Dialer.open

    async def open_late(*arguments: Any) -> None:
        await opened(*arguments)
        if how == "blocks":
            time.sleep(float(seconds))  # noqa: ASYNC251
        else:
            await asyncio.sleep(float(seconds))

    Dialer.open = open_late  # type: ignore[method-assign, assignment]


async def late_main(late: str, main: Coroutine[Any, Any, T]) -> T:
    """Run `main` with the delays of `late` from its first step, and return its result."""
    how, _, seconds = late.partition(":")
    loop = asyncio.get_running_loop()
    if how == "loop":
        _block_again(float(seconds))
    elif how == "tasks":
        loop.set_task_factory(partial(_late_task, float(seconds)))  # type: ignore[arg-type]
    return await loop.create_task(main)


def _block_again(longest: float) -> None:
    """Block the event loop repeatedly."""

    def block() -> None:
        time.sleep(random.uniform(0, longest))
        loop.call_later(random.expovariate(1 / SELDOM), block)

    loop = asyncio.get_running_loop()
    loop.call_later(random.expovariate(1 / SELDOM), block)


def _late_task(longest: float, loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> asyncio.Task[Any]:
    return asyncio.Task(LateWork(work, longest), loop=loop, **options)


class LateWork(Coroutine[Any, Any, Any]):
    """Runs `work` with occasional delays after its awaits. Cancellation is not delayed."""

    def __init__(self, work: Coroutine[Any, Any, Any], longest: float) -> None:
        self._work = work
        self._longest = longest
        self._steps = self._go()
        self._begun = False

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._steps

    def send(self, value: Any) -> Any:
        """Resume."""
        self._begun = True
        return self._steps.send(value)

    def throw(self, *error: Any) -> Any:
        """Resume with an error."""
        return (self._steps if self._begun else self._work).throw(*error)

    def close(self) -> None:
        """Close the coroutine."""
        self._steps.close()
        self._work.close()

    def _go(self) -> Generator[Any, Any, Any]:
        error: BaseException | None = None
        value: Any = None
        while True:
            try:
                awaited = self._work.send(value) if error is None else self._work.throw(error)
            except StopIteration as stop:
                return stop.value
            error = None
            try:
                value = yield awaited
                if random.random() < OFTEN:
                    yield from asyncio.sleep(random.uniform(0, self._longest)).__await__()
            except BaseException as raised:
                error = raised
