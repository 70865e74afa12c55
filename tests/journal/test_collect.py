from __future__ import annotations

import asyncio
import gc
import os
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

import penstock
from penstock import ApplicationError, ConnectError, Payload, Settings
from penstock.aio.dialer import Dialer
from penstock.aio.driver import Driver
from penstock.checkpoints import join
from penstock.errors import DiskFull, JournalCorrupt, JournalLocked, SetupRejected
from penstock.events import ItemReceived
from penstock.journal import Journal, JournalWriter, collect
from penstock.journal.collect import Collector, State
from penstock.journal.feedlog import MAX_PRIVATE_BYTES
from penstock.journal.writer import MAX_STATE_BYTES
from penstock.settings import DEFAULT_SETTINGS
from tests.journal.publishing import (
    NO_RESUME,
    RIVER,
    RIVER_ROUTE,
    ROUTE,
    URL,
    FullDisk,
    Gate,
    Publisher,
    Reporter,
    collecting,
    cut,
    gaps,
    numbered,
    rows,
)
from tests.waiting import turns, until

pytestmark = pytest.mark.usefixtures("impatient")


# What is kept.


async def test_a_stream_is_kept_once_and_never_asked_for_again(tmp_path: Path) -> None:
    publisher = Publisher(*numbered(0, 3_000))
    collector = Collector(URL, ROUTE, tmp_path)
    async with publisher.serve():
        await collector.run()
    assert rows(tmp_path) == numbered(0, 3_000)
    progress = collector.progress
    assert (progress.rows, progress.position, progress.gaps, progress.waiting) == (3_000, 3_000, 0, "")
    assert progress.size == sum(map(len, numbered(0, 3_000)))
    # Nobody is asked: there is not even a publisher.
    await Collector(URL, ROUTE, tmp_path).run()


async def test_a_complete_stream_can_be_wanted_anew(tmp_path: Path) -> None:
    async with Publisher(*numbered(0, 3)).serve():
        await Collector(URL, ROUTE, tmp_path).run()
        await Collector(URL, ROUTE, tmp_path, again=True).run()
    assert rows(tmp_path) == 2 * numbered(0, 3)
    assert gaps(tmp_path) == []


# The order of things.


async def test_nothing_is_reported_before_it_is_durable(tmp_path: Path, log: list[str]) -> None:
    async with Publisher(*numbered(0, 3_000)).serve():
        await Collector(URL, ROUTE, tmp_path).run()
    steps = ["cover", "append", "durable", "report"]
    *all_but_last, last = [log[at : at + 4] for at in range(0, len(log), 4)]
    assert len(all_but_last) >= 2
    assert {tuple(each) for each in all_but_last} == {tuple(steps)}
    assert last in (steps, steps[:3])


async def test_a_checkpoint_with_half_an_item_in_it_is_not_kept(
    tmp_path: Path, log: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    swollen = [join(bytes(MAX_STATE_BYTES), b""), join(b"", bytes(MAX_PRIVATE_BYTES + 1))]

    def checkpoint(reporter: Reporter, stream: penstock.Stream, count: int) -> bytes | None:
        log.append("cover")
        return swollen.pop() if swollen and log.count("report") else reporter.peer.checkpoint(stream, count)

    monkeypatch.setattr(Reporter, "checkpoint", checkpoint)
    async with Publisher(*numbered(0, 3)).serve():
        await Collector(URL, ROUTE, tmp_path).run()
    steps = ["cover", "append", "durable", "report"]
    # What has come waits for the rest of the item.
    assert log == [*steps, *["cover"] * 2, *steps]
    assert rows(tmp_path) == numbered(0, 3)


async def test_a_publisher_that_resumes_nothing_is_asked_for_more_after_it_is_durable(
    tmp_path: Path, log: list[str]
) -> None:
    async with Publisher(*numbered(0, 3_000)).serve(NO_RESUME):
        await Collector(URL, ROUTE, tmp_path).run()
    asked = [at for at, what in enumerate(log) if what == "ask"]
    assert asked
    assert all(log[at - 3 : at] == ["cover", "append", "durable"] for at in asked)


@pytest.mark.parametrize("times", [1, 2])
async def test_who_cancels_it_waits_for_the_batch_that_is_being_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    gate = Gate(monkeypatch)
    publisher = Publisher(*numbered(0, 3), asyncio.Event())
    async with publisher.serve():
        task = asyncio.create_task(Collector(URL, ROUTE, tmp_path).run())
        await until(lambda: gate.reached)
        for _ in range(times):
            task.cancel()
            await turns(20)
            # The writer is not closed under the thread.
            assert not task.done()
            with pytest.raises(JournalLocked):
                JournalWriter.open(tmp_path, ROUTE)
        gate.open()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert rows(tmp_path) == numbered(0, 3)
    JournalWriter.open(tmp_path, ROUTE).close()


async def test_a_write_that_fails_while_it_is_canceled_is_one_line_of_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    loop, begun, full = asyncio.get_running_loop(), asyncio.Event(), threading.Event()
    noise: list[str] = []
    loop.set_exception_handler(lambda _, context: noise.append(str(context["message"])))

    def write() -> None:
        loop.call_soon_threadsafe(begun.set)
        full.wait()
        raise DiskFull("no room on the disk")

    task = asyncio.create_task(Collector(URL, ROUTE, tmp_path)._write(write))
    await begun.wait()
    task.cancel()
    await turns(3)
    full.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    del task
    gc.collect()
    await turns(3)
    assert noise == []
    assert [line.getMessage() for line in caplog.records if "its last write failed: no room" in line.getMessage()]


# Pace.


async def test_no_more_is_asked_for_while_readers_leave_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    window, width, budget = 16, 1_000, 100_000
    monkeypatch.setattr(collect, "FIRST_WINDOW", window)
    monkeypatch.setattr(collect, "WINDOW_BYTES", window * width)
    publisher = Publisher(*numbered(0, 1_000, width))
    collector = Collector(URL, ROUTE, tmp_path, budget_bytes=budget)

    def at() -> int:
        return collector.progress.position

    async with publisher.serve(), collecting(collector):
        freed = 0
        for lines in (1, 0):
            # All that was asked for has come, and one item more is made ahead of credit.
            await until(lambda: "budget" in collector.progress.waiting and publisher.made == at() + 1)
            assert budget // width // 2 <= at() - freed <= budget // width + window
            await turns(50)
            assert publisher.made == at() + 1
            freed = at()
            Journal(tmp_path).trim(ROUTE, freed, retain_bytes=0)
            await until(lambda end=freed: at() > end)
            # It is told once, and not each time.
            assert caplog.text.count("budget is used up") == lines
            caplog.clear()


@pytest.mark.parametrize("credit", [1, 5])
async def test_no_more_is_under_way_than_somebody_allows(tmp_path: Path, credit: int) -> None:
    ahead: list[int] = []
    collector = Collector(URL, ROUTE, tmp_path, credit=credit)
    service = penstock.Service()

    @service.stream(ROUTE)
    async def numbers(request: penstock.Payload) -> AsyncIterator[bytes]:
        for number in range(40):
            ahead.append(number - collector.progress.position)
            yield b"%d" % number

    async with penstock.serve(service, URL):
        await collector.run()
    assert rows(tmp_path) == numbered(0, 40)
    # One item is made ahead of credit.
    assert max(ahead) <= credit


async def test_a_credit_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(penstock.LocalError, match="at least 1"):
        Collector(URL, ROUTE, tmp_path, credit=0)


async def test_a_new_stream_is_not_opened_while_readers_leave_too_much(tmp_path: Path) -> None:
    async with Publisher(*numbered(0, 10, 1_000)).serve():
        await Collector(URL, ROUTE, tmp_path).run()
    publisher = Publisher(*numbered(10, 20, 1_000))
    collector = Collector(URL, ROUTE, tmp_path, budget_bytes=5_000, again=True)
    async with publisher.serve(), collecting(collector) as task:
        await until(lambda: "budget" in collector.progress.waiting)
        assert "no reader commits (in Spark, name the query with the option reader)" in collector.progress.waiting
        assert publisher.began == 0
        Journal(tmp_path).trim(ROUTE, 10, retain_bytes=0)
        await task
    assert rows(tmp_path) == numbered(0, 20, 1_000)


# A full disk, and a journal that cannot be written.


async def test_a_full_disk_is_one_line_and_waited_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: list[str]
) -> None:
    # THREATS 80
    disk = FullDisk(monkeypatch)
    released = asyncio.Event()
    publisher = Publisher(*numbered(0, 3), released, *numbered(3, 3_000))
    collector = Collector(URL, ROUTE, tmp_path)
    async with publisher.serve(), collecting(collector) as task:
        await until(lambda: collector.progress.position == 3)
        disk.full = True
        released.set()
        await until(lambda: "no room on the disk" in collector.progress.waiting)
        assert "\n" not in collector.progress.waiting
        reports = log.count("report")
        await turns(50)
        # It tries, and neither reports nor asks for more.
        assert (log.count("report"), collector.progress.position) == (reports, 3)
        disk.full = False
        await task
    assert (rows(tmp_path), gaps(tmp_path)) == (numbered(0, 3_000), [])
    assert collector.progress.waiting == ""


async def test_a_gap_waits_for_room_on_the_disk_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = FullDisk(monkeypatch)
    collector = Collector(URL, ROUTE, tmp_path)
    forever = asyncio.Event()
    async with Publisher(*numbered(0, 3), forever).serve(NO_RESUME) as server, collecting(collector) as task:
        await until(lambda: collector.progress.position == 3)
        disk.full = True
        cut(server)
        await until(lambda: "no room on the disk" in collector.progress.waiting)
        disk.full = False
        forever.set()
        await task
    assert [position for position, _ in gaps(tmp_path)] == [3]
    assert rows(tmp_path) == 2 * numbered(0, 3)


async def test_a_new_log_waits_for_room_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = FullDisk(monkeypatch)
    disk.full = True
    collector = Collector(URL, ROUTE, tmp_path)
    publisher = Publisher(*numbered(0, 3))
    async with publisher.serve(), collecting(collector) as task:
        await until(lambda: "no room on the disk" in collector.progress.waiting)
        # What could not be recorded is not asked for.
        assert publisher.began == 0
        disk.full = False
        await task
    assert (rows(tmp_path), gaps(tmp_path)) == (numbered(0, 3), [])


async def test_a_collector_that_finds_the_disk_full_at_its_start_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, mark = FullDisk(monkeypatch), tmp_path / f"source={ROUTE}" / "_durable"
    more, rest = asyncio.Event(), asyncio.Event()
    async with Publisher(*numbered(0, 3), more, *numbered(3, 6), rest, *numbered(6, 9)).serve():
        first, second = (Collector(URL, ROUTE, tmp_path) for _ in range(2))
        async with collecting(first):
            await until(lambda: first.progress.position == 3)
            before = mark.read_bytes()
            more.set()
            await until(lambda: first.progress.position == 6)
        # It was killed after the batch, and before its mark.
        mark.write_bytes(before)
        disk.full = True
        async with collecting(second) as task:
            await until(lambda: "no room on the disk" in second.progress.waiting)
            disk.full = False
            rest.set()
            await task
    assert (rows(tmp_path), gaps(tmp_path), second.progress.waiting) == (numbered(0, 9), [], "")


async def test_a_journal_of_another_collector_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    with JournalWriter.open(tmp_path, ROUTE):
        with pytest.raises(JournalLocked, match=rf"process {os.getpid()} .*; stop it, or choose another source name"):
            await Collector(URL, ROUTE, tmp_path).run()


async def test_what_another_program_recorded_is_no_state(tmp_path: Path) -> None:
    with JournalWriter.open(tmp_path, ROUTE) as writer:
        writer.append_gap("a test", b"not ours")
    with pytest.raises(JournalCorrupt, match=r"the collector's state in log 'numbers'"):
        await Collector(URL, ROUTE, tmp_path).run()


# What breaks.


async def test_nobody_there_is_an_error_at_the_first_try(tmp_path: Path) -> None:
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
        drivers[0].inbound.clear()
        released.set()
        await task
    assert rows(tmp_path) == [*numbered(0, 5), *numbered(0, 10)]
    [(position, reason)] = gaps(tmp_path)
    assert position == 5
    assert "its stream was not told" in reason
    assert "stream 1: nobody owns it" in caplog.text


@pytest.mark.parametrize(("url", "route"), [(URL, ROUTE), (RIVER, RIVER_ROUTE)])
async def test_a_session_that_an_event_of_another_stream_ends_becomes_a_gap(
    tmp_path: Path, drivers: list[Driver], url: str, route: str
) -> None:
    forever, released = asyncio.Event(), asyncio.Event()
    collector = Collector(url, route, tmp_path, source=ROUTE)
    publisher = Publisher(*numbered(0, 5), released, forever)
    async with publisher.serve(url=url), collecting(collector) as task:
        await until(lambda: collector.progress.position == 5)
        publisher.steps = numbered(5, 10)
        drivers[0].dispatch([ItemReceived(99, Payload(b"x"), False)])
        drivers[0].flush()
        await task
    assert rows(tmp_path) == numbered(0, 10)
    [(position, reason)] = gaps(tmp_path)
    assert position == 5
    assert "stream 99: nobody owns it, and ItemReceived came" in reason


async def test_a_session_that_we_gave_up_is_tried_all_the_same(tmp_path: Path) -> None:
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


async def test_a_collector_that_was_stopped_knows_that_nothing_is_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collect, "FIRST_WINDOW", 5)
    publisher = Publisher(*numbered(0, 100, 1_000))
    async with publisher.serve():
        first, second = (Collector(URL, ROUTE, tmp_path, budget_bytes=10_000) for _ in range(2))
        async with collecting(first):
            await until(lambda: first.progress.waiting != "" and publisher.made == first.progress.position + 1)
        Journal(tmp_path).trim(ROUTE, first.progress.position, retain_bytes=0)
        async with collecting(second):
            await until(lambda: second.progress.rows > 0)


async def test_a_publisher_that_is_started_anew_is_waited_for_and_leaves_a_gap(tmp_path: Path) -> None:
    collector = Collector(URL, ROUTE, tmp_path)
    async with collecting(collector) as task:
        before = await Publisher(*numbered(0, 5), asyncio.Event()).serve()
        await until(lambda: collector.progress.position == 5)
        await before.close()
        # It is gone for several tries, and whoever looks is told.
        await turns(200)
        assert "tried again" in collector.progress.waiting
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
        assert "resumes no sessions" in caplog.text
        publisher.steps = numbered(7, 10)
        cut(server)
        await task
    assert rows(tmp_path) == numbered(0, 5) + numbered(7, 10)
    ((position, reason),) = gaps(tmp_path)
    assert (position, collector.progress.gaps) == (5, 1)
    assert "connection" in reason
    assert f"a gap at position 5: {reason}" in caplog.text


@pytest.mark.parametrize(("protocol", "gap"), [("reactivesocket-0.2", False), ("reactivesocket-0.0", True)])
async def test_the_drafts_are_collected_and_one_of_them_cannot_resume(tmp_path: Path, protocol: str, gap: bool) -> None:
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


async def test_without_resuming_a_collector_that_is_started_anew_leaves_a_gap(tmp_path: Path) -> None:
    publisher = Publisher(*numbered(0, 5), asyncio.Event())
    async with publisher.serve(NO_RESUME):
        first = Collector(URL, ROUTE, tmp_path)
        async with collecting(first):
            await until(lambda: first.progress.position == 5)
        publisher.steps = numbered(7, 10)
        await Collector(URL, ROUTE, tmp_path).run()
    assert rows(tmp_path) == numbered(0, 5) + numbered(7, 10)
    assert gaps(tmp_path) == [(5, "the collector was stopped, and the publisher resumes no sessions")]


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
    assert position == 5 and "the publisher gave the stream up" in reason and "restarted" in reason


async def test_a_stream_that_failed_when_the_collector_was_stopped_leaves_a_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch)
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


async def test_a_connection_that_breaks_while_readers_leave_too_much_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collect, "FIRST_WINDOW", 5)
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


def test_a_state_stays_readable() -> None:
    # Journals outlive releases: what has been written so once is read for ever.
    encoded = msgspec.msgpack.encode([b"checkpoint", True, False, 7])
    assert msgspec.msgpack.decode(encoded, type=State) == State(b"checkpoint", True, False, 7)


# River, whose sessions are taken over without being asked.


def river(journal: Path, settings: Settings = DEFAULT_SETTINGS) -> Collector:
    return Collector(RIVER, RIVER_ROUTE, journal, source=ROUTE, settings=settings)


async def test_river_loses_nothing_with_a_link_and_goes_on_in_another_process(tmp_path: Path) -> None:
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
async def test_a_river_server_that_was_started_anew_leaves_a_gap(tmp_path: Path, alive: bool) -> None:
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


async def test_a_river_session_whose_grace_is_over_is_tried_all_the_same(tmp_path: Path) -> None:
    released = asyncio.Event()
    collector = river(tmp_path, Settings(session_grace=0))
    publisher = Publisher(*numbered(0, 5), released, *numbered(5, 10))
    async with publisher.serve(url=RIVER) as server, collecting(collector) as task:
        await until(lambda: collector.progress.position == 5)
        cut(server)
        released.set()
        await task
    assert (rows(tmp_path), gaps(tmp_path)) == (numbered(0, 10), [])


async def test_what_a_river_server_sends_unasked_is_kept_once_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collect, "FIRST_WINDOW", 4)
    monkeypatch.setattr(collect, "WINDOW_BYTES", 400)
    publisher = Publisher(*numbered(1_000, 1_100, 0), asyncio.Event())
    async with publisher.serve(url=RIVER):
        for stop in range(1, 10):
            collector = river(tmp_path)
            async with collecting(collector) as task:
                await until(lambda stop=stop, at=collector.progress: at.position >= 10 * stop)
                assert not task.done()
    assert rows(tmp_path) == numbered(1_000, 1_000 + len(rows(tmp_path)))
    assert gaps(tmp_path) == [] and publisher.began == 1


async def test_a_river_server_that_refuses_us_is_an_error(tmp_path: Path) -> None:
    def check(setup: penstock.Setup) -> None:
        raise SetupRejected("not you", "REJECTED_BY_CUSTOM_HANDLER")

    async with penstock.serve(Publisher().service, RIVER, acceptor=check):
        with pytest.raises(SetupRejected, match="not you"):
            await river(tmp_path).run()
    assert gaps(tmp_path) == []


@pytest.mark.parametrize(("url", "route"), [(URL, ROUTE), (RIVER, RIVER_ROUTE)])
async def test_a_checkpoint_is_made_anew_though_nothing_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: list[str], url: str, route: str
) -> None:
    monkeypatch.setattr(collect, "RENEWAL", 0.0)
    monkeypatch.setattr(collect, "FIRST_RENEWAL", 0.0)
    steps = ["cover", "append", "durable", "report"]
    async with Publisher(asyncio.Event()).serve(url=url), collecting(Collector(url, route, tmp_path)):
        await until(lambda: len(log) >= 4 * len(steps))
        assert log[: 4 * len(steps)] == 4 * steps
