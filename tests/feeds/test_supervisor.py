from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest

import weirpool
from tests.feeds.helpers import feeds, items
from tests.journal.publishing import HeldWrites, Publisher, numbered
from tests.sim import clockwork
from tests.waiting import until
from weirpool import Service, Settings
from weirpool.feeds import supervisor as supervisors
from weirpool.feeds.feed import Feed
from weirpool.feeds.process import FILES_PER_FEED, THREADS, use_threads
from weirpool.feeds.status import FeedState, FeedStatus
from weirpool.feeds.supervisor import Supervisor
from weirpool.ledger import LEDGER


@asynccontextmanager
async def supervising(**options: Any) -> AsyncIterator[Supervisor]:
    supervisor = Supervisor(**options)
    try:
        yield supervisor
    finally:
        await supervisor.stop()


def by_name(supervisor: Supervisor) -> dict[str, FeedStatus]:
    return {status.name: status for status in supervisor.statuses()}


def states(supervisor: Supervisor) -> dict[str, FeedState]:
    return {name: status.state for name, status in by_name(supervisor).items()}


async def test_bad_feed_hurts_only_itself(tmp_path: Path) -> None:
    file = feeds(
        tmp_path, "good", 'bad route = "nowhere"', 'refused url = "rsocket+memory://nobody"', "wrong budget = 0"
    )
    async with Publisher(*numbered(0, 9), asyncio.Event()).serve(), supervising() as supervisor:
        await supervisor.apply(file)
        await until(lambda: by_name(supervisor)["good"].rows == 9 and by_name(supervisor)["bad"].restarts > 3)
        assert states(supervisor) == {
            "good": FeedState.LIVE,
            "bad": FeedState.REFUSED,
            "refused": FeedState.CONNECTING,
            "wrong": FeedState.REFUSED,
        }
        assert "budget: 0 is not valid" in by_name(supervisor)["wrong"].problem


async def test_only_changed_feeds_are_restarted(tmp_path: Path) -> None:
    publisher = Publisher(*numbered(0, 3), asyncio.Event())
    async with publisher.serve(), supervising() as supervisor:
        await supervisor.apply(feeds(tmp_path, "same", "other", "gone"))
        await until(lambda: all(status.rows == 3 for status in supervisor.statuses()))
        same, other = supervisor._feeds["same"], supervisor._feeds["other"]
        await supervisor.apply(feeds(tmp_path, "same", "other credit = 7", "fresh"))
        assert supervisor._feeds["same"] is same
        assert supervisor._feeds["other"] is not other
        await until(lambda: states(supervisor) == dict.fromkeys(("same", "other", "fresh"), FeedState.LIVE))
        await until(lambda: by_name(supervisor)["fresh"].rows == 3)
        # The changed feed has resumed its session.
        assert publisher.began == 4
        assert by_name(supervisor)["other"].gaps == 0
        assert by_name(supervisor)["other"].position == 3


async def test_feed_with_an_error_goes_on_as_before(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with Publisher(*numbered(0, 3), asyncio.Event()).serve(), supervising() as supervisor:
        await supervisor.apply(feeds(tmp_path, "a", "b"))
        await until(lambda: by_name(supervisor)["a"].rows == 3)
        feed = supervisor._feeds["a"]
        await supervisor.apply(feeds(tmp_path, 'a budget = "much"', "b"))
        assert supervisor._feeds["a"] is feed
        status = by_name(supervisor)["a"]
        assert (status.state, status.rows) == (FeedState.LIVE, 3)
        assert "budget: 'much' is not valid" in status.problem
        assert "budget: 'much' is not valid" in caplog.text
        await supervisor.apply(feeds(tmp_path, "a", "b"))
        assert by_name(supervisor)["a"].problem == ""
        assert supervisor._feeds["a"] is feed


async def test_supervisor_runs_its_share(tmp_path: Path) -> None:
    supervisor = Supervisor(share=lambda name: name in ("a", "bad"))
    await supervisor.apply(feeds(tmp_path, "a", "b", "bad budget = 0", "worse budget = 0"))
    assert sorted(states(supervisor)) == ["a", "bad"]
    await supervisor.stop()


async def test_statuses_are_reported(tmp_path: Path) -> None:
    reports: list[list[FeedStatus]] = []
    supervisor = Supervisor(reports.append)
    await supervisor.apply(feeds(tmp_path, "a"))
    supervisor.publish()
    assert [[status.name for status in report] for report in reports] == [["a"]]
    await supervisor.stop()


async def test_stopping_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisors, "STOP_SECONDS", 0.01)
    gate = HeldWrites(monkeypatch)
    async with Publisher(*numbered(0, 3)).serve():
        supervisor = Supervisor()
        await supervisor.apply(feeds(tmp_path, "stuck", 'idle url = "rsocket+memory://nobody"'))
        await until(lambda: gate.reached)
        [task] = [task for name, task in supervisor._tasks.items() if name == "stuck"]
        assert await supervisor.stop() == ["stuck"]
        assert supervisor.statuses() == []
        gate.open()
        await asyncio.wait([task])
    # What the disk held is written, however many items had arrived then.
    written = items(tmp_path / "journal", "stuck")
    assert written and written == numbered(0, len(written))


@pytest.mark.parametrize(("seconds", "left"), [(0.5, 0), (4.0, 0), (15.0, 29)])
def test_many_logs_may_take_long_to_close_while_each_of_them_does(
    seconds: float, left: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The first one closes at once, and each other one needs so many seconds of the disk."""
    disk = asyncio.Lock()
    reports: list[int] = []

    async def run(feed: Feed) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            async with disk:
                await asyncio.sleep(0 if feed.name == "f00" else seconds)

    async def main() -> list[str]:
        supervisor = Supervisor(lambda statuses: reports.append(len(statuses)))
        await supervisor.apply(feeds(tmp_path, *(f"f{number:02}" for number in range(30))))
        await asyncio.sleep(0)
        return await supervisor.stop()

    monkeypatch.setattr(Feed, "run", run)
    caplog.set_level(logging.INFO)
    late = clockwork.run(main())
    assert len(late) == left
    assert ("29 logs not closed, and none in the last 10 s; check the disk: f01, f02" in caplog.text) == bool(left)
    assert ("f10 and 19 more" in caplog.text) == bool(left)
    assert "still closing" in caplog.text
    assert set(reports) == {30}


async def test_crowd_of_fast_feeds_fits_into_memory(tmp_path: Path) -> None:
    service = Service()
    item = bytes(16_384)

    @service.stream("numbers")
    def numbers(request: weirpool.Payload) -> Iterator[bytes]:
        return repeat(item)

    names = [f"f{number}" for number in range(40)]
    async with weirpool.serve(service, "rsocket+memory://publisher", settings=Settings(close_grace=0)):
        held: list[int] = []
        seen = dict.fromkeys(names, 0)
        collected = asyncio.Event()

        def counted(name: str, batch: Any) -> None:
            held.append(LEDGER.snapshot().held_bytes)
            seen[name] += batch.num_rows
            if min(seen.values()) > 500:
                collected.set()

        hooks = supervising(on_batch=lambda name: lambda position, batch: counted(name, batch))
        async with hooks as supervisor:
            await supervisor.apply(feeds(tmp_path, *names))
            # Looking at all statuses in each turn would take the processor from the threads that write.
            await collected.wait()
            assert max(held) < Settings().max_identity_bytes
            # No stream had to pay for memory with its items.
            assert sum(status.gaps + status.restarts for status in supervisor.statuses()) == 0


@pytest.mark.slow
async def test_hundreds_of_feeds_in_one_process(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    service = Service()
    crowd: list[int] = []
    open_streams = 0

    @service.stream("numbers")
    async def numbers(request: weirpool.Payload) -> AsyncIterator[bytes]:
        nonlocal open_streams
        open_streams += 1
        crowd.append(open_streams)
        yield b"first"
        await asyncio.get_running_loop().create_future()

    use_threads()
    names = [f"f{number}" for number in range(500)]
    settings = Settings(max_connections_per_address=1_000, close_grace=0)
    before, threads_before = len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))
    caplog.set_level(logging.CRITICAL)
    stored: list[int] = []
    counting = supervising(on_batch=lambda name: lambda position, batch: stored.append(position))
    async with weirpool.serve(service, "rsocket+memory://publisher", settings=settings), counting as supervisor:
        await supervisor.apply(feeds(tmp_path, *names))
        # Looking at all statuses in each turn would take longer than collecting.
        await until(lambda: len(stored) == len(names))
        await until(lambda: all(status.rows == 1 for status in supervisor.statuses()))
        assert states(supervisor) == dict.fromkeys(names, FeedState.LIVE)
        assert len(os.listdir("/proc/self/fd")) - before < FILES_PER_FEED * len(names)
        # Earlier tests may have left theirs, which end at any time.
        assert len(os.listdir("/proc/self/task")) - threads_before <= THREADS + 16
    assert all(items(tmp_path / "journal", name) == [b"first"] for name in names)
