from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.feeds.helpers import Announced, feeds, items
from tests.journal.publishing import Publisher, numbered
from tests.waiting import until
from weirpool.feeds import workers as modules
from weirpool.feeds.sharing import worker_of
from weirpool.feeds.status import FeedState
from weirpool.feeds.workers import Workers

NAMES = ("a", "b", "c", "d")


@asynccontextmanager
async def working(board: Announced, count: int) -> AsyncIterator[Workers]:
    workers = Workers(board, count, "text")
    try:
        yield workers
    finally:
        pids = workers.pids
        assert await workers.stop() == []
        for pid in pids:
            with pytest.raises(ProcessLookupError):
                os.kill(pid, 0)


@pytest.mark.slow
async def test_feeds_are_shared_and_survive_their_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(modules, "FIRST_DELAY", 0.01)
    held = asyncio.Event()
    publisher = Publisher(*numbered(0, 5), held, *numbered(5, 9))
    board = Announced(workers=2)
    assert {worker_of(name, 2) for name in NAMES} == {0, 1}
    async with publisher.serve(url="rsocket+tcp://127.0.0.1:0") as server, working(board, 2) as workers:
        lines = [f'{name} url = "{server.urls[0]}"' for name in NAMES]
        await workers.apply(feeds(tmp_path, *lines))
        await board.until(lambda now: sorted(now) == list(NAMES) and all(feed.rows == 5 for feed in now.values()))
        assert {feed.name: feed.worker for feed in board.document().feeds} == {
            name: worker_of(name, 2) for name in NAMES
        }
        os.kill(workers.pids[0], signal.SIGKILL)
        lost = [name for name in NAMES if worker_of(name, 2) == 0]
        await board.until(lambda now: all(now[name].state is FeedState.LIVE and now[name].rows == 0 for name in lost))
        assert "worker 0 ended with -9" in caplog.text
        # Another version of the file reaches all workers.
        await workers.apply(feeds(tmp_path, *lines[1:], f'fresh url = "{server.urls[0]}"'))
        await board.until(lambda now: sorted(now) == ["b", "c", "d", "fresh"] and now["fresh"].rows == 5)
        held.set()
        await board.until(lambda now: all(feed.state is FeedState.COMPLETE for feed in now.values()))
    for name in ("b", "c", "d", "fresh"):
        assert items(tmp_path / "journal", name) == numbered(0, 9)


async def test_line_that_is_not_a_report_is_ignored(caplog: pytest.LogCaptureFixture) -> None:
    board = Announced()
    workers = Workers(board, 1, "text")
    process = await asyncio.create_subprocess_exec("printf", r"noise\n[]\n", stdout=asyncio.subprocess.PIPE)
    assert await workers._relay(0, process) == 1
    assert await process.wait() == 0
    assert "worker 0 wrote a line that is not a report" in caplog.text


async def test_worker_that_cannot_be_started_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(modules, "FIRST_DELAY", 0.001)
    monkeypatch.setattr(modules, "LONGEST_DELAY", 0.001)

    async def fail(*arguments: object, **options: object) -> None:
        raise OSError("no more processes")

    monkeypatch.setattr(asyncio, "create_subprocess_exec", fail)
    workers = Workers(Announced(), 1, "text")
    await workers.apply(feeds(tmp_path, "a"))
    await until(lambda: caplog.text.count("worker 0 cannot be started: no more processes") > 1)
    assert await workers.stop() == []
