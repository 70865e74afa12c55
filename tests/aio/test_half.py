from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.aio.fakes import Source, fake_exchanges
from tests.aio.test_pump import STREAM, begin, completed, exchanges, numbers, quantum, sent
from tests.builds import Build
from tests.missing import need_module
from tests.waiting import turns

__all__ = ["exchanges"]


def test_empty_batches_are_skipped(build: Build, exchanges: Any) -> None:
    empty = build.module("weirpool.payload").PayloadRun.of([])
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
    payload = build.module("weirpool.payload")
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


def test_slow_source_gets_short_bursts_from_the_first_one_on(build: Build, exchanges: Any) -> None:
    source = Source(10_000, 10)
    exchanges.flow.lane.scheduler.clock = lambda: source.taken * 0.0011
    begin(build, exchanges, source, 10_000)
    assert source.taken == 2
    for _ in range(20):
        before = source.taken
        exchanges.flow.loop.turn()
        assert 0 <= source.taken - before <= 3
    assert source.taken >= 12


def test_burst_ends_when_its_source_becomes_slow(build: Build, exchanges: Any) -> None:
    source = Source(10_000, 10)
    exchanges.flow.lane.scheduler.clock = lambda: max(source.taken - 1_000, 0) * 0.05
    begin(build, exchanges, source, 10_000)
    # It looks at the clock after every 32 items.
    assert 1_000 < source.taken <= 1_032


async def test_async_source_that_computes_for_long_yields_to_others(build: Build) -> None:
    exchanges = fake_exchanges(build, asyncio.get_running_loop())
    source = Source(30, 10)
    exchanges.flow.lane.scheduler.clock = lambda: source.taken * 0.05

    async def items() -> AsyncIterator[bytes]:
        for item in source:
            yield item

    begin(build, exchanges, items(), 30)
    while not completed(exchanges):
        before = source.taken
        await turns(1)
        assert source.taken - before <= 3


def test_run_that_finds_no_credit_does_not_cost_later_turns(build: Build, exchanges: Any) -> None:
    payload = build.module("weirpool.payload")
    half = begin(build, exchanges, Source(1), 0)
    half.many, half.burst_left = payload.PayloadRun.of([payload.Payload(b"0")]), 100
    half.send_many()
    assert half.burst_left == 0


def test_item_without_credit_costs_no_part_of_the_burst(build: Build, exchanges: Any) -> None:
    """Another stream of a River session may have used the credit that they share."""
    exceeded = build.module("weirpool.errors").CreditExceeded("used")

    def put(stream_id: int, payload: object) -> int:
        raise exceeded

    half = begin(build, exchanges, Source(1), 0)
    half.put, half.burst_left = put, 100
    half.send(b"item")
    assert (half.burst_left, half.credit, len(half.many)) == (100, 0, 1)


@pytest.mark.parametrize("kind", ["items", "run", "numbers", "record batch", "slow items"])
def test_step_returns_the_bytes_that_it_has_sent(build: Build, exchanges: Any, kind: str) -> None:
    payload = build.module("weirpool.payload")
    data = numbers(0, 200, 1_000)
    source: Any = [*data, *data]
    if kind == "run":
        run = payload.PayloadRun.of([payload.Payload(each) for each in data])
        source = [run, run]
    elif kind == "numbers":
        source = [payload.PayloadRun.fixed(b"".join(data), 8)] * 2
    elif kind == "record batch":
        pyarrow = need_module("pyarrow")
        source = [pyarrow.record_batch({"data": pyarrow.array(data, pyarrow.binary())})] * 2
    half = begin(build, exchanges, source, 0)
    exchanges.flow.lane.scheduler.clock = lambda: 0.1 * len(sent(exchanges)) if kind == "slow items" else 0.0
    exchanges.session.left[STREAM] = half.credit = 1 << 40
    counted = 0
    for _ in range(4):
        exchanges.flow.lane.scheduler.begun = exchanges.flow.lane.scheduler.clock()
        counted += half.step()
        expected = sum(len(each) + 16 for each in sent(exchanges))
        assert counted == expected
        if kind != "run":
            assert expected <= 6 * quantum(build)


def test_quick_burst_is_not_cut_whatever_the_time_is(build: Build, exchanges: Any) -> None:
    source = Source(1_000, 1_000)
    exchanges.flow.lane.scheduler.clock = lambda: 1e6 + source.taken * 1e-6
    begin(build, exchanges, source, 1_000)
    assert source.taken == quantum(build) // 1_016 + 1
