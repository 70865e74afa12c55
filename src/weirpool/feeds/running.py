"""Runs feeds until it is asked to stop: applies new versions of the file, and publishes statuses."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Final, Protocol

from ..aio.signals import STOPPING, handled
from .notify import notify

if TYPE_CHECKING:
    from .file import FeedsFile

__all__ = ["TICK_SECONDS", "Control", "Runner", "run_feeds"]

TICK_SECONDS: Final = 2.0
"""How often statuses are published."""


class Runner(Protocol):
    """Runs feeds: in this process, or in workers."""

    @property
    def standing_by(self) -> str:
        """Why another process continues the logs of these feeds; empty if none does."""

    async def apply(self, file: FeedsFile) -> None:
        """Make the feeds of a file run."""

    def publish(self) -> None:
        """Publish the statuses of the feeds, if they run in this process."""

    async def stop(self) -> list[str]:
        """Stop all feeds; return the names of what could not be stopped in time."""


class Control:
    """Asks a running process to stop, or gives it another version of its file.

    Attributes:
        stopped_by: The signal that asks to stop; None while nothing does.

    """

    def __init__(self) -> None:
        self.stopped_by: signal.Signals | None = None
        self._file: FeedsFile | None = None
        self._wake = asyncio.Event()

    def listening(self) -> AbstractContextManager[None]:
        """Return a context in which SIGTERM and SIGINT ask to stop."""
        return handled(self.stop, *STOPPING)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Ask to stop."""
        self.stopped_by = number
        self._wake.set()

    def give(self, file: FeedsFile) -> None:
        """Give another version of the file; only the newest one counts."""
        self._file = file
        self._wake.set()

    async def wait(self, seconds: float) -> FeedsFile | None:
        """Wait for a request, at most so long; return the version of the file to apply, if there is a new one."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        self._wake.clear()
        file, self._file = self._file, None
        return file


async def run_feeds(
    file: FeedsFile, runner: Runner, control: Control, on_tick: Callable[[], None] = lambda: None
) -> list[str]:
    """Run feeds until `control` asks to stop.

    Args:
        file: The first version of the file.
        runner: What runs the feeds.
        control: What asks to stop, and gives other versions.
        on_tick: Called every two seconds.

    Returns:
        The names of what could not be stopped in time.

    """
    await runner.apply(file)
    notify("READY=1")
    while control.stopped_by is None:
        runner.publish()
        on_tick()
        notify("WATCHDOG=1")
        other = await control.wait(TICK_SECONDS)
        if other is not None and control.stopped_by is None:
            notify("RELOADING=1")
            await runner.apply(other)
            notify("READY=1")
    notify("STOPPING=1")
    return await runner.stop()
