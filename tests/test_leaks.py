"""What a test leaves to those after it is noticed."""

from __future__ import annotations

import asyncio
import signal
import socket
import threading

import pytest

from tests import leaks
from tests.leaks import Before, tasks_left


@pytest.fixture(autouse=True)
def _no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaks, "PATIENCE", 0.0)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_handler_of_a_signal_is_noticed_and_put_back(number: signal.Signals) -> None:
    handler, before = signal.getsignal(number), Before()
    signal.signal(number, signal.SIG_IGN)
    assert before.handlers_left() == [f"{number.name} is handled by {signal.SIG_IGN!r}"]
    assert signal.getsignal(number) is handler
    assert before.handlers_left() == []


def test_thread_is_noticed_unless_a_fixture_has_started_it() -> None:
    before, end = Before(), threading.Event()
    thread = threading.Thread(target=end.wait, name="left")
    thread.start()
    try:
        assert before.left() == ["the thread 'left' still runs"]
        before.note()
        assert before.left() == []
    finally:
        end.set()
        thread.join()


def test_connection_is_noticed() -> None:
    before = Before()
    with socket.socket() as left:
        [found] = before.left()
        assert found.startswith("socket:") and found.endswith(f"({left.fileno()}) is still open")
    assert before.left() == []


async def test_task_is_noticed() -> None:
    async def forgotten() -> None:
        await asyncio.Event().wait()

    task = asyncio.create_task(forgotten())
    [found] = await tasks_left()
    assert "forgotten" in found
    task.cancel()
    await asyncio.wait([task])
    assert await tasks_left() == []
