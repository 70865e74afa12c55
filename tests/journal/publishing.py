"""A publisher that tests hold up, cut off and start anew, and what else a collector meets."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import weirpool
from weirpool import Service, Settings
from weirpool.journal import Journal, JournalWriter
from weirpool.journal.collect import Collector
from weirpool.journal.encoder import rows_in
from weirpool.journal.layout import IDENTITY, log_folder
from weirpool.settings import DEFAULT_SETTINGS

URL = "rsocket+memory://publisher"
ROUTE = "numbers"
RIVER = "river+memory://publisher"
RIVER_ROUTE = "demo.numbers"
NO_RESUME = Settings(resume_timeout=0)
"""Of a publisher that resumes no sessions."""


class Publisher:
    """Yields what it is given, in order; at an event it waits, and an error it raises.

    Attributes:
        made: Items that were taken of it, which credit allows.
        began: How often the stream was opened.

    """

    def __init__(self, *steps: bytes | asyncio.Event | Exception) -> None:
        self.steps = list(steps)
        self.made = 0
        self.began = 0
        self.service = Service()
        for route in (ROUTE, RIVER_ROUTE):
            self.service.stream(route)(self.numbers)

    async def numbers(self, request: weirpool.Payload) -> AsyncIterator[bytes]:
        self.began += 1
        for step in self.steps:
            if isinstance(step, Exception):
                raise step
            if isinstance(step, asyncio.Event):
                await step.wait()
            else:
                self.made += 1
                yield step

    def serve(self, settings: Settings = DEFAULT_SETTINGS, url: str = URL) -> weirpool.Server:
        return weirpool.serve(self.service, url, settings=replace(settings, close_grace=0))


def numbered(start: int, end: int, width: int = 0) -> list[bytes]:
    return [b"%0*d" % (width, number) for number in range(start, end)]


@asynccontextmanager
async def collecting(collector: Collector) -> AsyncIterator[asyncio.Task[None]]:
    """Run a collector beside the block, and stop it as a signal does."""
    task = asyncio.create_task(collector.run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def rows(journal: Path) -> list[bytes]:
    if not (log_folder(journal, ROUTE) / IDENTITY).exists():
        return []
    reader = Journal(journal).reader(ROUTE)
    return [value for batch in reader.read(reader.first, reader.end) for value in batch["data"].to_pylist()]


def gaps(journal: Path) -> list[tuple[int, str]]:
    if not (log_folder(journal, ROUTE) / IDENTITY).exists():
        return []
    return [(gap.position, gap.reason) for gap in Journal(journal).reader(ROUTE).gaps()]


def cut(server: weirpool.Server) -> None:
    """Break every link of a server."""
    for driver in server._drivers.values():
        driver.link.abort()


class Reporter:
    """A peer that notes when the collector covers what has come, and when it tells the publisher so."""

    def __init__(self, peer: weirpool.Peer, log: list[str]) -> None:
        self.peer = peer
        self._log = log

    def __getattr__(self, name: str) -> Any:
        return getattr(self.peer, name)

    def checkpoint(self, stream: weirpool.Stream, count: int) -> bytes | None:
        self._log.append("cover")
        return self.peer.checkpoint(stream, count)

    def commit(self) -> None:
        self._log.append("report")
        self.peer.commit()


class HeldWrites:
    """Holds every batch that has rows up in its thread, before it is written."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached = False
        self._open = threading.Event()
        append = JournalWriter.append

        def held(writer: JournalWriter, batch: Any, *arguments: Any) -> int:
            if rows_in(batch):
                self.reached = True
                assert self._open.wait(60)
            return append(writer, batch, *arguments)

        monkeypatch.setattr(JournalWriter, "append", held)

    def open(self) -> None:
        self._open.set()


class FullDisk:
    """A disk that has no room for large writes until some is freed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.full = False
        pwrite = os.pwrite

        def write(fd: int, data: bytes, offset: int) -> int:
            if self.full:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return pwrite(fd, data, offset)

        replace = os.replace

        def rename(source: object, target: object) -> None:
            if self.full:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            replace(source, target)  # type: ignore[type-var]

        monkeypatch.setattr(os, "pwrite", write)
        monkeypatch.setattr(os, "replace", rename)
