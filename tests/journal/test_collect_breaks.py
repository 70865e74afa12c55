"""The collector when something breaks: links, publishers, or the collector itself."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.journal.publishing import (
    NO_RESUME,
    RIVER,
    RIVER_ROUTE,
    ROUTE,
    URL,
    HeldWrites,
    Publisher,
    collecting,
    cut,
    gaps,
    numbered,
    rows,
)
from tests.waiting import turns, until
from weirpool import ApplicationError, ConnectError, Payload, Settings
from weirpool.aio.dialer import Dialer
from weirpool.aio.driver import Driver
from weirpool.errors import SetupRejected
from weirpool.events import ItemReceived
from weirpool.journal import Journal, collect, progress
from weirpool.journal.collect import Collector
from weirpool.settings import DEFAULT_SETTINGS

pytestmark = pytest.mark.usefixtures("no_waiting")


# What breaks.


async def test_collector_raises_connect_error_at_first_try(tmp_path: Path) -> None:
    with pytest.raises(ConnectError):
        await Collector(URL, ROUTE, tmp_path).run()


async def test_a_connection_that_breaks_loses_nothing(tmp_path: Path) -> None:
    first, second = asyncio.Event(), asyncio.Event()
    publisher = Publisher(*numbered(0, 100), first, *numbered(100, 200), second, *numbered(200, 300))
    collector = Collector(URL, ROUTE, tmp_path)
    async with publisher.serve() as server, collecting(collector) as task:
        for stop, position in ((first, 100), (second, 200)):
            await until(lambda position=position: collector.progress.position == position)
            cut(server)
            stop.set()
        await task
    assert (rows(tmp_path), gaps(tmp_path)) == (numbered(0, 300), [])


@pytest.fixture
def drivers(monkeypatch: pytest.MonkeyPatch) -> list[Driver]:
    """The drivers of all sessions that collectors begin."""
    drivers: list[Driver] = []
    make = Dialer.driver

    def noted(dialer: Dialer) -> Driver:
        drivers.append(make(dialer))
        return drivers[-1]

    monkeypatch.setattr(Dialer, "driver", noted)
    return drivers


@pytest.mark.parametrize(("url", "route"), [(URL, ROUTE), (RIVER, RIVER_ROUTE)])
async def test_an_event_without_an_owner_becomes_a_gap(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    drivers: list[Driver],
    url: str,
    route: str,
) -> None:
    # THREATS 96
    released = asyncio.Event()
    collector = Collector(url, route, tmp_path, source=ROUTE)
    monkeypatch.setattr(collect, "RENEWAL", 0.01)
    publisher = Publisher(*numbered(0, 5), released, *numbered(5, 10))
    async with publisher.serve(url=url), collecting(collector) as task:
        await until(lambda: collector.progress.position == 5)
        # A defect that no test knows of.
        drivers[0].exchanges.inbound.clear()
        released.set()
        await task
    assert rows(tmp_path) == [*numbered(0, 5), *numbered(0, 10)]
    [(position, reason)] = gaps(tmp_path)
    assert position == 5
    assert "without ending its stream" in reason
    assert "arrived without an owner" in caplog.text


@pytest.mark.parametrize(("url", "route"), [(URL, ROUTE), (RIVER, RIVER_ROUTE)])
async def test_session_ended_by_another_stream_becomes_a_gap(
    tmp_path: Path, drivers: list[Driver], url: str, route: str
) -> None:
    forever, released = asyncio.Event(), asyncio.Event()
    collector = Collector(url, route, tmp_path, source=ROUTE)
    publisher = Publisher(*numbered(0, 5), released, forever)
    async with publisher.serve(url=url), collecting(collector) as task:
        await until(lambda: collector.progress.position == 5)
        publisher.steps = numbered(5, 10)
        drivers[0].dispatch.take([ItemReceived(99, Payload(b"x"), False)])
        drivers[0].flush()
        await task
    assert rows(tmp_path) == numbered(0, 10)
    [(position, reason)] = gaps(tmp_path)
    assert position == 5
    assert "stream 99: ItemReceived arrived without an owner" in reason


async def test_expired_session_is_still_resumed(tmp_path: Path) -> None:
    released = asyncio.Event()
    collector = Collector(URL, ROUTE, tmp_path, settings=Settings(resume_timeout=0))
    async with Publisher(*numbered(0, 5), released, *numbered(5, 10)).serve() as server, collecting(collector) as task:
        await until(lambda: collector.progress.position == 5)
        cut(server)
        released.set()
        await task
    assert (rows(tmp_path), gaps(tmp_path)) == (numbered(0, 10), [])


async def test_a_collector_that_was_stopped_goes_on_where_it_was(tmp_path: Path) -> None:
    released = asyncio.Event()
    publisher = Publisher(*numbered(0, 100), released, *numbered(100, 3_000))
    async with publisher.serve():
        first = Collector(URL, ROUTE, tmp_path)
        async with collecting(first):
            await until(lambda: first.progress.position == 100)
        released.set()
        # What is not complete is not begun anew.
        second = Collector(URL, ROUTE, tmp_path, again=True)
        await second.run()
    assert (second.progress.rows, publisher.began) == (2_900, 1)
    assert (rows(tmp_path), gaps(tmp_path)) == (numbered(0, 3_000), [])


async def test_stopped_collector_resumes_with_no_demand_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "FIRST_WINDOW", 5)
    publisher = Publisher(*numbered(0, 100, 1_000))
    async with publisher.serve():
        first, second = (Collector(URL, ROUTE, tmp_path, budget_bytes=10_000) for _ in range(2))
        async with collecting(first):
            await until(lambda: first.progress.waiting != "" and publisher.made == first.progress.position + 1)
        Journal(tmp_path).trim(ROUTE, first.progress.position, retain_bytes=0)
        async with collecting(second):
            await until(lambda: second.progress.rows > 0)


async def test_restarted_publisher_is_awaited_and_leaves_a_gap(tmp_path: Path) -> None:
    collector = Collector(URL, ROUTE, tmp_path)
    async with collecting(collector) as task:
        before = await Publisher(*numbered(0, 5), asyncio.Event()).serve()
        await until(lambda: collector.progress.position == 5)
        await before.close()
        # It is gone for several tries, and whoever looks is told.
        await turns(200)
        assert "collector tries again" in collector.progress.waiting
        async with Publisher(*numbered(7, 10)).serve():
            await task
    assert rows(tmp_path) == numbered(0, 5) + numbered(7, 10)
    assert [position for position, _ in gaps(tmp_path)] == [5]
    assert (collector.progress.gaps, collector.progress.waiting) == (1, "")


async def test_without_resuming_a_broken_connection_leaves_a_gap(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    publisher = Publisher(*numbered(0, 5), asyncio.Event())
    collector = Collector(URL, ROUTE, tmp_path)
    async with publisher.serve(NO_RESUME) as server, collecting(collector) as task:
        await until(lambda: collector.progress.position == 5)
        # That the publisher resumes nothing is no loss yet.
        assert (collector.progress.gaps, gaps(tmp_path)) == (0, [])
        assert "does not resume sessions; without resumption, a broken connection leaves a gap" in caplog.text
        publisher.steps = numbered(7, 10)
        cut(server)
        await task
    assert rows(tmp_path) == numbered(0, 5) + numbered(7, 10)
    ((position, reason),) = gaps(tmp_path)
    assert (position, collector.progress.gaps) == (5, 1)
    assert "connection" in reason
    assert f"a gap at position 5: {reason}" in caplog.text


@pytest.mark.parametrize(("protocol", "gap"), [("reactivesocket-0.2", False), ("reactivesocket-0.0", True)])
async def test_drafts_are_collected_with_a_gap_when_not_resumable(tmp_path: Path, protocol: str, gap: bool) -> None:
    hold = asyncio.Event()
    publisher = Publisher(*numbered(0, 5), hold, *numbered(5, 10))
    async with publisher.serve():
        url = URL.replace("rsocket", protocol)
        first = asyncio.ensure_future(Collector(url, ROUTE, tmp_path).run())
        await until(lambda: rows(tmp_path) == numbered(0, 5))
        first.cancel()
        await asyncio.wait([first])
        hold.set()
        await Collector(url, ROUTE, tmp_path).run()
    assert rows(tmp_path) == (numbered(0, 5) + numbered(0, 10) if gap else numbered(0, 10))
    assert [position for position, _ in gaps(tmp_path)] == ([5] if gap else [])


async def test_restarted_collector_leaves_a_gap_without_resumption(tmp_path: Path) -> None:
    publisher = Publisher(*numbered(0, 5), asyncio.Event())
    async with publisher.serve(NO_RESUME):
        first = Collector(URL, ROUTE, tmp_path)
        async with collecting(first):
            await until(lambda: first.progress.position == 5)
        publisher.steps = numbered(7, 10)
        await Collector(URL, ROUTE, tmp_path).run()
    assert rows(tmp_path) == numbered(0, 5) + numbered(7, 10)
    assert gaps(tmp_path) == [(5, "the collector was stopped, and its session cannot be resumed")]


@pytest.mark.parametrize("settings", [DEFAULT_SETTINGS, NO_RESUME], ids=["resumes", "resumes nothing"])
async def test_a_stream_that_fails_is_kept_up_to_there(tmp_path: Path, settings: Settings) -> None:
    publisher = Publisher(*numbered(0, 5), ApplicationError(0x301, "sold out"))
    collector = Collector(URL, ROUTE, tmp_path)
    async with publisher.serve(settings):
        with pytest.raises(ApplicationError, match="sold out"):
            await collector.run()
    assert rows(tmp_path) == numbered(0, 5)
    ((position, reason),) = gaps(tmp_path)
    assert (position, collector.progress.gaps) == (5, 1)
    assert reason.startswith("the publisher failed the stream") and "sold out" in reason


async def test_a_publisher_that_was_restarted_is_asked_again(tmp_path: Path) -> None:
    kept = Settings(resume_store=str(tmp_path / "sessions"))
    publisher = Publisher(*numbered(0, 5), asyncio.Event())
    collector = Collector(URL, ROUTE, tmp_path / "journal")
    async with publisher.serve(kept):
        task = asyncio.create_task(collector.run())
        await until(lambda: collector.progress.position == 5)
    publisher.steps = numbered(7, 10)
    async with publisher.serve(kept):
        await task
    assert rows(tmp_path / "journal") == numbered(0, 5) + numbered(7, 10)
    ((position, reason),) = gaps(tmp_path / "journal")
    assert position == 5 and "the publisher abandoned the stream" in reason and "restarted" in reason


async def test_stream_failed_while_stopped_leaves_a_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = HeldWrites(monkeypatch)
    publisher = Publisher(*numbered(0, 5), ApplicationError(0x301, "sold out"))
    async with publisher.serve():
        async with collecting(Collector(URL, ROUTE, tmp_path)) as task:
            await until(lambda: gate.reached)
            task.cancel()
            gate.open()
        publisher.steps = numbered(7, 10)
        await Collector(URL, ROUTE, tmp_path).run()
    assert rows(tmp_path) == numbered(0, 5) + numbered(7, 10)
    assert gaps(tmp_path) == [(5, "the stream had failed before the collector was stopped")]


async def test_broken_connection_is_noticed_when_budget_is_used_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "FIRST_WINDOW", 5)
    publisher = Publisher(*numbered(0, 1_000, 1_000))
    collector = Collector(URL, ROUTE, tmp_path, budget_bytes=10_000)
    async with publisher.serve(NO_RESUME) as server, collecting(collector):
        await until(
            lambda: "budget" in collector.progress.waiting and publisher.made == collector.progress.position + 1
        )
        cut(server)
        await until(lambda: collector.progress.gaps == 1)
    assert [position for position, _ in gaps(tmp_path)] == [collector.progress.position]


async def test_a_publisher_that_refuses_us_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def connect(url: str, *, settings: Settings, **others: object) -> None:
        asked.append(settings.resume)
        raise SetupRejected("go away")

    monkeypatch.setattr(collect, "connect", connect)
    with pytest.raises(SetupRejected, match="go away"):
        await Collector(URL, ROUTE, tmp_path).run()
    # It may have been the resuming that it would not have.
    assert (asked, gaps(tmp_path)) == ([True, False], [])
