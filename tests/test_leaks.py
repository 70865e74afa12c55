"""What a test leaves to those after it is noticed."""

from __future__ import annotations

import signal
import threading

import pytest

from tests.leaks import Handlers, Threads


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_handler_of_a_signal_is_noticed_and_put_back(number: signal.Signals) -> None:
    handler = signal.getsignal(number)
    other = signal.SIG_DFL if handler is signal.SIG_IGN else signal.SIG_IGN
    before = Handlers()
    signal.signal(number, other)
    assert before.left() == [f"{number.name} is handled by {other!r}"]
    assert signal.getsignal(number) is handler
    assert before.left() == []


def test_thread_that_runs_is_noticed() -> None:
    before, end = Threads(), threading.Event()
    thread = threading.Thread(target=end.wait, name="left")
    thread.start()
    assert before.left(patience=0.01) == ["the thread 'left' is running"]
    end.set()
    assert before.left() == []


def test_threads_of_fixtures_and_those_that_last_may_run() -> None:
    end = threading.Event()
    threads = [threading.Thread(target=end.wait, name=name) for name in ("fixture", "weirpool-sync")]
    threads[0].start()
    before = Threads()
    threads[1].start()
    assert before.left(patience=0.01) == []
    end.set()
    for thread in threads:
        thread.join()
