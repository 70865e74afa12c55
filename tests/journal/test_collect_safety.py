"""What a collector leaves behind: nothing secret, no log of what never opened, and a gap for whatever was lost."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

import weirpool
from tests.journal.publishing import (
    NO_RESUME,
    RIVER,
    RIVER_ROUTE,
    ROUTE,
    URL,
    FullDisk,
    HeldWrites,
    Publisher,
    collecting,
    cut,
    gaps,
    numbered,
    rows,
)
from tests.waiting import turns, until
from weirpool import ApplicationError, ConnectError, Settings
from weirpool.errors import JournalMismatch, LimitExceeded, SetupRejected
from weirpool.journal import Journal, JournalWriter, Request, collect, progress
from weirpool.journal import secret as secrets
from weirpool.journal.collect import Collector
from weirpool.journal.feedlog import NO_TOKEN, NOT_RESUMED, FeedLog, State
from weirpool.journal.format import NO_ITEMS
from weirpool.journal.layout import IDENTITY, SECRET, log_folder

pytestmark = pytest.mark.usefixtures("no_waiting")

DRAFT = URL.replace("rsocket", "reactivesocket-0.2")
OLDEST = URL.replace("rsocket", "reactivesocket-0.0")
RESUMING = [(URL, ROUTE), (DRAFT, ROUTE), (RIVER, RIVER_ROUTE)]
ALL = [*RESUMING, (OLDEST, ROUTE), (URL.replace("rsocket", "reactive-streams"), ROUTE)]


@pytest.fixture(autouse=True)
def small_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "FIRST_WINDOW", 8)


def collector(journal: Path, url: str = URL, route: str = ROUTE, **options: Any) -> Collector:
    return Collector(url, route, journal, source=ROUTE, **options)


@asynccontextmanager
async def publishing(publisher: Publisher, url: str, **options: Any) -> AsyncIterator[weirpool.Server]:
    async with publisher.serve(url=url, **options) as server:
        yield server


# Nothing secret in what people copy.


@pytest.fixture(params=[0o022, 0o000], ids="{:03o}".format)
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask")
@pytest.mark.parametrize(("url", "route"), RESUMING)
async def test_tokens_are_apart_from_data_and_all_is_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, route: str
) -> None:
    # THREATS 100
    monkeypatch.setattr(collect, "RENEWAL", 0.0)
    released = asyncio.Event()
    publisher = Publisher(*numbered(0, 40), released, *numbered(40, 80))
    tokens: set[bytes] = set()
    journal = tmp_path / "deep" / "journal"
    begin = FeedLog.begin

    def noting(log: FeedLog, token: bytes) -> State:
        tokens.add(token)
        return begin(log, token)

    monkeypatch.setattr(FeedLog, "begin", noting)
    async with publisher.serve(url=url) as server, collecting(collector(journal, url, route)) as task:
        await until(lambda: len(rows(journal)) == 40)
        cut(server)
        (token,) = tokens
        assert len(token) >= 8
        assert secrets.load(log_folder(journal, ROUTE)).token == token  # type: ignore[union-attr]
        Journal(journal).trim(ROUTE, 10)
        files = [path for path in (tmp_path / "deep").rglob("*") if path.is_file()]
        assert [path.name for path in files if token in path.read_bytes()] == []
        for path in (tmp_path / "deep").rglob("*"):
            assert (path.name, path.stat().st_mode & 0o777) == (path.name, 0o700 if path.is_dir() else 0o600)
        released.set()
        await task
    assert (rows(journal), gaps(journal)) == (numbered(0, 80), [])
    # It resumes nothing any more.
    assert not (log_folder(journal, ROUTE) / SECRET).exists()


@pytest.mark.parametrize(("url", "route"), RESUMING)
@pytest.mark.parametrize("harm", ["lost", "foreign", "damaged", "of another protocol"])
async def test_a_session_without_its_token_is_a_gap(tmp_path: Path, url: str, route: str, harm: str) -> None:
    publisher = Publisher(*numbered(0, 5), asyncio.Event())
    async with publisher.serve(url=url):
        first = collector(tmp_path, url, route)
        async with collecting(first):
            await until(lambda: first.progress.position == 5)
        path = log_folder(tmp_path, ROUTE) / SECRET
        secret = secrets.load(path.parent)
        assert secret is not None
        if harm == "lost":
            path.unlink()
        elif harm == "foreign":
            secrets.save(path.parent, msgspec.structs.replace(secret, session=1, owner="another"))
        elif harm == "damaged":
            path.write_bytes(path.read_bytes()[:20])
        else:
            secrets.save(path.parent, msgspec.structs.replace(secret, token=b"\xff\xfe"))
        publisher.steps = numbered(7, 10)
        await collector(tmp_path, url, route).run()
    assert rows(tmp_path) == numbered(0, 5) + numbered(7, 10)
    ((position, reason),) = gaps(tmp_path)
    assert position == 5
    assert (reason == NO_TOKEN) == (harm != "of another protocol")


async def test_a_checkpoint_that_cannot_be_read_is_a_gap(tmp_path: Path) -> None:
    publisher = Publisher(*numbered(0, 5), asyncio.Event())
    async with publisher.serve():
        first = collector(tmp_path)
        async with collecting(first):
            await until(lambda: first.progress.position == 5)
        with JournalWriter.open(tmp_path, ROUTE) as writer:
            assert writer.state is not None
            state = msgspec.msgpack.decode(writer.state, type=State)
            state.checkpoint = b"junk"
            writer.append(NO_ITEMS, ROUTE, msgspec.msgpack.encode(state))
        publisher.steps = numbered(7, 10)
        await collector(tmp_path).run()
    assert rows(tmp_path) == numbered(0, 5) + numbered(7, 10)
    ((position, reason),) = gaps(tmp_path)
    assert position == 5 and reason.startswith("the session cannot be restored")


# A log collects one request.


async def test_another_request_on_a_log_is_refused(tmp_path: Path) -> None:
    # THREATS 99
    async with Publisher(*numbered(0, 3)).serve():
        await collector(tmp_path, data=b"1").run()
        for wrong, what in (({"data": b"2"}, "data"), ({"data": b"1", "metadata": b"m"}, "metadata")):
            for again in (False, True):
                with pytest.raises(JournalMismatch, match=f"different {what}.*choose another source name"):
                    await collector(tmp_path, again=again, **wrong).run()
        with pytest.raises(JournalMismatch, match="route 'numbers'"):
            await collector(tmp_path, route="letters", data=b"1").run()
        # Credentials change; the request is the same.
        await collector(tmp_path, data=b"1", metadata=b"token", request=Request(ROUTE, b"1")).run()
    assert rows(tmp_path) == numbered(0, 3)


# What never opens makes no log.


@pytest.mark.parametrize(("url", "route"), ALL)
async def test_a_mistyped_route_makes_no_log(tmp_path: Path, url: str, route: str) -> None:
    async with Publisher(*numbered(0, 3)).serve(url=url):
        for _ in range(2):
            with pytest.raises(ApplicationError):
                await collector(tmp_path, url, route + "x").run()
            assert os.listdir(tmp_path) == []
        # And it left nothing that the right one would trip over.
        await collector(tmp_path, url, route).run()
    assert (rows(tmp_path), gaps(tmp_path)) == (numbered(0, 3), [])


@pytest.mark.parametrize("settings", [Settings(), NO_RESUME], ids=["resumes", "resumes nothing"])
async def test_a_publisher_that_fails_at_once_makes_no_log(tmp_path: Path, settings: Settings) -> None:
    async with Publisher(ApplicationError(0x301, "not today")).serve(settings):
        with pytest.raises(ApplicationError, match="not today"):
            await collector(tmp_path).run()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(("url", "route"), RESUMING)
async def test_nobody_there_makes_no_log(tmp_path: Path, url: str, route: str) -> None:
    with pytest.raises(ConnectError):
        await collector(tmp_path, url, route).run()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(("url", "route"), RESUMING)
async def test_a_refused_set_up_makes_no_log(tmp_path: Path, url: str, route: str) -> None:
    def check(setup: weirpool.Setup) -> None:
        raise SetupRejected("not you", "REJECTED_BY_CUSTOM_HANDLER" if url == RIVER else None)

    async with weirpool.serve(Publisher().service, url, acceptor=check):
        with pytest.raises(SetupRejected, match="not you"):
            await collector(tmp_path, url, route).run()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(("url", "route"), ALL)
async def test_an_empty_stream_makes_a_log_that_is_complete(tmp_path: Path, url: str, route: str) -> None:
    async with Publisher().serve(url=url):
        await collector(tmp_path, url, route).run()
    again = collector(tmp_path, url, route)
    await again.run()
    assert (rows(tmp_path), gaps(tmp_path), again.progress.already) == ([], [], True)


async def test_a_quiet_stream_makes_a_log_when_nobody_has_refused_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collect, "SETTLING", 0.0)
    monkeypatch.setattr(collect, "FIRST_RENEWAL", 0.0)
    for settings in (Settings(), NO_RESUME):
        journal = tmp_path / str(settings.resume_timeout)
        path = log_folder(journal, ROUTE) / IDENTITY
        async with Publisher(asyncio.Event()).serve(settings), collecting(collector(journal)):
            await until(path.exists)


# Whatever is lost is a gap.


async def test_a_stream_is_resumed_before_there_is_a_log(tmp_path: Path) -> None:
    released = asyncio.Event()
    publisher = Publisher(released, *numbered(0, 5))
    async with publisher.serve():
        async with collecting(collector(tmp_path)):
            await until(lambda: publisher.began == 1 and (log_folder(tmp_path, ROUTE) / SECRET).exists())
            await turns(50)
        assert not (log_folder(tmp_path, ROUTE) / IDENTITY).exists()
        released.set()
        await collector(tmp_path).run()
    assert (rows(tmp_path), gaps(tmp_path), publisher.began) == (numbered(0, 5), [], 1)


async def test_what_was_lost_before_there_was_a_log_is_a_gap_in_it(tmp_path: Path) -> None:
    publisher = Publisher(asyncio.Event())
    async with publisher.serve(NO_RESUME):
        async with collecting(collector(tmp_path)):
            await until(lambda: publisher.began == 1)
        publisher.steps = numbered(7, 10)
        second = collector(tmp_path)
        await second.run()
    assert rows(tmp_path) == numbered(7, 10)
    assert gaps(tmp_path) == [(0, NOT_RESUMED)]
    assert second.progress.gaps == 1


async def test_a_gap_that_could_not_be_written_is_the_next_process_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher = Publisher(*numbered(0, 5), asyncio.Event())
    with monkeypatch.context() as patch:
        disk = FullDisk(patch)
        first = collector(tmp_path)
        async with publisher.serve(NO_RESUME) as server, collecting(first):
            await until(lambda: first.progress.position == 5)
            disk.full = True
            cut(server)
            await until(lambda: "the disk is full" in first.progress.waiting)
    assert gaps(tmp_path) == []
    publisher.steps = numbered(7, 10)
    async with publisher.serve(NO_RESUME):
        await collector(tmp_path).run()
    assert rows(tmp_path) == numbered(0, 5) + numbered(7, 10)
    assert gaps(tmp_path) == [(5, NOT_RESUMED)]


@pytest.mark.parametrize("resume", [True, False], ids=["resumes", "resumes nothing"])
async def test_rows_that_were_canceled_while_the_disk_was_full_come_again_or_are_a_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resume: bool
) -> None:
    hold = asyncio.Event()
    publisher = Publisher(*numbered(0, 5), hold, *numbered(5, 10))
    settings = Settings() if resume else NO_RESUME
    async with publisher.serve(settings):
        with monkeypatch.context() as patch:
            disk = FullDisk(patch)
            first = collector(tmp_path)
            async with collecting(first):
                await until(lambda: first.progress.position == 5)
                disk.full = True
                hold.set()
                await until(lambda: "the disk is full" in first.progress.waiting)
        await collector(tmp_path).run()
    if resume:
        assert (rows(tmp_path), gaps(tmp_path)) == (numbered(0, 10), [])
    else:
        assert rows(tmp_path) == numbered(0, 5) + numbered(0, 10)
        assert gaps(tmp_path) == [(5, NOT_RESUMED)]


async def test_rows_that_are_being_written_when_it_is_canceled_are_there_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = HeldWrites(monkeypatch)
    publisher = Publisher(*numbered(0, 20))
    async with publisher.serve():
        async with collecting(collector(tmp_path)) as task:
            await until(lambda: gate.reached)
            task.cancel()
            gate.open()
        await collector(tmp_path).run()
    assert (rows(tmp_path), gaps(tmp_path), publisher.began) == (numbered(0, 20), [], 1)


async def test_a_route_that_is_gone_adds_no_gap_at_each_try(tmp_path: Path) -> None:
    publisher = Publisher(*numbered(0, 5), ApplicationError(0x301, "sold out"))
    async with publisher.serve():
        with pytest.raises(ApplicationError):
            await collector(tmp_path).run()
        before = gaps(tmp_path)
        publisher.steps = [ApplicationError(0x301, "sold out")]
        for _ in range(3):
            with pytest.raises(ApplicationError):
                await collector(tmp_path).run()
    assert [position for position, _ in before] == [5]
    assert gaps(tmp_path) == before


async def test_a_publisher_that_gives_up_before_the_first_item_is_asked_again(tmp_path: Path) -> None:
    publisher = Publisher(weirpool.errors.Canceled(0x203, "restarting"))
    async with publisher.serve(), collecting(collector(tmp_path)) as task:
        await until(lambda: publisher.began >= 3)
        publisher.steps = numbered(7, 10)
        await task
    # However often it did, it is one gap.
    assert rows(tmp_path) == numbered(7, 10)
    ((position, reason),) = gaps(tmp_path)
    assert position == 0 and "abandoned the stream" in reason


async def test_a_set_up_that_is_refused_after_a_restart_is_a_gap(tmp_path: Path) -> None:
    publisher = Publisher(*numbered(0, 5), asyncio.Event())
    async with publisher.serve():
        first = collector(tmp_path)
        async with collecting(first):
            await until(lambda: first.progress.position == 5)
    publisher.steps = numbered(7, 10)
    # The next process of the publisher resumes nothing.
    async with publisher.serve(NO_RESUME):
        await collector(tmp_path).run()
    assert rows(tmp_path) == numbered(0, 5) + numbered(7, 10)
    assert [position for position, _ in gaps(tmp_path)] == [5]


async def test_a_clock_that_goes_back_changes_no_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_ = JournalWriter.open
    times = iter(range(2_000_000_000, 0, -1_000))

    def backwards(*arguments: Any, **options: Any) -> JournalWriter:
        return open_(*arguments, **options, clock=lambda: float(next(times)))

    monkeypatch.setattr(JournalWriter, "open", backwards)
    publisher = Publisher(*numbered(0, 5), asyncio.Event())
    async with publisher.serve(NO_RESUME):
        for expected in (5, 10, 15):
            each = collector(tmp_path)
            async with collecting(each):
                await until(lambda expected=expected, each=each: each.progress.position == expected)
    assert rows(tmp_path) == 3 * numbered(0, 5)
    assert [position for position, _ in gaps(tmp_path)] == [5, 10]


async def test_an_item_above_the_limit_is_a_gap_and_an_error(tmp_path: Path) -> None:
    publisher = Publisher(b"1", b"2", b'"%s"' % (b"a" * 100_000))
    limits = Settings(max_frame_bytes=70_000, fragment_bytes=1_000)
    async with publishing(publisher, RIVER):
        with pytest.raises(LimitExceeded, match="max_frame_bytes"):
            await collector(tmp_path, RIVER, RIVER_ROUTE, settings=limits).run()
    assert rows(tmp_path) == [b"1", b"2"]
    [(position, reason)] = gaps(tmp_path)
    assert position == 2
    assert "max_frame_bytes" in reason
