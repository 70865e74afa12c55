from __future__ import annotations

from typing import Any

from tests.aio.fakes import Source
from tests.aio.test_pump import begin, completed, exchanges, quantum, sent
from tests.builds import Build

__all__ = ["exchanges"]


def test_empty_batches_are_skipped(build: Build, exchanges: Any) -> None:
    empty = build.module("penstock.payload").PayloadRun.of([])
    begin(build, exchanges, [empty, b"0", empty], 5)
    assert sent(exchanges) == [b"0"]
    assert completed(exchanges)


def test_slow_moment_does_not_last(build: Build, exchanges: Any) -> None:
    half = begin(build, exchanges, Source(100_000, 1_000), 100_000)
    half.slow(10.0)
    assert half.quantum == 3
    for _ in range(15):
        half.step()
    assert half.quantum == quantum(build)
