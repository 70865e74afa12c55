"""The program of a worker process: ``python -m weirpool.feeds.worker FILE NUMBER/COUNT LOG``."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path
from queue import Full, Queue

import msgspec

from .file import FeedsFile, parse
from .process import leave, on_batch, prepare, use_threads
from .running import Control, run_feeds
from .sharing import worker_of
from .status import FeedStatus
from .supervisor import Supervisor
from .workers import MAX_LINE_BYTES

__all__ = ["main"]


def main(arguments: list[str]) -> None:
    """Run the worker's share of the feeds, until standard input ends or a signal arrives."""
    from ..aio.loop import run

    path, share, form = arguments
    number, count = map(int, share.split("/"))
    prepare(form)
    # The parent reads the file again.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    run(_work(Path(path), number, count))


async def _work(path: Path, number: int, count: int) -> None:
    reader = asyncio.StreamReader(MAX_LINE_BYTES)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    first = await _next(path, reader)
    if first is None:
        return
    use_threads()
    control = Control()
    parent = asyncio.ensure_future(_obey(path, reader, control))
    supervisor = Supervisor(_Reports().report, lambda name: worker_of(name, count) == number, on_batch())
    with control.listening():
        late = await run_feeds(first, supervisor, control)
        parent.cancel()
        leave(late)


async def _next(path: Path, reader: asyncio.StreamReader) -> FeedsFile | None:
    """Return the next version of the file; None at the end of standard input."""
    line = await reader.readline()
    return parse(path, msgspec.json.decode(line, type=str)) if line else None


async def _obey(path: Path, reader: asyncio.StreamReader, control: Control) -> None:
    """Apply each version of the file, and stop when the parent is gone."""
    while (file := await _next(path, reader)) is not None:
        control.give(file)
    control.stop()


class _Reports:
    """Writes statuses to standard output in a thread: a parent that does not read must not hold the loop up."""

    def __init__(self) -> None:
        self._waiting: Queue[list[FeedStatus]] = Queue(1)
        threading.Thread(target=self._write, name="weirpool reports", daemon=True).start()

    def report(self, statuses: list[FeedStatus]) -> None:
        """Write these statuses soon; drop them if earlier ones are not read yet."""
        with suppress(Full):
            self._waiting.put_nowait(statuses)

    def _write(self) -> None:
        # Without a parent, standard input ends, and the process stops.
        with suppress(BrokenPipeError):
            while True:
                line = msgspec.json.encode(self._waiting.get()) + b"\n"
                while line:
                    line = line[os.write(sys.stdout.fileno(), line) :]


if __name__ == "__main__":
    main(sys.argv[1:])
