from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

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


@pytest.mark.parametrize("kind", ["run", "push"])
def test_what_needs_no_credit_is_sent_a_burst_at_a_time(build: Build, exchanges: Any, kind: str) -> None:
    payload = build.module("penstock.payload")
    nothing = payload.PayloadRun.of([]) if kind == "run" else payload.MetadataPush(b"")
    taken = 0

    def source() -> Iterator[object]:
        nonlocal taken
        for _ in range(3 * quantum(build)):
            taken += 1
            yield nothing

    begin(build, exchanges, source(), 1)
    assert taken == quantum(build) // 16
    exchanges.flow.loop.turn()
    assert completed(exchanges)
