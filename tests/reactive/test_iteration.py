from __future__ import annotations

from asyncio import ensure_future
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing

import pytest

from tests.reactive.probe import IDLE_TURNS, Scripted, subscribed
from tests.waiting import turns, until
from weirpool import CreditExceeded, LocalError
from weirpool.reactive import from_aiter, to_aiter
from weirpool.reactive.iteration import Window


class Source:
    """An async generator that records how far it got."""

    def __init__(self) -> None:
        self.made = 0
        self.closed = False

    async def __aiter__(self) -> AsyncIterator[int]:
        try:
            while True:
                self.made += 1
                yield self.made
        finally:
            self.closed = True


async def test_async_iterable_is_read_one_item_ahead() -> None:
    source = Source()
    probe = subscribed(from_aiter(source), first=3)
    await turns(IDLE_TURNS)
    assert (probe.items, source.made) == ([1, 2, 3], 4)
    probe.subscription.cancel()
    await until(lambda: source.closed)


async def test_a_plain_generator_is_closed_when_it_is_canceled() -> None:
    seen: list[str] = []

    def numbers() -> Iterator[int]:
        try:
            yield from range(10)
        finally:
            seen.append("closed")

    probe = subscribed(from_aiter(numbers()), first=1)
    await turns(IDLE_TURNS)
    probe.subscription.cancel()
    await until(lambda: seen == ["closed"])
    assert probe.items == [0]


async def test_the_end_needs_no_demand() -> None:
    probe = subscribed(from_aiter([1, 2]), first=2)
    assert await probe.ended() == "complete"
    assert await subscribed(from_aiter([])).ended() == "complete"


async def test_failing_work_passes_its_error() -> None:
    async def failing() -> AsyncIterator[int]:
        yield 1
        raise KeyError("lost")

    probe = subscribed(from_aiter(failing()), first=5)
    assert isinstance(await probe.ended(), KeyError)
    assert probe.items == [1]


async def test_each_subscriber_has_its_own_items_and_demand() -> None:
    publisher = from_aiter([1, 2, 3])
    first, second = subscribed(publisher, first=1), subscribed(publisher, first=3)
    assert await second.ended() == "complete"
    assert (first.items, second.items) == ([1], [1, 2, 3])


async def test_long_iterable_yields_to_other_tasks() -> None:
    probe = subscribed(from_aiter(iter(int, 1)), first=1 << 40)
    await turns(IDLE_TURNS)
    assert len(probe.items) > 100
    probe.subscription.cancel()


async def test_wrong_iterables_and_subscribers_raise() -> None:
    with pytest.raises(LocalError, match="not int"):
        from_aiter(5)  # type: ignore[arg-type]
    with pytest.raises(LocalError, match="NoneType"):
        from_aiter([]).subscribe(None)  # type: ignore[arg-type]


async def test_publisher_and_iterator_convert_both_ways() -> None:
    assert [item async for item in to_aiter(from_aiter(range(1000)), window=7)] == list(range(1000))


async def test_to_aiter_subscribes_lazily_and_requests_half_windows() -> None:
    publisher = Scripted()
    async with aclosing(to_aiter(publisher, window=4)) as items:
        assert publisher.subscriber is None
        task = ensure_future(anext(items))
        await until(lambda: publisher.requested == [4])
        for number in range(4):
            publisher.subscriber.on_next(number)
        assert await task == 0
        assert publisher.requested == [4]
        assert await anext(items) == 1
        assert await anext(items) == 2
        assert publisher.requested == [4, 2]
        assert publisher.canceled == 0
    assert publisher.canceled == 1


async def test_an_error_comes_after_the_items() -> None:
    publisher = Scripted()
    items = to_aiter(publisher, window=4)
    task = ensure_future(anext(items))
    await until(lambda: publisher.requested == [4])
    publisher.subscriber.on_next(1)
    publisher.subscriber.on_next(2)
    publisher.subscriber.on_error(KeyError("lost"))
    publisher.subscriber.on_complete()
    assert [await task, await anext(items)] == [1, 2]
    with pytest.raises(KeyError):
        await anext(items)


async def test_unrequested_item_is_rejected() -> None:
    publisher = Scripted()
    items = to_aiter(publisher, window=2)
    task = ensure_future(anext(items))
    await until(lambda: publisher.requested == [2])
    for number in range(5):
        publisher.subscriber.on_next(number)
    assert publisher.canceled
    assert [await task, await anext(items)] == [0, 1]
    with pytest.raises(CreditExceeded, match=r"rule 1\.1"):
        await anext(items)


async def test_a_second_subscription_is_canceled() -> None:
    publisher, second = Scripted(), Scripted()
    items = to_aiter(publisher)
    task = ensure_future(anext(items))
    await until(lambda: bool(publisher.requested))
    publisher.subscriber.on_subscribe(second)
    assert (second.canceled, second.requested, publisher.canceled) == (1, [], 0)
    publisher.subscriber.on_next(1)
    assert await task == 1
    await items.aclose()


async def test_a_canceled_consumer_cancels() -> None:
    source = Source()
    items = to_aiter(from_aiter(source), window=1)
    assert await anext(items) == 1
    await items.aclose()
    await until(lambda: source.closed)


def test_a_window_has_room() -> None:
    with pytest.raises(LocalError, match="the window is 0"):
        Window(0)


async def test_missing_error_is_not_completion() -> None:
    script = Scripted()
    taking = ensure_future(anext(to_aiter(script)))
    await turns(IDLE_TURNS)
    with pytest.raises(LocalError, match="on_error"):
        script.subscriber.on_error(None)
    script.subscriber.on_error(ValueError("at last"))
    with pytest.raises(ValueError, match="at last"):
        await taking
