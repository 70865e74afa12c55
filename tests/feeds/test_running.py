from __future__ import annotations

import asyncio
import signal
import socket
from pathlib import Path

import pytest

from tests.feeds.helpers import feeds
from tests.waiting import until
from weirpool.feeds import running
from weirpool.feeds.file import FeedsFile
from weirpool.feeds.running import Control, run_feeds


class Recorder:
    """A runner that notes what it is told."""

    def __init__(self) -> None:
        self.applied: list[list[str]] = []
        self.published = 0

    async def apply(self, file: FeedsFile) -> None:
        self.applied.append(list(file.feeds))

    def publish(self) -> None:
        self.published += 1

    async def stop(self) -> list[str]:
        return ["late"]


async def test_versions_are_applied_until_the_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "TICK_SECONDS", 0.001)
    runner, control = Recorder(), Control()
    task = asyncio.create_task(run_feeds(feeds(tmp_path, "a"), runner, control))
    await until(lambda: runner.published > 2)
    control.give(feeds(tmp_path, "b"))
    control.give(feeds(tmp_path, "c"))
    await until(lambda: len(runner.applied) == 2)
    control.stop()
    control.give(feeds(tmp_path, "d"))
    assert await task == ["late"]
    assert runner.applied == [["a"], ["c"]]


async def test_signals_stop(tmp_path: Path) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        control = Control()
        with control.listening():
            task = asyncio.create_task(run_feeds(feeds(tmp_path, "a"), Recorder(), control))
            await asyncio.sleep(0)
            signal.raise_signal(number)
            await task
        assert control.stopped_by is number


async def test_service_manager_is_told_of_each_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(tmp_path / "notify"))
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        runner, control = Recorder(), Control()
        task = asyncio.create_task(run_feeds(feeds(tmp_path, "a"), runner, control))
        await until(lambda: runner.published == 1)
        control.give(feeds(tmp_path, "b"))
        await until(lambda: runner.published == 2)
        control.stop()
        await task
        told = [receiver.recv(100).partition(b"\n")[0] for _ in range(6)]
    assert told == [b"READY=1", b"WATCHDOG=1", b"RELOADING=1", b"READY=1", b"WATCHDOG=1", b"STOPPING=1"]
