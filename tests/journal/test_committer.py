from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import pytest

from tests.journal.logs import items, numbers
from weirpool import JournalError
from weirpool.journal import Journal, Request
from weirpool.journal.committer import LARGE_BYTES, Committer, Items, commit
from weirpool.journal.durability import StagedAppend
from weirpool.journal.feedlog import FeedLog, Place, State
from weirpool.journal.progress import Progress, settled
from weirpool.journal.redo import Redo
from weirpool.journal.replay import REDO

SOURCES = ("a", "b", "c")


class Durable:
    """Makes appends durable by itself; notes how many there are, and fails if it has to."""

    def __init__(self) -> None:
        self.groups: list[int] = []
        self.error: Exception | None = None
        self.closed = False

    def write(self, appends: Sequence[StagedAppend]) -> None:
        self.groups.append(len(appends))
        if self.error is not None:
            raise self.error

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[Callable[[], list[FeedLog]]]:
    """Opens three logs, each with a row."""

    def opened() -> list[FeedLog]:
        found = []
        for source in SOURCES:
            log = FeedLog(Place(journal=tmp_path, source=source, request=Request(source), options={}))
            log.append(items(0, 1), "stream", State())
            found.append(log)
            stack.callback(log.close)
        return found

    with ExitStack() as stack:
        yield opened


@pytest.fixture
def durable() -> Durable:
    return Durable()


@asynccontextmanager
async def committing(path: Path, durable: Durable, feeds: int) -> AsyncIterator[Committer]:
    committer = Committer(path, durable)
    with ExitStack() as stack:
        for _ in range(feeds):
            stack.enter_context(committer.feed())
        yield committer
    await committer.close()
    assert durable.closed


def ten(log: FeedLog, count: int = 10) -> Items:
    return Items(log, items(log.position, count), "stream", State(begun=True, outstanding=log.position + count))


def held(path: Path) -> dict[str, list[int]]:
    return {source: numbers(Journal(path).reader(source)) for source in SOURCES}


async def test_batches_of_several_feeds_become_durable_together(
    logs: Callable[[], list[FeedLog]], durable: Durable, tmp_path: Path
) -> None:
    opened = logs()
    async with committing(tmp_path, durable, 3) as committer:
        for _ in range(2):
            await asyncio.gather(*(committer.append(ten(log)) for log in opened))
    assert durable.groups == [3, 3]
    assert held(tmp_path) == {source: list(range(21)) for source in SOURCES}
    assert [log.state.outstanding for log in opened] == [21] * 3


async def test_a_single_feed_and_a_large_batch_wait_for_nobody(
    logs: Callable[[], list[FeedLog]], durable: Durable, tmp_path: Path
) -> None:
    one, two, _ = logs()
    async with committing(tmp_path, durable, 1) as committer:
        await committer.append(ten(one))
        with committer.feed():
            await asyncio.gather(committer.append(ten(one, LARGE_BYTES)), committer.append(ten(two)))
    assert (durable.groups, one.position, two.position) == ([], LARGE_BYTES + 11, 11)


async def test_without_redo_files_each_log_is_synced(
    logs: Callable[[], list[FeedLog]], durable: Durable, tmp_path: Path
) -> None:
    durable.error = JournalError("the disk failed")
    opened = logs()
    async with committing(tmp_path, durable, 2) as committer:
        await asyncio.gather(*(committer.append(ten(log)) for log in opened))
    assert durable.groups == [3]
    assert held(tmp_path) == {source: list(range(11)) for source in SOURCES}


async def test_a_log_that_fails_does_not_hurt_the_others(
    logs: Callable[[], list[FeedLog]], durable: Durable, tmp_path: Path
) -> None:
    opened = logs()
    opened[1].close()
    async with committing(tmp_path, durable, 2) as committer:
        results = await asyncio.gather(*(committer.append(ten(log)) for log in opened), return_exceptions=True)
    assert [type(result) for result in results] == [type(None), JournalError, type(None)]
    assert durable.groups == [2]


async def test_a_defect_fails_the_appends_and_not_the_committer(
    logs: Callable[[], list[FeedLog]], durable: Durable, tmp_path: Path
) -> None:
    durable.error = ValueError("defect")
    one, two, _ = logs()
    async with committing(tmp_path, durable, 2) as committer:
        results = await asyncio.gather(committer.append(ten(one)), committer.append(ten(two)), return_exceptions=True)
        assert [str(result) for result in results] == ["defect", "defect"]
        durable.error = None
        await asyncio.gather(committer.append(ten(one)), committer.append(ten(two)))
    assert [one.position, two.position] == [11, 11]
    assert held(tmp_path)["a"] == list(range(11))


def test_redo_files_are_gone_when_all_is_closed(logs: Callable[[], list[FeedLog]], tmp_path: Path) -> None:
    redo, opened = Redo(tmp_path), logs()
    assert commit(redo, [ten(log) for log in opened]) == [None] * 3
    assert len(list((tmp_path / REDO).iterdir())) == 1
    opened[0].close()
    redo.close()
    assert list((tmp_path / REDO).iterdir()) == []
    assert held(tmp_path) == {source: list(range(11)) for source in SOURCES}


def test_a_canceled_process_learns_how_its_appends_ended(
    logs: Callable[[], list[FeedLog]], durable: Durable, tmp_path: Path
) -> None:
    opened, ended = logs(), []

    async def feed(committer: Committer, log: FeedLog) -> None:
        try:
            await settled(Progress(), lambda: committer.append(ten(log)))
        finally:
            ended.append(log.position)

    async def main() -> None:
        committer = Committer(tmp_path, durable)
        feeds = [committer.feed() for _ in opened]
        for counted in feeds:
            counted.__enter__()
        tasks.extend(asyncio.create_task(feed(committer, log)) for log in opened)
        await asyncio.sleep(0)

    tasks: list[asyncio.Task[None]] = []
    # It cancels all tasks when the main one returns.
    asyncio.run(main())
    assert ended == [11, 11, 11]
