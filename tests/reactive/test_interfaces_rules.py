"""The rules of Reactive Streams within one process, for all publishers of the package; names begin with numbers."""

from __future__ import annotations

import gc
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from threading import Thread
from typing import Any

import pytest

import weirpool
from tests.reactive.probe import IDLE_TURNS, Probe, subscribed
from tests.waiting import turns, until
from weirpool import LocalError, Payload, Service
from weirpool.reactive import Publisher, from_aiter, from_observable, publisher_of
from weirpool.reactive.interfaces import UNBOUNDED

LONG = 5_000
"""Items that overflow the stack if each is sent from within the request for it."""


class Cold:
    """An observable that sends its items when it is subscribed to, in a thread if told so."""

    def __init__(self, count: int, threaded: bool) -> None:
        self.count = count
        self.threaded = threaded

    def subscribe(self, on_next: Callable[[Any], None], on_error: Any, on_completed: Callable[[], None]) -> Cold:
        def run() -> None:
            for number in range(self.count):
                on_next(number)
            on_completed()

        if self.threaded:
            Thread(target=run).start()
        else:
            run()
        return self

    def dispose(self) -> None: ...


class Generated:
    """An async iterable, which each subscriber reads from its start."""

    def __init__(self, count: int) -> None:
        self.count = count

    async def __aiter__(self) -> AsyncIterator[int]:
        for number in range(self.count):
            yield number


def observed(count: int, threaded: bool) -> Publisher[Any]:
    return from_observable(Cold(count, threaded), bound=LONG)  # type: ignore[arg-type]


LOCAL: dict[str, Callable[[int], Publisher[Any]]] = {
    "iterable": lambda count: from_aiter(range(count)),
    "generator": lambda count: from_aiter(Generated(count)),
    "observable": lambda count: observed(count, False),
    "threaded": lambda count: observed(count, True),
}
SOURCES = (*LOCAL, "remote")
pytestmark = pytest.mark.parametrize("source", SOURCES)


@asynccontextmanager
async def publishing(source: str, count: int = 10) -> AsyncIterator[Publisher[Any]]:
    """Yield a publisher of `count` items."""
    if source in LOCAL:
        yield LOCAL[source](count)
        return
    service = Service()

    @service.stream("tests.numbers")
    def numbers(request: Payload) -> list[bytes]:
        return [b"%d" % number for number in range(count)]

    async with weirpool.serve(service, "rsocket+memory://interfaces"):
        async with weirpool.connect("rsocket+memory://interfaces") as peer:
            yield publisher_of(peer, "tests.numbers")


async def test_1_9_subscribing_none_raises(source: str) -> None:
    async with publishing(source) as publisher:
        with pytest.raises(LocalError, match="Subscriber"):
            publisher.subscribe(None)  # type: ignore[arg-type]


async def test_1_9_subscribe_returns_normally_though_a_subscriber_raises(
    source: str, caplog: pytest.LogCaptureFixture
) -> None:
    class Refusing(Probe):
        def on_subscribe(self, subscription: Any) -> None:
            super().on_subscribe(subscription)
            raise ValueError("not now")

    async with publishing(source) as publisher:
        probe = Refusing(first=5)
        publisher.subscribe(probe)
        probe.subscription.request(5)
        await turns(IDLE_TURNS)
        assert (probe.items, probe.ends) == ([], [])
    assert "not now" in caplog.text


async def test_1_11_subscribers_are_independent(source: str) -> None:
    async with publishing(source) as publisher:
        few, many = subscribed(publisher, first=1), subscribed(publisher, first=UNBOUNDED)
        assert await many.ended() == "complete"
        assert (len(few.items), few.ends, len(many.items)) == (1, [], 10)
        few.subscription.cancel()


async def test_2_13_subscriber_that_raises_has_canceled(source: str, caplog: pytest.LogCaptureFixture) -> None:
    class Failing(Probe):
        def on_next(self, item: Any) -> None:
            super().on_next(item)
            raise ValueError("no more")

    async with publishing(source) as publisher:
        probe = Failing(first=5)
        publisher.subscribe(probe)
        await until(lambda: bool(probe.items))
        probe.subscription.request(5)
        await turns(IDLE_TURNS)
        assert (len(probe.items), probe.ends) == (1, [])
    assert "no more" in caplog.text


async def test_3_2_request_may_be_called_within_signals(source: str) -> None:
    async with publishing(source) as publisher:
        probe = subscribed(publisher, first=1, each=1)
        assert await probe.ended() == "complete"
        assert len(probe.items) == 10


async def test_3_3_requests_within_items_do_not_recurse(source: str) -> None:
    async with publishing(source, LONG) as publisher:
        probe = subscribed(publisher, first=1, each=1)
        assert await probe.ended() == "complete"
        assert len(probe.items) == LONG


async def test_3_6_and_3_7_nothing_follows_a_cancel(source: str) -> None:
    async with publishing(source) as publisher:
        probe = subscribed(publisher, first=1)
        await until(lambda: bool(probe.items))
        for _ in range(2):
            probe.subscription.cancel()
            probe.subscription.request(5)
            probe.subscription.request(0)
        await turns(IDLE_TURNS)
        assert (len(probe.items), probe.ends) == (1, [])


@pytest.mark.parametrize("count", [0, -1])
async def test_3_9_request_of_none_is_an_error(source: str, count: int) -> None:
    async with publishing(source) as publisher:
        probe = subscribed(publisher, first=1)
        await until(lambda: bool(probe.items))
        probe.subscription.request(count)
        error = await probe.ended()
        assert isinstance(error, LocalError) and "3.9" in str(error)
        assert len(probe.items) == 1


async def test_3_9_request_of_none_within_on_subscribe_is_an_error(source: str) -> None:
    async with publishing(source) as publisher:
        assert isinstance(await subscribed(publisher, first=-1).ended(), LocalError)


async def test_3_13_canceled_subscriber_is_released(source: str) -> None:
    async with publishing(source) as publisher:
        probe = subscribed(publisher, first=1)
        await turns(IDLE_TURNS)
        subscription = probe.subscription
        subscription.cancel()
        await turns(IDLE_TURNS)
        kept = weakref.ref(probe)
        del probe
        gc.collect()
        assert kept() is None
        subscription.cancel()


async def test_3_17_demand_is_unbounded(source: str) -> None:
    async with publishing(source) as publisher:
        probe = subscribed(publisher, first=UNBOUNDED, each=UNBOUNDED)
        assert await probe.ended() == "complete"
        assert len(probe.items) == 10
