"""Child processes that are restarted whenever they end."""

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
"""Signals that are blocked until a process is ready: an interrupted import may fail in any way."""
PAUSE: Final = 0.05
"""Seconds before a process is restarted."""


@dataclass(frozen=True)
class End:
    """How a process ended.

    Attributes:
        name: Its name.
        at: The time, in seconds since 1970.
        code: Its exit code, or the negative number of the signal that killed it.
        sent: The signals sent to it before.

    """

    name: str
    at: float
    code: int
    sent: tuple[int, ...] = ()


class Child:
    """A process and its restarts.

    Args:
        name: Its name in logs.
        command: Returns the arguments of the next process, after the interpreter's.
        log: The file for its output.
        piped: Its standard input and output are pipes.
        listens: It calls `listen` when it is ready for signals.

    Attributes:
        starts: The number of processes so far.
        done: Set when the process has ended with 0 and is not restarted.
        ends: How each process ended.

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
        """Whether the process is running."""
        return self._process is not None and self._process.returncode is None

    async def run(self, *, ends: bool = False) -> None:
        """Start the process, and restart it whenever it ends. Return when the first process has started.

        Args:
            ends: Do not restart it after an exit code of 0.

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
        """Whether the process was asked to end. If so, an exit code of 0 does not mean that its work is done."""
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
        """Send a signal to the process, and return True if it was running."""
        if not self.alive:
            return False
        with suppress(ProcessLookupError):
            # Process.send_signal() would poll first, and take the exit code from the task that waits.
            os.kill(self.process.pid, number)
            self._sent.append(number)
            return True
        return False

    async def end(self) -> None:
        """Kill the process and all processes that it has started."""
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
    """Unblock the signals that were blocked while this process started."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD)


def group_of(session: int) -> dict[int, str]:
    """Return the command lines of the processes in a session, by process id."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        # A process may end while it is read.
        with suppress(OSError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == session:
                found[int(folder.name)] = (
                    (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                )
    return found
