"""The routes of a served journal."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

import weirpool
from tests.journal.logs import SOURCE, write
from tests.waiting import until
from weirpool import Admitted, Bearer, Connection, Metadata, Payload, Rejected, Service, Setup, SetupRejected
from weirpool.errors import JournalError, JournalMismatch, JournalMissing, LocalError
from weirpool.journal import Journal, asks, retention
from weirpool.journal.coordinator import FolderCoordinator, coordinator_of
from weirpool.serving import Action, capacity, serve_journal, service
from weirpool.serving.collectors import Collectors
from weirpool.serving.messages import Describe, Description, Named, Read
from weirpool.serving.ranges import OVER, Part

from .served import Served, serving


def ask(served: Served, name: str, question: object, kind: object) -> Any:
    return Collectors(served.url).call(SOURCE, name, question, kind)


def test_another_log_of_this_name_is_refused(folder: Path, server: Served) -> None:
    with pytest.raises(JournalMismatch, match="removed and collected again"):
        ask(server, "describe", Describe(source=SOURCE, uuid="another"), Description)
    with pytest.raises(JournalMissing, match="no such log"):
        Journal(server.url).reader("absent")


def test_what_is_no_request_is_refused(server: Served) -> None:
    for question in ({"source": 5}, [], Named(source="../../etc")):
        with pytest.raises(LocalError, match=r"not a request|cannot name"):
            ask(server, "describe", question, Description)


def test_a_question_may_not_be_too_large(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Journal(server.url).reader(SOURCE)
    with pytest.raises(LocalError, match="the columns of a journal are position, time"):
        list(reader.read(0, 10, columns=["secret"]))
    with pytest.raises(LocalError, match="at most 100,000 parts"):
        ask(server, "describe", Describe(source=SOURCE, split=(0, 1_000_000, 1, None)), Description)
    monkeypatch.setattr(service, "MAX_PARTS", 100)
    with pytest.raises(LocalError, match="at most 100 parts"):
        ask(server, "describe", Describe(source=SOURCE, split=(0, 9_000, None, 1)), Description)


def test_those_who_wait_for_a_group_hold_no_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write(tmp_path, 100)
    asks.prepare(tmp_path)
    with serving(tmp_path) as served, ThreadPoolExecutor(20) as threads:
        desk = coordinator_of(served.url)
        assert desk is not None
        claims = [threads.submit(desk.commit, SOURCE, f"r{number}", 5, query="q") for number in range(20)]
        until_true(lambda: len(retention.cursors(folder)) == 20)
        # Four threads serve all others.
        assert desk.cursors(SOURCE).keys() == retention.cursors(folder).keys()
        assert sum(batch.num_rows for batch in Journal(served.url).reader(SOURCE).read(0, 100)) == 100
        assert not any(claim.done() for claim in claims)
        for file in [file for files in asks.asked(tmp_path).values() for file in files]:
            file.unlink()
        assert [claim.result(10) for claim in claims] == [5] * 20
        monkeypatch.setattr(asks, "PATIENCE", 0.01)
        with pytest.raises(JournalError, match="the owner of this log's group has not stored that"):
            desk.commit(SOURCE, "new", 5, query="q")


def until_true(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_ranges_take_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # THREATS 111: the first one is not read, and gives the only place back.
    monkeypatch.setattr(capacity, "MAX_READS", 1)
    write(tmp_path, *[10_000] * 100)
    with serving(tmp_path) as served:
        journal = Journal(served.url)
        first, second = (journal.reader(SOURCE).read(0, 1_000_000) for _ in range(2))
        rows = next(first).num_rows
        assert sum(batch.num_rows for batch in second) == 1_000_000
        assert rows + sum(batch.num_rows for batch in first) == 1_000_000


async def test_names_have_shares_and_leave_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # THREATS 111
    monkeypatch.setattr(capacity, "MAX_HOLDS", 8)
    mine = Service()
    serve_journal(mine, tmp_path)
    owner = {"pid": 1, "host": "h", "since": "2026-11-27T00:00:00Z"}

    def accept(setup: Setup) -> Admitted:
        return Admitted(principal=setup.payload.data.decode())

    async with weirpool.serve(mine, f"rsocket+memory://{tmp_path.name}", acceptor=accept) as server:
        async with AsyncExitStack() as stack:
            peers = [await stack.enter_async_context(weirpool.connect(server.urls[0], setup=who)) for who in ("a", "b")]
            held = dict.fromkeys("ab", 0)
            for who, peer in zip("ab", peers, strict=True):
                for number in range(6):
                    asked = msgspec.json.encode({"name": f"{who}{number}", "owner": owner})
                    stream = await stack.enter_async_context(peer.stream("weirpool.journal.hold", asked))
                    try:
                        held[who] += (await anext(aiter(stream))).data == b"held"
                    except Rejected as error:
                        assert error.temporary and "names that are held here" in error.message
            assert held == {"a": 4, "b": 2}
            assert len(list((tmp_path / "_readers").iterdir())) == 6
        await until(lambda: not list((tmp_path / "_readers").iterdir()))


async def test_files_of_names_that_nobody_holds_are_removed(tmp_path: Path) -> None:
    held = FolderCoordinator(str(tmp_path)).hold("held")
    assert held is not None
    (tmp_path / "_readers" / "killed").write_text("{}")
    serve_journal(Service(), tmp_path)
    assert [path.name for path in (tmp_path / "_readers").iterdir()] == ["held"]
    held.close()
    assert not list((tmp_path / "_readers").iterdir())


def routes(path: Path) -> dict[str, Any]:
    """Return the handlers of a journal, to be called without a connection."""
    found = Service()
    serve_journal(found, path)
    return {route: found.find(kind, route).function for kind, route in found.routes()}  # type: ignore[union-attr]


@pytest.fixture
def anybody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "current_connection", lambda: Connection("rsocket", "c", False))


async def test_a_client_may_go_away_while_the_disk_is_slow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, anybody: None
) -> None:
    write(tmp_path, 10)
    reading, go = threading.Event(), threading.Event()
    closed: list[bool] = []

    def chunks(*arguments: Any, **named: Any) -> Iterator[Part]:
        try:
            reading.set()
            go.wait(10)
            yield Part(pa.py_buffer(b"x"), OVER)
        finally:
            closed.append(True)

    monkeypatch.setattr(service, "chunks", chunks)
    uuid = Journal(tmp_path).reader(SOURCE).uuid
    asked = Payload(msgspec.json.encode(Read(source=SOURCE, uuid=uuid, first=0, end=10)))
    items = aiter(routes(tmp_path)["weirpool.journal.read"](asked))
    coming = asyncio.ensure_future(anext(items))
    await asyncio.to_thread(reading.wait, 10)
    coming.cancel()
    asyncio.get_running_loop().call_later(0.01, go.set)
    with pytest.raises(asyncio.CancelledError):
        await coming
    assert closed == [True]


def test_only_a_folder_is_served_and_only_once(tmp_path: Path) -> None:
    mine = Service()
    serve_journal(mine, tmp_path)
    with pytest.raises(LocalError, match="already registered"):
        serve_journal(mine, tmp_path)
    with pytest.raises(LocalError, match="where it is written"):
        serve_journal(Service(), "s3://bucket/journal")


@pytest.mark.parametrize("allowed", [set(), {Action.READ}, {Action.READ, Action.COMMIT}, set(Action)])
def test_clients_do_what_they_may(tmp_path: Path, allowed: set[Action]) -> None:
    write(tmp_path, 10)

    def authorize(connection: Connection, action: Action) -> bool:
        assert connection.protocol == "rsocket"
        return action in allowed

    with serving(tmp_path, authorize=authorize) as served:
        desk = coordinator_of(served.url)
        assert desk is not None
        tried: dict[Action, Callable[[], object]] = {
            Action.READ: lambda: Journal(served.url).reader(SOURCE),
            Action.COMMIT: lambda: desk.commit(SOURCE, "a", 5, query=None),
            Action.SEEK: lambda: desk.seek(SOURCE, "b", 5),
            Action.FORGET: lambda: ask(served, "forget", Named(source=SOURCE, reader="a"), dict),
            Action.DELETE: lambda: desk.delete(SOURCE, 5, force=False),
        }
        for action, attempt in tried.items():
            if action in allowed:
                attempt()
            else:
                with pytest.raises(JournalError, match=f"{action} is not allowed"):
                    attempt()


def test_a_token_from_the_environment_opens_the_door(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, 10)

    def accept(setup: Setup) -> None:
        if Metadata.decode(setup.payload.metadata).auth != Bearer("s3cret"):
            raise SetupRejected("no valid token")

    with serving(tmp_path, acceptor=accept) as served:
        monkeypatch.setenv("WEIRPOOL_JOURNAL_TOKEN", "wr0ng")
        with pytest.raises(JournalError, match=r"refuses this client .*no valid token") as refused:
            Journal(served.url).reader(SOURCE)
        assert "wr0ng" not in str(refused.value)
        monkeypatch.setenv("WEIRPOOL_JOURNAL_TOKEN", "s3cret")
        assert Journal(served.url).reader(SOURCE).end == 10


def test_a_service_without_a_journal_says_so(tmp_path: Path) -> None:
    served = Served(Service(), "rsocket+tcp://127.0.0.1:0")
    served.start()
    try:
        with pytest.raises(JournalError, match="does it serve a journal"):
            Journal(served.url).sources()
    finally:
        served.stop()
