"""A worker answers in time, or the benchmarks end."""

from __future__ import annotations

import sys

import pytest
from benchmarks import processes
from benchmarks.processes import Variant, Worker

ECHO = "import sys\nprint('\"ready\"', flush=True)\nfor line in sys.stdin: print(line, end='', flush=True)"


def test_worker_answers_each_request() -> None:
    with Worker(Variant("echo", "echo", command=(sys.executable, "-c", ECHO))) as worker:
        assert worker.ready == "ready"
        assert worker.ask("calls", 1) == ["calls", 1]


def test_worker_that_does_not_answer_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "ANSWER_SECONDS", 0.1)
    silent = (sys.executable, "-c", "input()")
    with pytest.raises(SystemExit, match="a worker ended with -9"):
        Worker(Variant("silent", "silent", command=silent))


def test_worker_that_ends_is_reported() -> None:
    with pytest.raises(SystemExit, match="a worker ended with 3"):
        Worker(Variant("ended", "ended", command=(sys.executable, "-c", "raise SystemExit(3)")))
