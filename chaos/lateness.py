"""What a busy machine does to a process: it is late after it has connected, at any await, or altogether.

``no``: it is not. ``waits:SECONDS``: what follows a connection comes late, and the event loop goes on with everything
else. ``blocks:SECONDS``: nothing runs after a connection. ``tasks:SECONDS``: now and then a task goes on late after
what it has waited for, and all others do not. ``loop:SECONDS``: now and then nothing runs, at any moment.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator
from functools import partial
from typing import Any, Final, TypeVar

from penstock.aio.dialer import Dialer

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
"""Of the times that a late task goes on."""
SELDOM: Final = 1.0
"""Seconds between two moments at which a late loop stands still, on average."""


def be_late(late: str) -> None:
    """Have all that follows a connection come late, where `late` says so."""
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
    """Return what `main` returns, on an event loop that is as late as `late` says from its first step on."""
    how, _, seconds = late.partition(":")
    loop = asyncio.get_running_loop()
    if how == "loop":
        _block_again(float(seconds))
    elif how == "tasks":
        loop.set_task_factory(partial(_late_task, float(seconds)))  # type: ignore[arg-type]
    return await loop.create_task(main)


def _block_again(longest: float) -> None:
    """Have nothing run for a while, again and again."""

    def block() -> None:
        time.sleep(random.uniform(0, longest))
        loop.call_later(random.expovariate(1 / SELDOM), block)

    loop = asyncio.get_running_loop()
    loop.call_later(random.expovariate(1 / SELDOM), block)


def _late_task(longest: float, loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> asyncio.Task[Any]:
    return asyncio.Task(LateWork(work, longest), loop=loop, **options)


class LateWork(Coroutine[Any, Any, Any]):
    """Awaits `work`, but goes on late now and then after what it awaits. Being canceled is not late."""

    def __init__(self, work: Coroutine[Any, Any, Any], longest: float) -> None:
        self._work = work
        self._longest = longest
        self._steps = self._go()
        self._begun = False

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._steps

    def send(self, value: Any) -> Any:
        """Go on."""
        self._begun = True
        return self._steps.send(value)

    def throw(self, *error: Any) -> Any:
        """Go on with an error."""
        return (self._steps if self._begun else self._work).throw(*error)

    def close(self) -> None:
        """Give it up."""
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
