"""The collector and River's sessions, which it takes over without being asked."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import weirpool
from tests.journal.publishing import (
    RIVER,
    RIVER_ROUTE,
    ROUTE,
    URL,
    Publisher,
    collecting,
    cut,
    gaps,
    numbered,
    rows,
)
from tests.waiting import until
from weirpool import Settings
from weirpool.errors import SetupRejected
from weirpool.journal import collect, progress
from weirpool.journal.collect import Collector
from weirpool.settings import DEFAULT_SETTINGS

pytestmark = pytest.mark.usefixtures("no_waiting")


# River, whose sessions are taken over without being asked.


def river(journal: Path, settings: Settings = DEFAULT_SETTINGS) -> Collector:
    return Collector(RIVER, RIVER_ROUTE, journal, source=ROUTE, settings=settings)


async def test_river_session_survives_a_link_and_a_process(tmp_path: Path) -> None:
    stops = [asyncio.Event() for _ in range(3)]
    publisher = Publisher(*numbered(0, 100), stops[0], *numbered(100, 200), stops[1], *numbered(200, 9_000), stops[2])
    async with publisher.serve(url=RIVER) as server:
        first = river(tmp_path)
        async with collecting(first):
            await until(lambda: first.progress.position == 100)
            cut(server)
            stops[0].set()
            await until(lambda: first.progress.position == 200)
        stops[1].set()
        stops[2].set()
        second = river(tmp_path)
        await second.run()
    assert (second.progress.rows, publisher.began) == (8_800, 1)
    assert (rows(tmp_path), gaps(tmp_path)) == (numbered(0, 9_000), [])


@pytest.mark.parametrize("alive", [True, False], ids=["collector lives", "collector was stopped"])
async def test_restarted_river_server_leaves_a_gap(tmp_path: Path, alive: bool) -> None:
    collector = river(tmp_path)
    before = await Publisher(*numbered(0, 5), asyncio.Event()).serve(url=RIVER)
    async with collecting(collector) as task:
        await until(lambda: collector.progress.position == 5)
        if not alive:
            task.cancel()
            await asyncio.wait([task])
            collector = river(tmp_path)
        await before.close()
        async with Publisher(*numbered(7, 10)).serve(url=RIVER):
            await (task if alive else collector.run())
    assert rows(tmp_path) == numbered(0, 5) + numbered(7, 10)
    ((position, reason),) = gaps(tmp_path)
    assert (position, collector.progress.gaps) == (5, 1)
    assert "SESSION_STATE_MISMATCH" in reason


@pytest.mark.parametrize("codec", ["", "?codec=msgpack"])
@pytest.mark.parametrize("passing", [0, 3, 20])
async def test_stop_before_the_first_answer_leaves_no_gap(tmp_path: Path, codec: str, passing: int) -> None:
    # The publisher has begun no stream.
    publisher, held = Publisher(*numbered(0, 5)), asyncio.Event()

    async with publisher.serve(url=f"river+tcp://127.0.0.1:0{codec}") as server:
        port = int(server.urls[0].partition("?")[0].rpartition(":")[2])

        async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            """Pass the set-up on, and only some bytes of the answer."""
            answers, onward = await asyncio.open_connection("127.0.0.1", port)
            onward.write(await reader.read(1 << 16))
            writer.write((await answers.read(1 << 16))[:passing])
            held.set()
            await reader.read()
            onward.close()
            writer.close()

        async with await asyncio.start_server(hold, "127.0.0.1") as between:
            near = between.sockets[0].getsockname()[1]
            async with collecting(
                Collector(f"river+tcp://127.0.0.1:{near}{codec}", RIVER_ROUTE, tmp_path, source=ROUTE)
            ):
                await held.wait()
        await Collector(server.urls[0], RIVER_ROUTE, tmp_path, source=ROUTE).run()
    assert (rows(tmp_path), gaps(tmp_path), publisher.began) == (numbered(0, 5), [], 1)


async def test_river_session_is_tried_after_its_grace_period(tmp_path: Path) -> None:
    released = asyncio.Event()
    collector = river(tmp_path, Settings(session_grace=0))
    publisher = Publisher(*numbered(0, 5), released, *numbered(5, 10))
    async with publisher.serve(url=RIVER) as server, collecting(collector) as task:
        await until(lambda: collector.progress.position == 5)
        cut(server)
        released.set()
        await task
    assert (rows(tmp_path), gaps(tmp_path)) == (numbered(0, 10), [])


async def test_unrequested_river_items_are_kept_when_space_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "FIRST_WINDOW", 4)
    monkeypatch.setattr(progress, "WINDOW_BYTES", 400)
    publisher = Publisher(*numbered(1_000, 1_100, 0), asyncio.Event())
    async with publisher.serve(url=RIVER):
        for stop in range(1, 10):
            collector = river(tmp_path)
            async with collecting(collector) as task:
                await until(lambda stop=stop, at=collector.progress: at.position >= 10 * stop)
                assert not task.done()
    assert rows(tmp_path) == numbered(1_000, 1_000 + len(rows(tmp_path)))
    assert gaps(tmp_path) == [] and publisher.began == 1


async def test_river_server_refusal_is_raised(tmp_path: Path) -> None:
    def check(setup: weirpool.Setup) -> None:
        raise SetupRejected("not you", "REJECTED_BY_CUSTOM_HANDLER")

    async with weirpool.serve(Publisher().service, RIVER, acceptor=check):
        with pytest.raises(SetupRejected, match="not you"):
            await river(tmp_path).run()
    assert gaps(tmp_path) == []


@pytest.mark.parametrize(("url", "route"), [(URL, ROUTE), (RIVER, RIVER_ROUTE)])
async def test_checkpoint_is_renewed_when_no_items_arrive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: list[str], url: str, route: str
) -> None:
    monkeypatch.setattr(collect, "RENEWAL", 0.0)
    monkeypatch.setattr(collect, "FIRST_RENEWAL", 0.0)
    steps = ["cover", "append", "durable", "report"]
    async with Publisher(asyncio.Event()).serve(url=url), collecting(Collector(url, route, tmp_path)):
        await until(lambda: len(log) >= 4 * len(steps))
        assert log[: 4 * len(steps)] == 4 * steps
