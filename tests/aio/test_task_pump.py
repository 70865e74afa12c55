from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.aio.fakes import AsyncSource, Source, fake_exchanges
from tests.aio.test_pump import STREAM, begin, completed, grant, numbers, sent
from tests.builds import Build
from tests.waiting import turns, until

# Async iterables.


async def test_async_items_go_as_credit_allows(build: Build) -> None:
    exchanges = fake_exchanges(build, asyncio.get_running_loop())
    source = AsyncSource(*numbers(0, 10))
    half = begin(build, exchanges, source)
    for end in (3, 5, 10):
        grant(exchanges, half, end - len(sent(exchanges)))
        # One item is taken ahead of credit.
        await until(lambda end=end: (source.taken, len(sent(exchanges))) == (min(end + 1, 10), end))
    await until(lambda: not exchanges.tasks)
    assert sent(exchanges) == numbers(0, 10)
    assert completed(exchanges)
    assert (source.closed, exchanges.ended, exchanges.tasks) == (1, [half], set())


async def test_async_items_wait_for_the_link_and_for_their_credit(build: Build) -> None:
    exchanges = fake_exchanges(build, asyncio.get_running_loop())
    source = AsyncSource(*numbers(0, 3))
    exchanges.flow.paused = True
    half = begin(build, exchanges, source, 2)
    await until(lambda: half.waiter is not None)
    # Credit and a writable link are both needed.
    grant(exchanges, half, 1)
    await turns(5)
    assert sent(exchanges) == []
    exchanges.flow.writing_resumed()
    await until(lambda: completed(exchanges))
    assert sent(exchanges) == numbers(0, 3)


async def test_source_is_told_the_demand(build: Build) -> None:
    told: list[int] = []

    class Told(AsyncIterator[bytes]):
        def __init__(self) -> None:
            self._items = aiter(AsyncSource(*numbers(0, 6)))

        async def __anext__(self) -> bytes:
            return await anext(self._items)

        def demanded(self, credit: int) -> None:
            told.append(credit)

    exchanges = fake_exchanges(build, asyncio.get_running_loop())
    half = begin(build, exchanges, Told(), 2)
    await until(lambda: len(sent(exchanges)) == 2 and half.waiter is not None)
    grant(exchanges, half, 3)
    await until(lambda: len(sent(exchanges)) == 5 and half.waiter is not None)
    grant(exchanges, half, 4)
    await until(lambda: completed(exchanges))
    # It is told after each item, and a grant is for what follows an item that waits.
    assert told == [2, 1, 0, 2, 2, 1, 0, 3, 3]


async def test_async_batches_are_split_by_credit(build: Build) -> None:
    payload = build.module("weirpool.payload")
    exchanges = fake_exchanges(build, asyncio.get_running_loop())
    run = payload.PayloadRun.of([payload.Payload(data) for data in numbers(1, 6)])
    half = begin(build, exchanges, AsyncSource(b"0", run, b"6"), 2)
    for end in range(2, 7):
        await until(lambda end=end: len(sent(exchanges)) == end and half.waiter is not None)
        grant(exchanges, half, 1)
    await until(lambda: completed(exchanges))
    assert sent(exchanges) == numbers(0, 7)


async def test_source_that_never_waits_yields_to_others(build: Build) -> None:
    exchanges = fake_exchanges(build, asyncio.get_running_loop())
    width, count = 1_000, 1_000
    source = Source(count, width)

    async def items() -> AsyncIterator[bytes]:
        for item in source:
            yield item

    begin(build, exchanges, items(), count)
    waits = 0
    while not completed(exchanges):
        before = source.taken
        await turns(1)
        waits += 1
        assert source.taken - before <= build.module("weirpool.aio.scheduler").QUANTUM // width + 1
    assert waits >= 10


async def test_failing_async_source_fails_stream_after_its_items(build: Build) -> None:
    exchanges = fake_exchanges(build, asyncio.get_running_loop())
    error = ValueError("broken")
    source = AsyncSource(b"0", error)
    half = begin(build, exchanges, source, 5)
    await until(lambda: exchanges.ended == [half])
    assert (sent(exchanges), source.closed) == ([b"0"], 1)
    assert exchanges.failed == [(error, "a handler")]
    assert not completed(exchanges)


async def test_cancel_closes_an_async_source_without_an_error(build: Build) -> None:
    exchanges = fake_exchanges(build, asyncio.get_running_loop())
    source = AsyncSource(*numbers(0, 10))
    half = begin(build, exchanges, source, 2)
    await until(lambda: half.waiter is not None)
    half.canceled()
    await until(lambda: exchanges.ended == [half])
    assert (source.closed, exchanges.failed, completed(exchanges)) == (1, [], False)


async def test_async_source_canceled_elsewhere_fails_the_stream(build: Build) -> None:
    exchanges = fake_exchanges(build, asyncio.get_running_loop())
    half = begin(build, exchanges, AsyncSource(*numbers(0, 10)), 2)
    await until(lambda: half.waiter is not None)
    half.task.cancel()
    await until(lambda: exchanges.ended == [half])
    ((error, _),) = exchanges.failed
    assert isinstance(error, asyncio.CancelledError)


async def test_an_async_stream_that_is_over_stops_without_an_error(build: Build) -> None:
    exchanges = fake_exchanges(build, asyncio.get_running_loop())
    source = AsyncSource(*numbers(0, 10))
    half = begin(build, exchanges, source, 2)
    await until(lambda: half.waiter is not None)
    exchanges.session.closed.add(STREAM)
    grant(exchanges, half, 5)
    await until(lambda: exchanges.ended == [half])
    assert (source.closed, exchanges.failed) == (1, [])


# Awaitable sources.


@pytest.mark.parametrize("kind", ["plain", "async"])
async def test_a_coroutine_may_return_the_items(build: Build, kind: str) -> None:
    exchanges = fake_exchanges(build, asyncio.get_running_loop())

    async def source() -> Any:
        await asyncio.sleep(0)
        return numbers(0, 3) if kind == "plain" else AsyncSource(*numbers(0, 3))

    begin(build, exchanges, source(), 2)
    await until(lambda: len(sent(exchanges)) == 2)
    # The current half receives the grant.
    grant(exchanges, exchanges.outbound[STREAM], 1)
    await until(lambda: completed(exchanges))
    await until(lambda: not exchanges.tasks)
    assert sent(exchanges) == numbers(0, 3)
    assert (len(exchanges.ended), exchanges.failed) == (1, [])


async def test_credit_that_comes_before_the_items_counts(build: Build) -> None:
    exchanges = fake_exchanges(build, asyncio.get_running_loop())
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    half = begin(build, exchanges, future)
    grant(exchanges, half, 3)
    future.set_result(numbers(0, 3))
    await until(lambda: completed(exchanges))
    assert sent(exchanges) == numbers(0, 3)


async def test_a_coroutine_that_returns_no_items_fails_the_stream(build: Build) -> None:
    exchanges = fake_exchanges(build, asyncio.get_running_loop())

    async def source() -> None:
        return None

    half = begin(build, exchanges, source(), 2)
    await until(lambda: exchanges.ended == [half])
    ((error, _),) = exchanges.failed
    assert "not NoneType" in str(error)


async def test_a_coroutine_that_is_canceled_before_it_began_is_closed(build: Build) -> None:
    # Otherwise Python warns that it was never awaited, and warnings are errors here.
    exchanges = fake_exchanges(build, asyncio.get_running_loop())

    async def source() -> list[bytes]:
        raise AssertionError("it was canceled")

    work = source()
    half = begin(build, exchanges, work, 2)
    half.canceled()
    await until(lambda: exchanges.ended == [half])
    assert work.cr_frame is None
    assert exchanges.failed == []
