"""Child processes that are started again whenever they end, until they are told to stay down."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

__all__ = ["ROOT", "Child", "End", "group_of", "listen"]

ROOT: Final = Path(__file__).parent.parent
HELD: Final = {signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2}
"""What a process that listens hears only when it is ready: Python's imports may make anything of an interruption."""
PAUSE: Final = 0.05
"""Seconds before a process that has ended is started again."""


@dataclass(frozen=True)
class End:
    """How a process ended.

    Attributes:
        name: What it was called.
        at: When, in seconds since 1970.
        code: Its exit code; negative: the signal that killed it.
        sent: The signals that it was sent before.

    """

    name: str
    at: float
    code: int
    sent: tuple[int, ...] = ()


class Child:
    """A process, and those that come after it.

    Args:
        name: What it is called in logs.
        command: Returns the arguments of the next process, after the interpreter's.
        log: Where its output goes.
        piped: It is spoken to.
        listens: It calls `listen` when it is ready for signals.

    Attributes:
        starts: Processes so far.
        done: The newest one ended with 0, and there will be no other.
        ends: Of those that have ended.

    """

    def __init__(
        self, name: str, command: Callable[[], list[str]], log: Path, *, piped: bool = False, listens: bool = False
    ) -> None:
        self.name = name
        self.starts = 0
        self.done = asyncio.Event()
        self.ends: list[End] = []
        self._command = command
        self._log: IO[bytes] = log.open("ab")
        self._piped = piped
        self._hold = _hold if listens else None
        self._process: Process | None = None
        self._task: asyncio.Task[None] | None = None
        self._groups: list[int] = []
        self._sent: list[int] = []
        self._started = asyncio.Event()

    @property
    def process(self) -> Process:
        """The newest process."""
        assert self._process is not None
        return self._process

    @property
    def alive(self) -> bool:
        """Whether it runs at the moment."""
        return self._process is not None and self._process.returncode is None

    async def run(self, *, ends: bool = False) -> None:
        """Start it, and start it again whenever it has ended; return when the first process is there.

        Args:
            ends: It is done when a process ends with 0.

        """
        self._task = asyncio.create_task(self._keep(ends))
        await self._started.wait()

    async def _keep(self, ends: bool) -> None:
        while True:
            await self._start()
            code = await self.process.wait()
            self.ends.append(End(self.name, time.time(), code, tuple(self._sent)))
            if code == 0 and ends and not self._stopped:
                self.done.set()
                return
            await asyncio.sleep(PAUSE)

    @property
    def _stopped(self) -> bool:
        """Whether the newest process was asked to end: with 0 it says that it has, and not that all is done."""
        return bool({signal.SIGTERM, signal.SIGINT} & set(self._sent))

    async def _start(self) -> None:
        self._sent = []
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            *self._command(),
            cwd=ROOT,
            stdin=PIPE if self._piped else DEVNULL,
            stdout=PIPE if self._piped else self._log,
            stderr=self._log,
            start_new_session=True,
            preexec_fn=self._hold,
        )
        self._groups.append(self._process.pid)
        self.starts += 1
        self._started.set()

    def signal(self, number: int) -> bool:
        """Send a signal to the newest process; return whether it was there."""
        if not self.alive:
            return False
        with suppress(ProcessLookupError):
            # The method of the process would look first whether it has ended, and take its exit code from who waits.
            os.kill(self.process.pid, number)
            self._sent.append(number)
            return True
        return False

    async def end(self) -> None:
        """End it, and whatever its processes have started."""
        if self._task is not None:
            self._task.cancel()
        for group in self._groups:
            for pid in group_of(group):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        if self._process is not None:
            await self._process.wait()
        self._log.close()


def _hold() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, HELD)


def listen() -> None:
    """Hear the signals that were sent to this process while it began."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD)


def group_of(session: int) -> dict[int, str]:
    """Return the processes of a session that was started here, by id, each with its command line."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        # A process may end while it is looked at.
        with suppress(OSError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == session:
                found[int(folder.name)] = (
                    (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                )
    return found
