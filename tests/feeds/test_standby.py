from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from tests.waiting import until
from weirpool.errors import JournalMismatch, StoreError
from weirpool.feeds import standby
from weirpool.feeds.standby import hold
from weirpool.objects.folder import FolderStore
from weirpool.objects.ports import Data
from weirpool.objects.probe import ConditionIgnored
from weirpool.replica.bundler import Bundler
from weirpool.replica.group import Group, Membership
from weirpool.replica.ownership import take
from weirpool.replica.sequence import Sequence
from weirpool.replica.vault import new_key
from weirpool.replica.watch import Watch

KEY = new_key()
LONG = 1_000.0


class Collector:
    """One of the collectors of a group."""

    def __init__(self, folder: Path, name: str, patience: float = LONG) -> None:
        self.member = Membership(
            name="edge", store=str(folder / "store"), key=KEY, journal=folder / name, patience=patience, interval=0.0
        )
        self.owns = asyncio.Event()
        self.ended = asyncio.Event()
        self.reasons: list[str] = []
        self.done = asyncio.Event()

    async def run(self) -> str:
        return await hold(self.member, LONG, self.work, self.reasons.append)

    async def work(self, group: Group) -> str:
        self.owns.set()
        try:
            await self.done.wait()
            await asyncio.wrap_future(group.logs.confirm())
            return "the result"
        finally:
            self.ended.set()
            self.owns.clear()


async def canceled(*tasks: asyncio.Task[str]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


async def test_work_that_ends_gives_the_group_up(tmp_path: Path) -> None:
    one, two = Collector(tmp_path, "one"), Collector(tmp_path, "two")
    one.done.set()
    assert await one.run() == "the result"
    # Nobody is waited for, although the patience is long.
    two.done.set()
    assert await two.run() == "the result"


def test_a_store_that_hangs_does_not_hold_up_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hangs, reached, answered = threading.Event(), threading.Event(), threading.Event()

    def silent(watch: Watch) -> bool:
        reached.set()
        hangs.wait(10)
        answered.set()
        return False

    async def stand_by() -> None:
        task = asyncio.create_task(Collector(tmp_path, "one").run())
        await asyncio.to_thread(reached.wait)
        await canceled(task)

    monkeypatch.setattr(Watch, "silent", silent)
    asyncio.run(stand_by())
    assert not answered.is_set()
    hangs.set()


async def test_a_collector_stands_by_until_the_owner_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weirpool.replica.group.HEARTBEATS", LONG * 1_000)
    one, two = Collector(tmp_path, "one"), Collector(tmp_path, "two")
    first = asyncio.create_task(one.run())
    await one.owns.wait()
    second = asyncio.create_task(two.run())
    await until(lambda: any("another collector" in reason for reason in two.reasons))
    assert not two.owns.is_set()
    await canceled(first)
    assert one.ended.is_set()
    await two.owns.wait()
    await canceled(second)


async def test_the_work_is_canceled_when_the_group_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = Collector(tmp_path, "one"), Collector(tmp_path, "two")
    monkeypatch.setattr("weirpool.replica.group.HEARTBEATS", LONG * 1_000)
    first = asyncio.create_task(one.run())
    await one.owns.wait()
    # As if the owner had been silent for long.
    with monkeypatch.context() as patch:
        patch.setattr(Watch, "silent", lambda watch: True)
        second = asyncio.create_task(two.run())
        await two.owns.wait()
    await one.ended.wait()
    assert not first.done()
    await canceled(second)
    one.ended.clear()
    await one.owns.wait()
    await canceled(first)


async def test_a_store_that_does_not_fence_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def overwrite(store: FolderStore, name: str, data: Data) -> bool:
        store.put(name, data)
        return True

    monkeypatch.setattr(FolderStore, "create", overwrite)
    one = Collector(tmp_path, "one")
    with pytest.raises(ConditionIgnored, match="If-None-Match"):
        await one.run()
    assert not one.owns.is_set()


async def test_a_store_that_is_away_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weirpool.replica.group.HEARTBEATS", LONG * 1_000)
    one = Collector(tmp_path, "one")
    failures = 3
    numbers = Sequence.numbers

    def fail(sequence: Sequence, after: int = -1) -> list[int]:
        nonlocal failures
        failures -= 1
        if failures >= 0:
            raise StoreError("the store is away")
        return numbers(sequence, after)

    monkeypatch.setattr(Sequence, "numbers", fail)
    one.done.set()
    assert await one.run() == "the result"
    assert "the store is away" in one.reasons and one.reasons[-1] == ""


async def test_a_store_that_goes_away_does_not_keep_the_collector(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standby, "GRACE_SECONDS", LONG)
    monkeypatch.setattr("weirpool.replica.bundler.RETRIES", (0.001,))
    one = Collector(tmp_path, "one", patience=0.004)
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()

    def away(sequence: Sequence, number: int, data: bytes) -> bool:
        loop.call_soon_threadsafe(asked.set)
        raise StoreError("the store is away")

    running = asyncio.create_task(one.run())
    await one.owns.wait()
    monkeypatch.setattr(Sequence, "create", away)
    await asked.wait()
    one.done.set()
    await canceled(running)
    assert one.ended.is_set()


async def test_a_take_over_that_is_canceled_leaves_no_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = Collector(tmp_path, "one")
    closed: list[Bundler] = []
    close = Bundler.close

    def closing(bundler: Bundler) -> None:
        closed.append(bundler)
        close(bundler)

    begun, loop = asyncio.Event(), asyncio.get_running_loop()
    numbers = Sequence.numbers

    def listing(sequence: Sequence, after: int = -1) -> list[int]:
        loop.call_soon_threadsafe(begun.set)
        return numbers(sequence, after)

    monkeypatch.setattr(Bundler, "close", closing)
    monkeypatch.setattr(Watch, "silent", lambda watch: True)
    monkeypatch.setattr(Sequence, "numbers", listing)
    running = asyncio.create_task(one.run())
    await begun.wait()
    await canceled(running)
    assert len(closed) == 1 and not one.ended.is_set()


async def test_work_that_fails_because_the_group_was_lost_is_not_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Collector(tmp_path, "one")
    running = asyncio.create_task(one.run())
    await one.owns.wait()
    failed = threading.Event()
    monkeypatch.setattr(Group, "tend", lambda group, seconds: failed.wait(LONG))
    await asyncio.to_thread(take, one.member.sequence())
    # It learns of the loss by an error, as a collector does whose append fails.
    one.done.set()
    await one.ended.wait()
    failed.set()
    await until(lambda: running.done() or any("another collector" in reason for reason in one.reasons))
    assert not running.done()
    await canceled(running)


async def test_failed_take_overs_become_rare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Each one leaves a bundle that is never deleted.
    one = Collector(tmp_path, "one", patience=standby.LONGEST_PAUSE)
    sleep, pauses = asyncio.sleep, list[float]()

    async def paused(seconds: float) -> None:
        if seconds:
            pauses.append(seconds)
        await sleep(0)

    def refuse(*args: object) -> None:
        raise JournalMismatch("the folder has another log")

    monkeypatch.setattr(asyncio, "sleep", paused)
    monkeypatch.setattr("weirpool.replica.group.recall", refuse)
    running = asyncio.create_task(one.run())
    await until(lambda: len(pauses) > 4)
    await canceled(running)
    assert one.reasons[-1] == "the folder has another log"
    assert pauses[:4] == [standby.LONGEST_PAUSE / 4 * times for times in (1, 2, 4, 4)]
