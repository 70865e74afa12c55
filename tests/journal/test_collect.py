from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

import weirpool
from tests.journal.publishing import (
    NO_RESUME,
    ROUTE,
    URL,
    FullDisk,
    HeldWrites,
    Publisher,
    Reporter,
    collecting,
    cut,
    gaps,
    numbered,
    rows,
)
from tests.waiting import turns, until
from weirpool.checkpoints import join
from weirpool.errors import JournalCorrupt, JournalLocked
from weirpool.journal import Journal, JournalWriter, progress
from weirpool.journal.collect import Collector, State
from weirpool.journal.feedlog import MAX_PRIVATE_BYTES
from weirpool.journal.writer import MAX_STATE_BYTES

pytestmark = pytest.mark.usefixtures("no_waiting")


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


async def test_complete_stream_can_be_collected_again(tmp_path: Path) -> None:
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

    def checkpoint(reporter: Reporter, stream: weirpool.Stream, count: int) -> bytes | None:
        log.append("cover")
        return swollen.pop() if swollen and log.count("report") else reporter.peer.checkpoint(stream, count)

    monkeypatch.setattr(Reporter, "checkpoint", checkpoint)
    async with Publisher(*numbered(0, 3)).serve():
        await Collector(URL, ROUTE, tmp_path).run()
    steps = ["cover", "append", "durable", "report"]
    # What has come waits for the rest of the item.
    assert log == [*steps, *["cover"] * 2, *steps]
    assert rows(tmp_path) == numbered(0, 3)


async def test_demand_follows_durable_rows_without_resumption(tmp_path: Path, log: list[str]) -> None:
    async with Publisher(*numbered(0, 3_000)).serve(NO_RESUME):
        await Collector(URL, ROUTE, tmp_path).run()
    asked = [at for at, what in enumerate(log) if what == "ask"]
    assert asked
    assert all(log[at - 3 : at] == ["cover", "append", "durable"] for at in asked)


@pytest.mark.parametrize("times", [1, 2])
async def test_cancellation_waits_for_the_batch_being_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    gate = HeldWrites(monkeypatch)
    publisher = Publisher(*numbered(0, 3), asyncio.Event())
    async with publisher.serve():
        collector = Collector(URL, ROUTE, tmp_path)
        task = asyncio.create_task(collector.run())
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
    assert collector.progress.position == 3
    JournalWriter.open(tmp_path, ROUTE).close()


# Pace.


async def test_collector_stops_requesting_when_budget_is_used_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    window, width, budget = 16, 1_000, 100_000
    monkeypatch.setattr(progress, "FIRST_WINDOW", window)
    monkeypatch.setattr(progress, "WINDOW_BYTES", window * width)
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
async def test_collector_requests_no_more_than_its_credit(tmp_path: Path, credit: int) -> None:
    ahead: list[int] = []
    collector = Collector(URL, ROUTE, tmp_path, credit=credit)
    service = weirpool.Service()

    @service.stream(ROUTE)
    async def numbers(request: weirpool.Payload) -> AsyncIterator[bytes]:
        for number in range(40):
            ahead.append(number - collector.progress.position)
            yield b"%d" % number

    async with weirpool.serve(service, URL):
        await collector.run()
    assert rows(tmp_path) == numbered(0, 40)
    # One item is made ahead of credit.
    assert max(ahead) <= credit


async def test_a_credit_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(weirpool.LocalError, match="at least 1"):
        Collector(URL, ROUTE, tmp_path, credit=0)


async def test_stream_is_not_opened_when_budget_is_used_up(tmp_path: Path) -> None:
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
        await until(lambda: "the disk is full" in collector.progress.waiting)
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
        await until(lambda: "the disk is full" in collector.progress.waiting)
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
        await until(lambda: "the disk is full" in collector.progress.waiting)
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
            await until(lambda: "the disk is full" in second.progress.waiting)
            disk.full = False
            rest.set()
            await task
    assert (rows(tmp_path), gaps(tmp_path), second.progress.waiting) == (numbered(0, 9), [], "")


async def test_locked_journal_error_says_what_to_do(tmp_path: Path) -> None:
    with JournalWriter.open(tmp_path, ROUTE):
        with pytest.raises(JournalLocked, match=rf"process {os.getpid()} .*; stop it, or choose another source name"):
            await Collector(URL, ROUTE, tmp_path).run()


async def test_collector_rejects_state_of_another_program(tmp_path: Path) -> None:
    with JournalWriter.open(tmp_path, ROUTE) as writer:
        writer.append_gap("a test", b"not ours")
    with pytest.raises(JournalCorrupt, match=r"the collector's state in log 'numbers'"):
        await Collector(URL, ROUTE, tmp_path).run()


def test_a_state_stays_readable() -> None:
    # Journals outlive releases: what has been written so once is read for ever.
    encoded = msgspec.msgpack.encode([b"checkpoint", True, False, 7])
    assert msgspec.msgpack.decode(encoded, type=State) == State(b"checkpoint", True, False, 7)
