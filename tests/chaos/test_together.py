"""A process with several feeds is killed, again and again; their batches become durable together."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import weirpool
from tests.waiting import until
from weirpool import Payload, Service, Settings
from weirpool.errors import JournalError
from weirpool.journal import Journal
from weirpool.journal.replay import REDO

ROOT = Path(__file__).parent.parent.parent
SOURCES = ("a", "b", "c")
TOTAL = 2_000
KILLS = 3
PLACE = "rsocket+tcp://127.0.0.1:0"


class Publisher:
    """Yields numbers to each feed, a few at once."""

    def __init__(self) -> None:
        self.began = 0
        self.service = Service()
        self.service.stream("numbers")(self.numbers)

    async def numbers(self, request: Payload) -> AsyncIterator[bytes]:
        self.began += 1
        for number in range(TOTAL):
            if number % 7 == 0:
                await asyncio.sleep(0.005)
            yield b"%d" % number


def end(journal: Path, source: str) -> int:
    """Return how many items are in a log."""
    try:
        return Journal(journal).reader(source).end
    except JournalError:
        return 0


def rows(journal: Path, source: str) -> list[int]:
    reader = Journal(journal).reader(source)
    return [int(value) for batch in reader.read(reader.first, reader.end) for value in batch["data"].to_pylist()]


def left(journal: Path) -> bool:
    """Return True if a log relies on redo files, or some are left that nobody needs."""
    return any(journal.glob("source=*/_unsynced")) or len(list(journal.glob(f"{REDO}/*"))) > 1


@pytest.mark.slow
async def test_every_item_of_every_feed_is_kept_once(tmp_path: Path) -> None:
    publisher = Publisher()
    relied = False
    command = [sys.executable, "-m", "tests.chaos.collecting_together"]
    async with weirpool.serve(publisher.service, PLACE, settings=Settings(resume_timeout=60.0)) as server:
        for kill in range(KILLS + 1):
            process = await asyncio.create_subprocess_exec(*command, server.urls[0], str(tmp_path), *SOURCES, cwd=ROOT)
            try:
                if kill < KILLS:
                    enough = (kill + 1) * TOTAL // (KILLS + 2)
                    await until(lambda least=enough: min(end(tmp_path, source) for source in SOURCES) >= least)
                    process.kill()
                else:
                    assert await asyncio.wait_for(process.wait(), 60) == 0
            finally:
                if process.returncode is None:
                    process.kill()
                await process.wait()
            relied = relied or left(tmp_path)
    assert relied
    assert {source: rows(tmp_path, source) for source in SOURCES} == {source: list(range(TOTAL)) for source in SOURCES}
    assert [Journal(tmp_path).reader(source).gaps() for source in SOURCES] == [[], [], []]
    assert publisher.began == len(SOURCES)
    # Dead processes leave nothing that is not removed.
    assert not left(tmp_path)
