from __future__ import annotations

import asyncio
import json
import logging
import os
import resource
import threading
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

import pytest

from tests.feeds.helpers import config
from tests.journal.publishing import Publisher, cut, numbered
from tests.logs import kept_logging
from tests.waiting import until
from weirpool.feeds.feed import Feed
from weirpool.feeds.process import THREADS, check_files, leave, on_batch, prepare, use_threads
from weirpool.feeds.shared import Shared


@contextmanager
def started(feed: Feed) -> Iterator[None]:
    """Run a feed beside the block."""
    task = asyncio.create_task(feed.run())
    try:
        yield
    finally:
        task.cancel()


@pytest.fixture
def own_logging() -> Iterator[None]:
    """Let the process set up its logs."""
    with kept_logging():
        yield


@pytest.mark.usefixtures("own_logging")
def test_logs_are_text_or_json(capsys: pytest.CaptureFixture[str]) -> None:
    prepare("text")
    logging.getLogger("weirpool.feeds").info("hello %s", "x")
    assert capsys.readouterr().err == "weirpool: hello x\n"
    prepare("json")
    logging.getLogger("weirpool.feeds").info("hello %s", "x")
    assert json.loads(capsys.readouterr().err)["message"] == "hello x"


@pytest.mark.usefixtures("own_logging")
@pytest.mark.parametrize("form", ["text", "json"])
async def test_lines_of_a_connection_name_the_feed(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prepare(form)
    held = asyncio.Event()
    told: list[str] = []
    async with AsyncExitStack() as stack:
        servers = {}
        for name in ("north", "south"):
            url = f"rsocket+memory://{name}"
            servers[name] = await stack.enter_async_context(Publisher(*numbered(0, 3), held).serve(url=url))
            feed = Feed(name, config(tmp_path, url=url), tmp_path, Shared())
            stack.enter_context(started(feed))
            await until(lambda feed=feed: feed.status().rows == 3)
        capsys.readouterr()
        cut(servers["south"])

        def resumed() -> bool:
            told.extend(capsys.readouterr().err.splitlines())
            return any("resuming" in line for line in told)

        await until(resumed)
    if form == "json":
        assert {json.loads(line)["feed"] for line in told} == {"south"}
    else:
        assert all(line.startswith("weirpool: south: ") for line in told)


@pytest.mark.usefixtures("own_logging")
def test_as_many_files_as_the_system_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (10, 500))
    monkeypatch.setattr(resource, "setrlimit", lambda kind, limit: limits.append(limit))
    prepare("text")
    assert limits == [(500, 500)]


def test_too_few_files_are_told(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (1_000, 1_000))
    check_files(100)
    assert caplog.text == ""
    check_files(500)
    assert "500 feeds may need 3000 open files, and the limit is 1000; raise it" in caplog.text


def test_process_ends_at_once_if_something_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    codes: list[int] = []
    monkeypatch.setattr(os, "_exit", codes.append)
    leave([])
    assert codes == []
    leave(["feed"])
    assert codes == [1]


async def test_threads_are_bounded() -> None:
    use_threads()
    gate, begun = threading.Event(), []

    def wait() -> None:
        begun.append(threading.current_thread().name)
        gate.wait(60)

    tasks = [asyncio.ensure_future(asyncio.to_thread(wait)) for _ in range(3 * THREADS)]
    await until(lambda: len(begun) == THREADS)
    assert len(set(begun)) == THREADS
    gate.set()
    await asyncio.gather(*tasks)


def test_batches_are_not_traced_without_a_tracer() -> None:
    assert on_batch()("feed") is None
