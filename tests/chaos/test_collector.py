"""A collector in a process of its own is killed, again and again; the publisher keeps what it did not have."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import weirpool
from tests.waiting import until
from weirpool import Payload, Service, Settings
from weirpool.errors import JournalError
from weirpool.journal import Journal
from weirpool.urls import fitting

ROOT = Path(__file__).parent.parent.parent
ROUTE = "demo.numbers"
TOTAL = 40_000
KILLS = 4
HEARTBEATS = Settings(heartbeat_interval=0.02, heartbeats_until_dead=1_000, session_grace=60.0, resume_timeout=60.0)


class Publisher:
    """Yields numbers, up to a limit that the test moves."""

    def __init__(self, total: int = TOTAL) -> None:
        self.total = total
        self.limit = total // 8
        self.made = 0
        self.began = 0
        self.service = Service()
        self.service.stream(ROUTE)(self.numbers)
        self._moved = asyncio.Event()

    async def numbers(self, request: Payload) -> AsyncIterator[bytes]:
        self.began += 1
        while self.made < self.total:
            if self.made == self.limit:
                self._moved.clear()
                await self._moved.wait()
            self.made += 1
            yield b"%d" % (self.made - 1)

    def go_on(self, limit: int) -> None:
        self.limit = limit
        self._moved.set()


class Victim:
    """The collector's process, and those that come after it."""

    def __init__(self, url: str, journal: Path) -> None:
        self._url = url
        self.journal = journal
        self._process: Process | None = None

    async def start(self, late: int = 0) -> Process:
        arguments = ["-m", "tests.chaos.collecting", self._url, ROUTE, str(self.journal)]
        if late:
            arguments.append(str(late))
        self._process = await asyncio.create_subprocess_exec(sys.executable, *arguments, cwd=ROOT)
        return self._process

    async def kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

    @property
    def end(self) -> int:
        """How many items are in the journal."""
        try:
            return Journal(self.journal).reader(ROUTE).end
        except JournalError:
            return 0

    def rows(self) -> list[int]:
        reader = Journal(self.journal).reader(ROUTE)
        return [int(value) for batch in reader.read(reader.first, reader.end) for value in batch["data"].to_pylist()]

    def gaps(self) -> list[int]:
        return [gap.position for gap in Journal(self.journal).reader(ROUTE).gaps()]


@pytest.mark.slow
@pytest.mark.parametrize("place", ["rsocket+tcp://127.0.0.1:0", "river+tcp://127.0.0.1:0"])
async def test_every_item_is_kept_once_whenever_the_collector_is_killed(tmp_path: Path, place: str) -> None:
    publisher = Publisher()
    async with weirpool.serve(publisher.service, place, settings=fitting(HEARTBEATS, place, serving=True)) as server:
        victim = Victim(server.urls[0], tmp_path)
        try:
            for kill in range(KILLS):
                await victim.start()
                if kill % 2:
                    # In full flow.
                    await until(lambda: publisher.made >= publisher.limit - 100)
                else:
                    # In silence, but for heartbeats, whose answers no checkpoint knows of.
                    await until(lambda: victim.end >= publisher.limit)
                    await silence(server)
                await victim.kill()
                publisher.go_on((kill + 2) * TOTAL // (KILLS + 2))
            publisher.go_on(TOTAL)
            process = await victim.start()
            assert await process.wait() == 0
        finally:
            await victim.kill()
    assert victim.rows() == list(range(TOTAL))
    assert victim.gaps() == []
    assert publisher.began == 1


async def silence(server: weirpool.Server) -> None:
    """Wait until the collector has answered some heartbeats, where the protocol counts them."""
    [session] = server._drivers
    sequence = getattr(session, "sequence", None)
    if sequence is not None:
        enough = sequence.ack + 10
        await until(lambda: sequence.ack >= enough)
