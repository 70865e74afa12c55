from __future__ import annotations

import asyncio
import os
import re
import signal
from pathlib import Path

import pytest

from tests.feeds.helpers import feeds
from weirpool.errors import ConnectError
from weirpool.feeds import command
from weirpool.feeds.command import collect_feeds
from weirpool.feeds.file import FeedsFile
from weirpool.feeds.running import Control, Runner


@pytest.fixture(autouse=True)
def no_setup(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the logs and limits of the process that runs the tests alone."""
    monkeypatch.setattr(command, "prepare", lambda log: None)


def test_signal_is_returned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def interrupted(file: FeedsFile, runner: Runner, control: Control) -> list[str]:
        signal.raise_signal(signal.SIGINT)
        await control.wait(60)
        return []

    monkeypatch.setattr(command, "run_feeds", interrupted)
    assert collect_feeds(feeds(tmp_path, "a")) == signal.SIGINT


def test_status_is_served_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers: list[bytes] = []

    async def ended(file: FeedsFile, runner: Runner, control: Control) -> list[str]:
        [port] = re.findall(r"^status on http://127.0.0.1:(\d+)/", capsys.readouterr().out)
        for host in ("box.example", "evil.example"):
            reader, writer = await asyncio.open_connection("127.0.0.1", int(port))
            writer.write(f"GET /status HTTP/1.0\r\nHost: {host}\r\n\r\n".encode())
            answers.append((await reader.read()).split()[1])
            writer.close()
        return []

    monkeypatch.setattr(command, "run_feeds", ended)
    assert collect_feeds(feeds(tmp_path, "a"), http=("127.0.0.1", 0), names=["box.example"]) == signal.SIGTERM
    assert answers == [b"200", b"403"]
    with pytest.raises(ConnectError, match="cannot listen on 256"):
        collect_feeds(feeds(tmp_path, "a"), http=("256.0.0.1", 0))


def test_process_ends_although_a_disk_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Exited(Exception):
        pass

    async def hung(file: FeedsFile, runner: Runner, control: Control) -> list[str]:
        return ["a"]

    def leave(code: int) -> None:
        raise Exited(code)

    monkeypatch.setattr(command, "run_feeds", hung)
    monkeypatch.setattr(os, "_exit", leave)
    with pytest.raises(Exited, match="1"):
        collect_feeds(feeds(tmp_path, "a"))
