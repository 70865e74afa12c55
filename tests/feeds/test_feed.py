from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pyarrow as pa
import pytest

from tests.feeds.helpers import QUICK, config, items
from tests.journal.publishing import Publisher, cut, numbered
from tests.waiting import until
from weirpool.aio import reconnect
from weirpool.aio.dialer import Dialer
from weirpool.aio.driver import Driver
from weirpool.errors import ConnectError, JournalError
from weirpool.feeds import feed as modules
from weirpool.feeds.config import Auth
from weirpool.feeds.feed import Feed
from weirpool.feeds.retry import Retry
from weirpool.feeds.shared import Shared
from weirpool.feeds.status import FeedState
from weirpool.feeds.values import Seconds
from weirpool.journal import ITEMS, JournalWriter
from weirpool.journal.collect import Collector
from weirpool.journal.progress import Phase


@asynccontextmanager
async def running(feed: Feed) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(feed.run())
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_feed_is_collected_until_it_is_complete(tmp_path: Path) -> None:
    held = asyncio.Event()
    feed = Feed("a", config(tmp_path), tmp_path, Shared())
    assert feed.status().state is FeedState.CONNECTING
    async with Publisher(*numbered(0, 5), held, b"5").serve(), running(feed) as task:
        await until(lambda: feed.status().rows == 5)
        status = feed.status()
        assert (status.state, status.reason, status.position, status.gaps) == (FeedState.LIVE, "", 5, 0)
        assert status.credit > 0
        assert status.bytes == 5
        assert status.sync_seconds > 0
        held.set()
        await task
    status = feed.status()
    assert (status.state, status.credit, status.rows, status.restarts) == (FeedState.COMPLETE, 0, 6, 0)
    assert items(tmp_path, "a") == numbered(0, 6)


async def test_feed_is_tried_again_until_its_publisher_accepts_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    publisher = Publisher(ValueError("broken \x1b[2J <script>"))
    feed = Feed("a", config(tmp_path), tmp_path, Shared())
    async with publisher.serve(), running(feed) as task:
        await until(lambda: feed.status().restarts >= 3)
        status = feed.status()
        assert status.state is FeedState.REFUSED
        # A peer's text cannot steer a terminal.
        assert "\x1b" not in status.reason
        held = asyncio.Event()
        publisher.steps[:] = [*numbered(0, 3), held]
        await until(lambda: feed.status().state is FeedState.LIVE)
        assert feed.status().reason == ""
        held.set()
        await task
    assert items(tmp_path, "a") == numbered(0, 3)
    # The same error again is not news.
    assert len([record for record in caplog.records if record.levelno == logging.WARNING]) == 1


async def test_refusal_of_a_log_names_no_position(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A collector that cannot open its log does not know where it ends."""
    with JournalWriter.open(tmp_path, "a", fsync=False) as writer:
        writer.append(pa.record_batch([[b"0"], [None]], schema=ITEMS), "numbers")
        feed = Feed("a", config(tmp_path), tmp_path, Shared())
        async with Publisher(b"0").serve(), running(feed):
            await until(lambda: feed.status().restarts >= 1)
    assert caplog.records[-1].getMessage().startswith("a: refused: ")


async def test_feed_without_server_connects(tmp_path: Path) -> None:
    feed = Feed("a", config(tmp_path), tmp_path, Shared())
    async with running(feed) as task:
        await until(lambda: feed.status().restarts >= 2)
        assert feed.status().state is FeedState.CONNECTING
        assert feed.status().reason
        async with Publisher(b"0").serve():
            await task
    assert feed.status().state is FeedState.COMPLETE


async def test_feed_gives_up_when_its_policy_does(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    retry = Retry(first=Seconds(0.001), longest=Seconds(0.001), give_up_after=Seconds(0))
    feed = Feed("a", config(tmp_path, retry=retry), tmp_path, Shared())
    await feed.run()
    assert feed.status().state is FeedState.STOPPED
    assert "no item for 0 s, and then: " in feed.status().reason
    assert caplog.records[-1].levelno == logging.ERROR


async def test_items_close_the_circuit_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(modules, "monotonic", lambda: now)
    retry = Retry(first=Seconds(0.001), longest=Seconds(0.001), give_up_after=Seconds(50))
    feed = Feed("a", config(tmp_path, retry=retry), tmp_path, Shared())
    publisher = Publisher(b"0", ValueError("ends"))
    async with publisher.serve(), running(feed) as task:
        for _ in range(5):
            restarts = feed.status().restarts
            await until(lambda restarts=restarts: feed.status().restarts > restarts)
            now += 40
        assert feed.status().state is not FeedState.STOPPED
        publisher.steps[:] = [ValueError("ends at once")]
        await until(lambda: feed.status().reason != "" and publisher.began > 7)
        now += 60
        await task
    assert feed.status().state is FeedState.STOPPED


async def test_counters_go_on_over_restarts(tmp_path: Path) -> None:
    publisher = Publisher(*numbered(0, 4), ValueError("ends"))
    feed = Feed("a", config(tmp_path), tmp_path, Shared())
    async with publisher.serve(), running(feed):
        await until(lambda: feed.status().restarts >= 3)
        status = feed.status()
        assert status.rows >= 12
        assert status.rows % 4 == 0
        assert status.position >= 12
        assert status.gaps >= 3


async def test_missing_secret_is_a_refusal_until_it_is_there(tmp_path: Path) -> None:
    feed = Feed("a", config(tmp_path, auth=Auth(file="token")), tmp_path, Shared())
    async with Publisher(b"0").serve(), running(feed) as task:
        await until(lambda: feed.status().restarts >= 2)
        assert feed.status().state is FeedState.REFUSED
        assert "auth: cannot read" in feed.status().reason
        (tmp_path / "token").write_text("bearer:x")
        await task
    assert feed.status().state is FeedState.COMPLETE


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (JournalError("the disk failed"), FeedState.WAITING_FOR_DISK),
        (OSError("no descriptors"), FeedState.REFUSED),
        (ZeroDivisionError("a defect"), FeedState.REFUSED),
    ],
)
async def test_no_error_ends_a_feed(
    error: Exception, state: FeedState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(collector: Collector) -> None:
        raise error

    monkeypatch.setattr(Collector, "run", fail)
    feed = Feed("a", config(tmp_path), tmp_path, Shared())
    async with running(feed) as task:
        await until(lambda: feed.status().restarts >= 2)
        assert not task.done()
        assert feed.status().state is state
        assert str(error) in feed.status().reason


async def test_locked_log_is_a_refusal(tmp_path: Path) -> None:
    feed = Feed("a", config(tmp_path), tmp_path, Shared())
    with JournalWriter.open(tmp_path, "a", fsync=False):
        async with Publisher(b"0").serve(), running(feed):
            await until(lambda: feed.status().restarts >= 1)
            assert feed.status().state is FeedState.REFUSED


async def test_used_up_budget_is_a_state(tmp_path: Path) -> None:
    feed = Feed("a", config(tmp_path, budget=1, credit=2, retry=QUICK), tmp_path, Shared())
    async with Publisher(*numbered(0, 100)).serve(), running(feed):
        await until(lambda: feed.status().state is FeedState.WAITING_FOR_BUDGET)
        assert "budget is used up" in feed.status().reason


async def test_batches_are_passed_on_when_they_are_durable(tmp_path: Path) -> None:
    seen: list[tuple[str, int, list[bytes]]] = []

    def on_batch(first: int, batch: pa.RecordBatch) -> None:
        assert items(tmp_path, "a")[first : first + batch.num_rows] == batch["data"].to_pylist()
        seen.append((first, batch["data"].to_pylist()))

    feed = Feed("a", config(tmp_path), tmp_path, Shared(lambda name: on_batch))
    async with Publisher(*numbered(0, 3)).serve():
        await feed.run()
    assert seen == [(0, numbered(0, 3))]


async def test_the_log_says_when_a_feed_is_live(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "weirpool.feeds")
    held = asyncio.Event()
    publisher = Publisher(*numbered(0, 3), held)
    feed = Feed("a", config(tmp_path), tmp_path, Shared())
    feed.log_changes()
    async with publisher.serve(), running(feed) as task:
        await until(lambda: feed.status().position == 3)
        feed.log_changes()
        feed.log_changes()
        feed._progress.turn(Phase.WAITING_FOR_BUDGET)
        feed.log_changes()
        feed._progress.turn(Phase.LIVE)
        feed.log_changes()
        assert caplog.messages == ["a: live at position 3"]
        feed._progress.turn(Phase.CONNECTING)
        feed.log_changes()
        feed._progress.turn(Phase.LIVE)
        feed.log_changes()
        held.set()
        await task
        feed.log_changes()
    assert caplog.messages == ["a: live at position 3"] * 2 + ["a: complete at position 3"]


async def test_outage_is_shown_while_the_session_may_continue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    down, attempts = True, 0
    link = Dialer.link

    async def linked(dialer: Dialer, driver: Driver) -> None:
        nonlocal attempts
        attempts += 1
        if down and attempts > 1:
            raise ConnectError("the network is down")
        await link(dialer, driver)

    monkeypatch.setattr(Dialer, "link", linked)
    monkeypatch.setattr(reconnect, "MAX_RESUME_DELAY", 0.001)
    caplog.set_level(logging.INFO)
    held = asyncio.Event()
    feed = Feed("a", config(tmp_path), tmp_path, Shared())
    async with Publisher(*numbered(0, 5), held, b"5").serve() as server, running(feed) as task:
        await until(lambda: feed.status().rows == 5)
        feed.log_changes()
        cut(server)
        await until(lambda: attempts > 9)
        status = feed.status()
        assert (status.state, status.credit, status.reconnects) == (FeedState.CONNECTING, 0, 1)
        assert status.reason == "the connection broke; the collector tries to resume the session"
        feed.log_changes()
        feed.log_changes()
        down = False
        await until(lambda: feed.status().state is FeedState.LIVE)
        feed.log_changes()
        held.set()
        await task
    assert (feed.status().rows, feed.status().gaps, feed.status().reconnects) == (6, 0, 1)
    told = [record.getMessage() for record in caplog.records if record.name == "weirpool.feeds"]
    assert told[0] == "a: live at position 5"
    assert told[1].startswith("a: connecting at position 5: the connection broke")
    assert told[2] == "a: live at position 5"
    # An outage is one line, however many attempts it takes.
    assert len([record for record in caplog.records if "the network is down" in record.getMessage()]) == 1
