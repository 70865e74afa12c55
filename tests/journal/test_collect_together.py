"""Several feeds of one process."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.journal.publishing import ROUTE, URL, Publisher, numbered
from tests.waiting import until
from weirpool.journal import Journal
from weirpool.journal.collect import Collector
from weirpool.journal.committer import Committer
from weirpool.journal.progress import Phase
from weirpool.journal.replay import REDO

SOURCES = ("a", "b", "c")


def held(journal: Path, source: str) -> list[bytes]:
    reader = Journal(journal).reader(source)
    return [value for batch in reader.read(reader.first, reader.end) for value in batch["data"].to_pylist()]


async def test_feeds_that_share_a_committer(tmp_path: Path) -> None:
    steps = [asyncio.Event() for _ in range(4)]
    publisher = Publisher(*[step for at, event in enumerate(steps) for step in (*numbered(at, at + 1), event)])
    committer = Committer(tmp_path)
    feeds = [Collector(URL, ROUTE, tmp_path, source=source, linger=0.01, committer=committer) for source in SOURCES]
    async with publisher.serve():
        tasks = [asyncio.create_task(feed.run()) for feed in feeds]
        for at, event in enumerate(steps):
            await until(lambda least=at: all(feed.progress.rows > least for feed in feeds))
            assert {feed.progress.phase for feed in feeds} == {Phase.LIVE}
            event.set()
        await asyncio.gather(*tasks)
        assert committer.feeds == 0
        # Batches were synced together.
        assert len(list((tmp_path / REDO).iterdir())) == 1
        await committer.close()
    assert list((tmp_path / REDO).iterdir()) == []
    assert [held(tmp_path, source) for source in SOURCES] == [numbered(0, 4)] * 3
    progress = feeds[0].progress
    assert (progress.phase, progress.reconnects) == (Phase.COMPLETE, 0)
    assert progress.syncs >= 4
    assert progress.sync_seconds > 0


async def test_a_feed_that_is_stopped_leaves_the_others_alone(tmp_path: Path) -> None:
    more = asyncio.Event()
    publisher = Publisher(b"1", more, b"2")
    committer = Committer(tmp_path)
    feeds = [Collector(URL, ROUTE, tmp_path, source=source, linger=0.01, committer=committer) for source in SOURCES]
    async with publisher.serve():
        stopped, *others = [asyncio.create_task(feed.run()) for feed in feeds]
        await until(lambda: all(feed.progress.rows for feed in feeds))
        stopped.cancel()
        await asyncio.gather(stopped, return_exceptions=True)
        assert feeds[0].progress.phase is Phase.STOPPED
        more.set()
        await asyncio.gather(*others)
        await feeds[0].run()
        await committer.close()
    assert [held(tmp_path, source) for source in SOURCES] == [[b"1", b"2"]] * 3
