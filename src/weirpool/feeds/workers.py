"""Worker processes that share the feeds of a file, and their parent, which starts them again when they die."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

from ..aio.reconnect import Backoff
from .status import FeedStatus

if TYPE_CHECKING:
    from .board import Board
    from .file import FeedsFile

__all__ = ["MAX_LINE_BYTES", "Workers"]

logger = logging.getLogger("weirpool.feeds")

FIRST_DELAY: Final = 0.5
LONGEST_DELAY: Final = 30.0
"""Seconds before a worker that died is started again."""
STOP_SECONDS: Final = 20.0
"""How long a worker that stops may be silent, before it is killed: twice the time in which one of its feeds stops."""
MAX_LINE_BYTES: Final = 64 * 1024 * 1024
"""The size of a line: the statuses of some 60,000 feeds, or a file of as many."""


class Workers:
    """Runs feeds in processes. All methods belong to one event loop.

    A worker gets each version of the file on its standard input, so that all workers have the same one, also those that
    are started again. It stops when standard input ends, so that it does not outlive its parent. It writes its statuses
    to its standard output every two seconds. Versions and statuses are lines of JSON.

    Args:
        board: Gets the statuses.
        count: The number of workers.
        log: The form of the workers' logs: "json" or "text".

    """

    def __init__(self, board: Board, count: int, log: str) -> None:
        self._board = board
        self._count = count
        self._log = log
        self._file = b""
        self._path = ""
        self._processes: dict[int, Process] = {}
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def pids(self) -> list[int]:
        """The process ids of the workers that run."""
        return [process.pid for process in self._processes.values() if process.returncode is None]

    async def apply(self, file: FeedsFile) -> None:
        """Start the workers, or make them read the file again."""
        self._path = str(file.path)
        self._file = msgspec.json.encode(file.text) + b"\n"
        for process in self._processes.values():
            _send(process, self._file)
        if not self._tasks:
            self._tasks = [asyncio.create_task(self._keep(number)) for number in range(self._count)]

    @property
    def standing_by(self) -> str:
        """Nothing: no other process continues the logs."""
        return ""

    def publish(self) -> None:
        """Do nothing: workers publish their statuses themselves."""

    async def stop(self) -> list[str]:
        """Stop all workers. Those that do not stop in time are killed; return their names."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        ended = await asyncio.gather(*(self._ended(number, process) for number, process in self._processes.items()))
        return [name for name in ended if name]

    async def _keep(self, number: int) -> None:
        """Run one worker, and start it again when it dies."""
        backoff = Backoff(FIRST_DELAY, LONGEST_DELAY)
        while True:
            try:
                process = self._processes[number] = await self._start(number)
                reports = await self._relay(number, process)
                why = f"ended with {await process.wait()}"
                if reports > 1:
                    backoff.reset()
            except OSError as error:
                why = f"cannot be started: {error}"
            delay = backoff.next()
            logger.error("worker %d %s; it is started again in %.1f s", number, why, delay)
            await asyncio.sleep(delay)

    async def _start(self, number: int) -> Process:
        share = f"{number}/{self._count}"
        # A session of its own: Ctrl-C reaches only the parent, which stops the workers.
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "weirpool.feeds.worker", self._path, share, self._log,
            stdin=PIPE, stdout=PIPE, limit=MAX_LINE_BYTES, start_new_session=True,
        )  # fmt: skip
        _send(process, self._file)
        return process

    async def _relay(self, number: int, process: Process) -> int:
        """Publish the statuses of a worker until it ends; return how often it has reported them."""
        assert process.stdout is not None
        reports = 0
        while True:
            try:
                line = await process.stdout.readline()
                if not line:
                    return reports
                statuses = msgspec.json.decode(line, type=list[FeedStatus])
            except (ValueError, RecursionError) as error:
                # Also a line that is too long, which is skipped.
                logger.warning("worker %d wrote a line that is not a report: %s", number, error)
                continue
            for status in statuses:
                status.worker = number
            self._board.publish(statuses, number)
            reports += 1

    async def _ended(self, number: int, process: Process) -> str:
        """Stop a worker; return its name if it had to be killed."""
        assert process.stdout is not None
        _signal(process, signal.SIGTERM)
        try:
            # It reports for as long as its logs are being closed.
            while await asyncio.wait_for(process.stdout.read(MAX_LINE_BYTES), STOP_SECONDS):
                pass
            await asyncio.wait_for(process.wait(), STOP_SECONDS)
        except TimeoutError:
            _signal(process, signal.SIGKILL)
            await process.wait()
            return f"worker {number}"
        return ""


def _send(process: Process, line: bytes) -> None:
    """Write to a worker's standard input. A worker that has ended gets the line when it is started again."""
    if process.stdin is not None and process.returncode is None:
        process.stdin.write(line)


def _signal(process: Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        process.send_signal(number)
