from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from threading import Thread
from typing import Any

import pytest

import weirpool
from tests.aio.serving import world
from tests.missing import need_module
from tests.reactive.probe import IDLE_TURNS, Scripted, subscribed
from tests.waiting import turns, until
from weirpool import CreditExceeded, LocalError
from weirpool.reactive import from_aiter, from_observable, publisher_of, publishing, to_observable
from weirpool.reactive.interfaces import UNBOUNDED


class Hot:
    """An observable that sends what its test sets, with the interface of one of reactivex."""

    def __init__(self) -> None:
        self.disposed = 0

    def subscribe(self, on_next: Callable[[Any], None], on_error: Any, on_completed: Any) -> Hot:
        self.on_next, self.on_error, self.on_completed = on_next, on_error, on_completed
        return self

    def dispose(self) -> None:
        self.disposed += 1


async def test_buffer_keeps_unrequested_items() -> None:
    hot = Hot()
    probe = subscribed(from_observable(hot, bound=3), first=1)  # type: ignore[arg-type]
    for number in range(4):
        hot.on_next(number)
    await turns(IDLE_TURNS)
    assert probe.items == [0]
    probe.subscription.request(2)
    await turns(IDLE_TURNS)
    assert probe.items == [0, 1, 2]
    hot.on_completed()
    await turns(IDLE_TURNS)
    assert probe.ends == []
    probe.subscription.request(1)
    assert await probe.ended() == "complete"
    assert probe.items == [0, 1, 2, 3]


async def test_a_full_buffer_fails_after_what_it_holds() -> None:
    hot = Hot()
    probe = subscribed(from_observable(hot, bound=2))  # type: ignore[arg-type]
    for number in range(5):
        hot.on_next(number)
    probe.subscription.request(10)
    error = await probe.ended()
    assert isinstance(error, CreditExceeded) and "2 others wait" in str(error)
    assert (probe.items, hot.disposed) == ([0, 1], 1)


async def test_drop_discards_unrequested_items() -> None:
    hot = Hot()
    probe = subscribed(from_observable(hot, "drop"), first=2)  # type: ignore[arg-type]
    for number in range(5):
        hot.on_next(number)
    await turns(IDLE_TURNS)
    probe.subscription.request(2)
    hot.on_next(5)
    await turns(IDLE_TURNS)
    assert probe.items == [0, 1, 5]


async def test_latest_keeps_the_newest() -> None:
    hot = Hot()
    probe = subscribed(from_observable(hot, "latest"), first=1)  # type: ignore[arg-type]
    for number in range(5):
        hot.on_next(number)
    await turns(IDLE_TURNS)
    assert probe.items == [0]
    probe.subscription.request(2)
    await turns(IDLE_TURNS)
    assert probe.items == [0, 4]


async def test_error_fails_at_the_first_unrequested_item() -> None:
    hot = Hot()
    probe = subscribed(from_observable(hot, "error"), first=2)  # type: ignore[arg-type]
    for number in range(3):
        hot.on_next(number)
    assert isinstance(await probe.ended(), CreditExceeded)
    assert probe.items == [0, 1]


async def test_observable_error_is_passed_on() -> None:
    hot = Hot()
    probe = subscribed(from_observable(hot), first=UNBOUNDED)  # type: ignore[arg-type]
    hot.on_next(1)
    hot.on_error(KeyError("lost"))
    hot.on_completed()
    assert isinstance(await probe.ended(), KeyError)
    assert probe.items == [1]


async def test_cancel_disposes_and_nothing_comes_after_it() -> None:
    hot = Hot()
    probe = subscribed(from_observable(hot), first=1)  # type: ignore[arg-type]
    hot.on_next(1)
    probe.subscription.cancel()
    probe.subscription.cancel()
    probe.subscription.request(0)
    hot.on_next(2)
    hot.on_completed()
    await turns(IDLE_TURNS)
    assert (probe.items, probe.ends, hot.disposed) == ([], [], 1)


async def test_a_request_of_none_is_an_error() -> None:
    hot = Hot()
    probe = subscribed(from_observable(hot))  # type: ignore[arg-type]
    hot.on_next(1)
    probe.subscription.request(0)
    assert isinstance(await probe.ended(), LocalError)
    assert (probe.items, hot.disposed) == ([], 1)


class Failing:
    """A subscriber that fails on its second item."""

    def __init__(self) -> None:
        self.signals: list[object] = []

    def on_subscribe(self, subscription: Any) -> None:
        subscription.request(UNBOUNDED)

    def on_next(self, item: int) -> None:
        self.signals.append(item)
        if len(self.signals) == 2:
            raise ValueError("a bug")

    def on_error(self, error: Exception) -> None:
        self.signals.append(error)

    def on_complete(self) -> None:
        self.signals.append("complete")


def emit(hot: Hot) -> None:
    for number in range(5):
        hot.on_next(number)


@pytest.mark.parametrize("source", ["synchronous", "threaded", "ended"])
async def test_a_subscriber_that_raises_has_canceled(source: str, caplog: pytest.LogCaptureFixture) -> None:
    # Reactive Streams, rule 2.13.
    hot, failing = Hot(), Failing()
    from_observable(hot).subscribe(failing)  # type: ignore[arg-type]
    if source == "threaded":
        thread = Thread(target=emit, args=(hot,))
        thread.start()
        await asyncio.to_thread(thread.join)
    else:
        emit(hot)
    if source == "ended":
        hot.on_completed()
    await turns(IDLE_TURNS)
    hot.on_next(5)
    hot.on_completed()
    await turns(IDLE_TURNS)
    assert (failing.signals, hot.disposed) == ([0, 1], 1)
    assert [record.message for record in caplog.records] == [
        "a subscriber failed on an item; its subscription is canceled"
    ]


@pytest.mark.parametrize("source", ["synchronous", "threaded", "ended"])
async def test_request_of_none_precedes_a_pending_end(source: str) -> None:
    # Reactive Streams, rule 3.9: the items are not lost behind a completion.
    hot = Hot()
    probe = subscribed(from_observable(hot))  # type: ignore[arg-type]
    if source == "threaded":
        thread = Thread(target=emit, args=(hot,))
        thread.start()
        await asyncio.to_thread(thread.join)
    else:
        emit(hot)
    if source == "ended":
        hot.on_completed()
    await turns(IDLE_TURNS)
    probe.subscription.request(0)
    hot.on_error(KeyError("too late"))
    error = await probe.ended()
    assert isinstance(error, LocalError) and "rule 3.9" in str(error)
    assert (probe.items, hot.disposed) == ([], 1)


async def test_subscriber_that_raises_at_the_end_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    class Unwell(Failing):
        def on_complete(self) -> None:
            raise ValueError("a bug")

    hot = Hot()
    from_observable(hot).subscribe(Unwell())  # type: ignore[arg-type]
    hot.on_completed()
    await turns(IDLE_TURNS)
    assert [record.message for record in caplog.records] == ["a subscriber failed on the end of its stream"]
    assert hot.disposed == 1


async def test_items_may_come_from_any_thread() -> None:
    hot = Hot()
    probe = subscribed(from_observable(hot, bound=1), first=10_000)  # type: ignore[arg-type]

    def send() -> None:
        for number in range(10_000):
            hot.on_next(number)
        hot.on_completed()

    thread = Thread(target=send)
    thread.start()
    assert await probe.ended() == "complete"
    thread.join()
    assert probe.items == list(range(10_000))


def test_wrong_policies_and_bounds_are_refused() -> None:
    with pytest.raises(LocalError, match="buffer, drop, latest, error"):
        from_observable(Hot(), "newest")  # type: ignore[arg-type]
    with pytest.raises(LocalError, match="bound is 0"):
        from_observable(Hot(), bound=0)  # type: ignore[arg-type]


def test_the_extra_is_named_where_the_package_is_missing() -> None:
    program = """
import sys
sys.modules["reactivex"] = None
from weirpool import LocalError
from weirpool.reactive import from_aiter, to_observable
try:
    to_observable(from_aiter([]))
except LocalError as error:
    print(error)
"""
    result = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=60)
    assert (result.stderr, "pip install 'weirpool[reactive]'" in result.stdout) == ("", True)


# With the package reactivex.


async def test_an_observable_of_the_package_and_back() -> None:
    rx = need_module("reactivex")
    probe = subscribed(from_observable(rx.from_iterable(range(100))), first=UNBOUNDED)
    assert await probe.ended() == "complete"
    assert probe.items == list(range(100))
    found: list[int] = []
    done = asyncio.Event()
    to_observable(from_aiter(range(200)), window=8).subscribe(found.append, on_completed=done.set)
    await done.wait()
    assert found == list(range(200))


async def test_an_observer_sets_the_pace_by_a_window() -> None:
    need_module("reactivex")
    publisher = Scripted()
    found: list[int] = []
    disposable = to_observable(publisher, window=4).subscribe(found.append)
    assert publisher.requested == [4]
    publisher.subscriber.on_next(0)
    assert publisher.requested == [4]
    publisher.subscriber.on_next(1)
    assert publisher.requested == [4, 2]
    disposable.dispose()
    assert publisher.canceled == 1
    publisher.subscriber.on_next(2)
    publisher.subscriber.on_complete()
    assert found == [0, 1]


async def test_item_beyond_the_window_fails_the_publisher() -> None:
    need_module("reactivex")
    publisher = Scripted()
    errors: list[Exception] = []

    def more(item: int) -> None:
        # From within an item, before the next one is requested.
        if item < 10:
            publisher.subscriber.on_next(item + 1)

    to_observable(publisher, window=4).subscribe(more, errors.append)
    publisher.subscriber.on_next(0)
    assert isinstance(errors[0], CreditExceeded) and publisher.canceled


async def test_errors_reach_observers() -> None:
    need_module("reactivex")
    errors: list[Exception] = []
    async with world() as w:
        to_observable(publisher_of(w.peer, "nobody")).subscribe(lambda item: None, errors.append)
        await until(lambda: bool(errors))
    assert isinstance(errors[0], weirpool.ApplicationError)


async def test_it_may_be_subscribed_and_disposed_in_another_thread() -> None:
    need_module("reactivex")
    publisher = Scripted()
    observable = to_observable(publisher)
    thread = Thread(target=lambda: observable.subscribe(print).dispose())
    thread.start()
    await until(lambda: publisher.subscriber is not None and publisher.canceled > 0)
    thread.join()


async def test_observables_can_be_served_and_received() -> None:
    rx = need_module("reactivex")
    service = weirpool.Service()

    @service.stream("numbers")
    @publishing
    def numbers(request: weirpool.Payload) -> Any:
        return from_observable(rx.from_iterable(b"%d" % number for number in range(50)), bound=100)

    async with weirpool.serve(service, "rsocket+memory://rx") as server:
        async with weirpool.connect(server.urls[0]) as peer:
            found: list[bytes] = []
            done = asyncio.Event()
            observable = to_observable(publisher_of(peer, "numbers"), window=4)
            observable.subscribe(lambda item: found.append(item.data), on_completed=done.set)
            await done.wait()
    assert found == [b"%d" % number for number in range(50)]


async def test_missing_error_is_not_passed_on() -> None:
    need_module("reactivex")
    script = Scripted()
    ends: list[object] = []
    to_observable(script).subscribe(ends.append, ends.append, lambda: ends.append("complete"))
    with pytest.raises(LocalError, match="on_error"):
        script.subscriber.on_error(None)
    assert ends == []


async def test_second_subscription_of_an_observer_is_canceled() -> None:
    need_module("reactivex")
    first, second = Scripted(), Scripted()
    to_observable(first, window=4).subscribe(lambda item: None)
    first.subscriber.on_subscribe(second)
    assert (first.canceled, second.canceled, second.requested) == (0, 1, [])
