"""Collectors that are late to take over the session of an earlier process: what came meanwhile is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop

import weirpool
from tests.chaos.lateness import be_late
from tests.chaos.test_collector import HEARTBEATS, ROUTE, Publisher, Victim
from tests.waiting import until
from weirpool.journal import Journal
from weirpool.journal.collect import Collector
from weirpool.urls import fitting

PLACES = [
    "rsocket+tcp://127.0.0.1:0",
    "reactivesocket-0.2+tcp://127.0.0.1:0",
    "river+tcp://127.0.0.1:0",
]
CREDIT = 40
TOTAL = 4_000
KILLED_AT = 300
LATE = 100


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("place", PLACES)
def test_a_collector_keeps_what_came_before_it_adopted_its_stream(
    tmp_path: Path, place: str, loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    # THREATS 96
    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(asyncio.wait_for(stopped_and_late(tmp_path, place), 60))


async def stopped_and_late(journal: Path, place: str) -> None:
    """Stop a collector, use up all of its credit, and let the next one be late."""
    publisher = Publisher()
    publisher.limit = 2 * CREDIT
    async with weirpool.serve(publisher.service, place, settings=fitting(HEARTBEATS, place, serving=True)) as server:

        def collector() -> Collector:
            return Collector(server.urls[0], ROUTE, journal, credit=CREDIT)

        first = asyncio.create_task(collector().run())
        await until(lambda: end(journal) >= publisher.limit)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        # As much as was asked for, and it is all under way when the next collector comes.
        publisher.go_on(publisher.limit + 2 * CREDIT)
        with pytest.MonkeyPatch.context() as monkeypatch:
            be_late(monkeypatch, CREDIT // 2)
            second = asyncio.create_task(collector().run())
            await until(lambda: second.done() or end(journal) >= publisher.limit)
            second.cancel()
            await asyncio.gather(second, return_exceptions=True)
        reader = Journal(journal).reader(ROUTE)
        rows = [int(value) for batch in reader.read(0, reader.end) for value in batch["data"].to_pylist()]
        assert rows == list(range(4 * CREDIT))
        assert reader.gaps() == []
        assert publisher.began == 1


def end(journal: Path) -> int:
    """Return how many items are in the journal."""
    return Victim("", journal).end


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
async def test_a_collector_that_is_killed_loses_nothing_to_a_late_one(tmp_path: Path, place: str) -> None:
    # THREATS 96
    publisher = Publisher(TOTAL)
    publisher.limit = KILLED_AT + 2 * LATE
    async with weirpool.serve(publisher.service, place, settings=fitting(HEARTBEATS, place, serving=True)) as server:
        victim = Victim(server.urls[0], tmp_path)
        try:
            await victim.start()
            await until(lambda: victim.end > KILLED_AT)
            await victim.kill()
            publisher.go_on(TOTAL)
            process = await victim.start(LATE)
            assert await process.wait() == 0
        finally:
            await victim.kill()
    assert victim.rows() == list(range(TOTAL))
    assert victim.gaps() == []
    assert publisher.began == 1
